"""From a table to closures that write: the counterpart of `codec.decoding`, step for step.

Used through `codec.compiled`. A missing key takes the field's default, a key that the version does not have is ignored,
and a tagged field equal to its default is not written: that is Kafka's rule, and old librdkafka drops the connection
when a broker breaks it.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from codec.decoding import UNKNOWN_TAGS, join
from codec.errors import CodecError
from codec.layout import FORMAT, fixed_format, runs
from codec.primitives import encode_utf8, write_unsigned_varint
from codec.schema import Array, Default, Field, Scalar, Struct

Encode = Callable[[Any, bytearray], None]
"""Appends the bytes of a value."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_NOTHING: Final[Mapping[str, Any]] = {}


def struct_encoder(of: Struct, version: int, flexible: bool, path: str) -> Encode:
    """A closure that writes a mapping with the struct's fields of this version."""
    steps: list[Encode] = []
    for run in runs(of.untagged(version)):
        if fixed_format(run[0]) is not None:
            steps.append(_run_step(run, path))
        else:
            steps.append(_named(run[0], field_encoder(run[0], version, flexible, path)))
    if flexible:
        steps.append(_tags_step(of, version, path))
    todo = tuple(steps)

    def encode(value: Mapping[str, Any], out: bytearray) -> None:
        for step in todo:
            step(value, out)

    return encode


def field_encoder(field: Field, version: int, flexible: bool, path: str) -> Encode:
    """A closure that writes the value of one field."""
    path = join(path, field.name)
    nullable = field.nullable_in(version)
    match field.type:
        case Array():
            return _array_encoder(field.type, version, flexible, nullable, path)
        case Struct():
            encode = struct_encoder(field.type, version, flexible, path)
            return _nullable_struct(encode) if nullable else encode
        case Scalar.STRING | Scalar.BYTES | Scalar.RECORDS:
            return _blob_encoder(field.type, flexible, nullable, path)
        case _:
            return _run_of_one(field.type, path)


def _named(field: Field, encode: Encode) -> Encode:
    name, default = field.name, _default(field)

    def step(value: Mapping[str, Any], out: bytearray) -> None:
        encode(value.get(name, default), out)

    return step


def _default(field: Field) -> Default | Mapping[str, Any]:
    return _NOTHING if isinstance(field.type, Struct) and field.default == () else field.default


def _run_step(run: tuple[Field, ...], path: str) -> Encode:
    items = tuple((f.name, f.default) for f in run)
    uuids = tuple((f.name, f.default) for f in run if f.type is Scalar.UUID)
    pack = struct.Struct(">" + "".join(fixed_format(f) or "" for f in run)).pack
    where = path + "." if path else ""

    def step(value: Mapping[str, Any], out: bytearray) -> None:
        get = value.get
        for name, default in uuids:
            _check_uuid(get(name, default), where + name)
        try:
            out += pack(*[get(name, default) for name, default in items])
        except (struct.error, OverflowError) as error:
            raise CodecError(0, where + "/".join(name for name, _ in items), str(error)) from None

    return step


def _run_of_one(of: Scalar, path: str) -> Encode:
    pack = struct.Struct(">" + FORMAT[of]).pack

    def encode(value: Any, out: bytearray) -> None:
        if of is Scalar.UUID:
            _check_uuid(value, path)
        try:
            out += pack(value)
        except (struct.error, OverflowError) as error:
            raise CodecError(0, path, str(error)) from None

    return encode


def _check_uuid(value: Any, path: str) -> None:
    """`struct` would pad or cut it without a word."""
    if not isinstance(value, bytes) or len(value) != 16:
        raise CodecError(0, path, "a uuid is 16 bytes")


def _length_writer(flexible: bool, width: struct.Struct, path: str) -> Callable[[int], bytes]:
    """Writes a length or count, -1 for null; compact ones plus one, in a varint."""
    if flexible:
        return lambda length: write_unsigned_varint(length + 1)

    def plain(length: int) -> bytes:
        try:
            return width.pack(length)
        except struct.error:
            raise CodecError(0, path, f"{length} is too long for this version") from None

    return plain


def _blob_encoder(of: Scalar, flexible: bool, nullable: bool, path: str) -> Encode:
    text = of is Scalar.STRING
    write_length = _length_writer(flexible, _INT16 if text else _INT32, path)

    def encode(value: Any, out: bytearray) -> None:
        if value is None:
            _check_null(nullable, path)
            out += write_length(-1)
            return
        if text:
            value = encode_utf8(value, path)
        elif not isinstance(value, bytes | bytearray | memoryview):
            raise CodecError(0, path, "not bytes")
        out += write_length(len(value))
        out += value

    return encode


def _array_encoder(of: Array, version: int, flexible: bool, nullable: bool, path: str) -> Encode:
    write_count = _length_writer(flexible, _INT32, path)
    match of.element:
        case Struct():
            encode_element = struct_encoder(of.element, version, flexible, path)
        case Scalar.STRING | Scalar.BYTES | Scalar.RECORDS:
            encode_element = _blob_encoder(of.element, flexible, False, path)
        case _:
            encode_element = _run_of_one(of.element, path)

    def encode(value: Any, out: bytearray) -> None:
        if value is None:
            _check_null(nullable, path)
            out += write_count(-1)
            return
        out += write_count(len(value))
        for element in value:
            encode_element(element, out)

    return encode


def _nullable_struct(encode: Encode) -> Encode:
    def nullable(value: Any, out: bytearray) -> None:
        if value is None:
            out += b"\xff"
            return
        out += b"\x01"
        encode(value, out)

    return nullable


def _check_null(nullable: bool, path: str) -> None:
    if not nullable:
        raise CodecError(0, path, "null, which this version does not allow")


def _tags_step(of: Struct, version: int, path: str) -> Encode:
    known: list[tuple[int, str, Encode, bytes]] = []
    for field in of.tagged(version):
        assert field.tag is not None
        encode = field_encoder(field, version, True, path)
        default = bytearray()
        encode(_default(field), default)
        known.append((field.tag, field.name, encode, bytes(default)))
    known_tags = frozenset(tag for tag, *_ in known)
    path = join(path, UNKNOWN_TAGS)

    def step(value: Mapping[str, Any], out: bytearray) -> None:
        entries: dict[int, bytes] = {}
        for tag, name, encode, default in known:
            if name in value:
                content = bytearray()
                encode(value[name], content)
                if content != default:
                    entries[tag] = bytes(content)
        unknown = value.get(UNKNOWN_TAGS)
        if unknown:
            if not known_tags.isdisjoint(unknown):
                raise CodecError(0, path, f"tags {sorted(known_tags & set(unknown))} have names in this version")
            entries.update(unknown)
        out += write_unsigned_varint(len(entries))
        for tag in sorted(entries):
            out += write_unsigned_varint(tag) + write_unsigned_varint(len(entries[tag])) + entries[tag]

    return step
