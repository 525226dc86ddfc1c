"""The readable twin of `codec.compiled`: the same tables as construct objects, one line a rule of the protocol.

It says what the fast closures do, in a library made for saying it: tests hold the two equal on values and on arbitrary
bytes, and whoever wants a picture of a message can build on it. It never faces a socket, and it is many times slower.
"""

import io
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import construct as c

from codec.compiled import check_version
from codec.errors import CodecError
from codec.primitives import STRING_BYTES_MAX
from codec.schema import Array, Field, Scalar, Struct, Table

_TAGS: Final = "(tags)"
_UNKNOWN_TAGS: Final = "unknown_tags"


def parse(table: Table, version: int, body: bytes) -> dict[str, Any]:
    """What `codec.compiled.decoder` returns for a whole body.

    Raises:
        CodecError: The bytes are no such body, or bytes are left over.
    """
    stream = io.BytesIO(body)
    try:
        value = construct_of(table, version).parse_stream(stream)
    except (c.ConstructError, UnicodeDecodeError) as error:
        raise CodecError(stream.tell(), table.title, str(error)) from error
    if stream.tell() != len(body):
        raise CodecError(stream.tell(), table.title, "bytes left over")
    return _plain(value)  # type: ignore[no-any-return]


def build(table: Table, version: int, value: Mapping[str, Any]) -> bytes:
    """What `codec.compiled.encoder` returns.

    Raises:
        CodecError: The value does not fit.
    """
    try:
        return construct_of(table, version).build(value)  # type: ignore[no-any-return]
    except (c.ConstructError, UnicodeEncodeError, TypeError, AttributeError) as error:
        raise CodecError(0, table.title, str(error)) from error


@cache
def construct_of(table: Table, version: int) -> Any:
    """The construct object of a body.

    Raises:
        CodecError: The table does not describe this version.
    """
    check_version(table, version)
    return _struct(table.body, version, table.is_flexible(version))


def _checked(subcon: Any, holds: Callable[[Any], bool]) -> Any:
    return c.ExprValidator(subcon, lambda value, context: holds(value))


def _groups_to_number(groups: list[int]) -> int:
    return sum((group & 0x7F) << 7 * at for at, group in enumerate(groups))


def _number_to_groups(number: int) -> list[int]:
    groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return [group | 0x80 for group in groups[:-1]] + groups[-1:]


_UNSIGNED_VARINT: Final = _checked(
    c.ExprAdapter(
        c.RepeatUntil(lambda group, groups, context: group < 0x80 or len(groups) == 5, c.Byte),
        lambda groups, context: _groups_to_number(groups) if groups[-1] < 0x80 else -1,
        lambda number, context: _number_to_groups(number),
    ),
    lambda number: 0 <= number <= 0xFFFFFFFF,
)
_COMPACT_LENGTH: Final = c.ExprAdapter(
    _UNSIGNED_VARINT, lambda number, context: number - 1, lambda length, context: length + 1
)

_FIXED: Final = {
    Scalar.BOOL: c.Flag,
    Scalar.INT8: c.Int8sb,
    Scalar.INT16: c.Int16sb,
    Scalar.UINT16: c.Int16ub,
    Scalar.INT32: c.Int32sb,
    Scalar.UINT32: c.Int32ub,
    Scalar.INT64: c.Int64sb,
    Scalar.FLOAT64: c.Float64b,
    Scalar.UUID: c.Bytes(16),
}


def _counted(length: Any, content: Callable[[Any], Any], nullable: bool) -> Any:
    """A length, then content that depends on it; a negative length is null."""
    return _checked(
        c.FocusedSeq(
            "value",
            "length" / c.Rebuild(length, lambda this: -1 if this.value is None else len(this.value)),
            "value" / c.IfThenElse(lambda this: this.length < 0, c.Computed(None), content(lambda this: this.length)),
        ),
        lambda value: nullable or value is not None,
    )


def _bytes(length: Any, nullable: bool) -> Any:
    return _counted(length, c.Bytes, nullable)


def _string(length: Any, nullable: bool) -> Any:
    fits = _checked(_bytes(length, nullable), lambda value: value is None or len(value) <= STRING_BYTES_MAX)
    return c.ExprAdapter(
        fits,
        lambda value, context: None if value is None else value.decode(),
        lambda value, context: None if value is None else value.encode(),
    )


def _type(of: Scalar | Struct | Array, version: int, flexible: bool, nullable: bool) -> Any:
    match of:
        case Scalar.STRING:
            return _string(_COMPACT_LENGTH if flexible else c.Int16sb, nullable)
        case Scalar.BYTES | Scalar.RECORDS:
            return _bytes(_COMPACT_LENGTH if flexible else c.Int32sb, nullable)
        case Scalar():
            return _FIXED[of]
        case Array():
            element = _type(of.element, version, flexible, False)
            count = _COMPACT_LENGTH if flexible else c.Int32sb
            return _counted(count, lambda length: c.Array(length, element), nullable)
        case Struct():
            fields = _struct(of, version, flexible)
            return _nullable_struct(fields) if nullable else fields


def _nullable_struct(fields: Any) -> Any:
    return c.FocusedSeq(
        "value",
        "marker" / c.Rebuild(c.Int8sb, lambda this: -1 if this.value is None else 1),
        "value" / c.IfThenElse(lambda this: this.marker < 0, c.Computed(None), fields),
    )


def _field(field: Field, version: int, flexible: bool) -> Any:
    return _type(field.type, version, flexible, field.nullable_in(version))


def _struct(of: Struct, version: int, flexible: bool) -> Any:
    untagged = tuple(of.untagged(version))
    parts = [field.name / _field(field, version, flexible) for field in untagged]
    if not flexible:
        return c.ExprAdapter(
            c.Struct(*parts),
            lambda value, context: value,
            lambda value, context: {field.name: _get(value, field) for field in untagged},
        )
    tagged = {field.tag: (field, _whole(_field(field, version, True))) for field in of.tagged(version)}
    return c.ExprAdapter(
        c.Struct(*parts, _TAGS / _TAG_SECTION),
        lambda value, context: _flatten(value, tagged, version),
        lambda value, context: (
            {field.name: _get(value, field) for field in untagged} | {_TAGS: _tag_section(value, tagged)}
        ),
    )


def _whole(subcon: Any) -> Any:
    return c.FocusedSeq("value", "value" / subcon, c.Terminated)


_TAG_SECTION: Final = _checked(
    c.PrefixedArray(
        _UNSIGNED_VARINT, c.Struct("tag" / _UNSIGNED_VARINT, "content" / c.Prefixed(_UNSIGNED_VARINT, c.GreedyBytes))
    ),
    lambda entries: len({entry["tag"] for entry in entries}) == len(entries),
)


def _flatten(value: Any, tagged: Mapping[int | None, tuple[Field, Any]], version: int) -> dict[str, Any]:
    """Tagged fields next to the untagged ones, those that nobody knows under one key."""
    flat = {name: part for name, part in value.items() if name != _TAGS}
    flat |= {field.name: _default(field, version) for field, _ in tagged.values()}
    unknown = {}
    for entry in value[_TAGS]:
        if entry["tag"] in tagged:
            field, subcon = tagged[entry["tag"]]
            flat[field.name] = subcon.parse(entry["content"])
        else:
            unknown[entry["tag"]] = entry["content"]
    return flat | ({_UNKNOWN_TAGS: unknown} if unknown else {})


def _tag_section(value: Mapping[str, Any], tagged: Mapping[int | None, tuple[Field, Any]]) -> list[dict[str, Any]]:
    """The entries in ascending order, without those that say no more than their default."""
    contents: dict[Any, bytes] = dict(value.get(_UNKNOWN_TAGS, {}))
    for tag, (field, subcon) in tagged.items():
        content = subcon.build(_get(value, field))
        if content != subcon.build(_get({}, field)):
            contents[tag] = content
    return [{"tag": tag, "content": contents[tag]} for tag in sorted(contents)]


def _get(value: Mapping[str, Any], field: Field) -> Any:
    """The value of a field, or what stands for a missing one."""
    if field.name in value:
        return value[field.name]
    if field.default != ():
        return field.default
    return {} if isinstance(field.type, Struct) else []


def _default(field: Field, version: int) -> Any:
    """What a decoder reports for a tagged field that is absent."""
    if isinstance(field.type, Struct) and field.default == ():
        return {part.name: _default(part, version) for part in field.type.fields if version in part.versions}
    return _get({}, field)


def _plain(value: Any) -> Any:
    """Dicts and lists in place of construct's containers, without what construct keeps there for itself."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if name != "_io"}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
