"""From a table to closures that read: one a struct, one step a run of fixed-size fields or a single other field.

Used through `codec.compiled`. Every step checks what is left before it takes or allocates anything, arrays also what
their elements would cost (`codec.memory`), and the only exception that leaves is `CodecError`. What Kafka's own reader
takes for null (any negative length) is null here too: a proxy must not read a request otherwise than the broker behind
it.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NoReturn

from codec.errors import CodecError, Truncated
from codec.layout import FORMAT, SIZE, fixed_format, minimum_size, runs
from codec.memory import TAG_SECTION_CHARGE, Budget, element_charge
from codec.primitives import decode_utf8, read_unsigned_varint, slice_end
from codec.schema import Array, Field, Scalar, Struct

Decode = Callable[[bytes, int], tuple[Any, int]]
"""Buffer and offset to value and the offset after it."""

_Read = Callable[[bytes, int, Budget], tuple[Any, int]]
"""The same with what may be spent."""

_Step = Callable[[bytes, int, dict[str, Any], Budget], int]
"""Reads one field or a run of them into the dict; returns the offset after it."""

UNKNOWN_TAGS: Final = "unknown_tags"
"""The key under which a struct keeps the tagged fields that its table does not know: `{tag: bytes}`."""

_FEW: Final = 16
"""Up to how many numbers a list nearly always has: replicas, for example."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def struct_decoder(of: Struct, version: int, flexible: bool, path: str) -> Decode:
    """A closure that reads a struct into a dict of its fields in this version."""
    return _within_budget(_struct(of, version, flexible, path))


def field_decoder(field: Field, version: int, flexible: bool, path: str) -> Decode:
    """A closure that reads the value of one field."""
    return _within_budget(_field(field, version, flexible, path))


def join(path: str, name: str) -> str:
    """The dotted path of a field inside another."""
    return f"{path}.{name}" if path else name


def default_factory(field: Field, version: int) -> Callable[[], Any]:
    """Makes the value of an absent field: a fresh one each time, since values are mutable."""
    if field.default != ():
        return lambda: field.default
    if isinstance(field.type, Array):
        return list
    assert isinstance(field.type, Struct)
    parts = tuple((f.name, default_factory(f, version)) for f in field.type.fields if version in f.versions)
    return lambda: {name: make() for name, make in parts}


def _within_budget(read: _Read) -> Decode:
    return lambda buffer, offset: read(buffer, offset, Budget())


def _struct(of: Struct, version: int, flexible: bool, path: str) -> _Read:
    steps: list[_Step] = []
    for run in runs(of.untagged(version)):
        if fixed_format(run[0]) is not None:
            steps.append(_run_step(run, path))
        else:
            steps.append(_named(run[0].name, _field(run[0], version, flexible, path)))
    if flexible:
        steps.append(_tags_step(of, version, path))
    todo = tuple(steps)

    def decode(buffer: bytes, offset: int, budget: Budget) -> tuple[dict[str, Any], int]:
        value: dict[str, Any] = {}
        for step in todo:
            offset = step(buffer, offset, value, budget)
        return value, offset

    return decode


def _field(field: Field, version: int, flexible: bool, path: str) -> _Read:
    path = join(path, field.name)
    nullable = field.nullable_in(version)
    match field.type:
        case Array():
            return _array_decoder(field.type, version, flexible, nullable, path)
        case Struct():
            decode = _struct(field.type, version, flexible, path)
            return _nullable_struct(decode, path) if nullable else decode
        case Scalar.STRING:
            return _string_decoder(flexible, nullable, path)
        case Scalar.BYTES | Scalar.RECORDS:
            return _bytes_decoder(flexible, nullable, path)
        case _:
            return _fixed_decoder(field.type, path)


def _named(name: str, decode: _Read) -> _Step:
    def step(buffer: bytes, offset: int, value: dict[str, Any], budget: Budget) -> int:
        value[name], offset = decode(buffer, offset, budget)
        return offset

    return step


def _run_step(run: tuple[Field, ...], path: str) -> _Step:
    names = tuple(f.name for f in run)
    fused = struct.Struct(">" + "".join(fixed_format(f) or "" for f in run))
    unpack, size = fused.unpack_from, fused.size

    def step(buffer: bytes, offset: int, value: dict[str, Any], budget: Budget) -> int:
        try:
            value.update(zip(names, unpack(buffer, offset), strict=True))
        except struct.error:
            _run_is_short(buffer, offset, run, path)
        return offset + size

    return step


def _run_is_short(buffer: bytes, offset: int, run: tuple[Field, ...], path: str) -> NoReturn:
    """Find out which field of a run is missing and say so."""
    for field in run:
        assert isinstance(field.type, Scalar)
        if offset + SIZE[field.type] > len(buffer):
            raise Truncated(
                offset, join(path, field.name), f"{SIZE[field.type]} bytes wanted, {len(buffer) - offset} left"
            )
        offset += SIZE[field.type]
    raise AssertionError("the run was not short")


def _fixed_decoder(of: Scalar, path: str) -> _Read:
    fused = struct.Struct(">" + FORMAT[of])
    unpack, size = fused.unpack_from, fused.size

    def decode(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        end = slice_end(buffer, offset, size, path)
        return unpack(buffer, offset)[0], end

    return decode


def _length_reader(flexible: bool, width: struct.Struct, path: str) -> Callable[[bytes, int], tuple[int, int]]:
    """Reads a length or count; a negative one means null. Compact ones are written plus one, in a varint."""
    if flexible:

        def compact(buffer: bytes, offset: int) -> tuple[int, int]:
            if offset < len(buffer) and (length := buffer[offset]) < 0x80:
                return length - 1, offset + 1
            length, offset = read_unsigned_varint(buffer, offset, path)
            return length - 1, offset

        return compact

    unpack, size = width.unpack_from, width.size

    def plain(buffer: bytes, offset: int) -> tuple[int, int]:
        end = slice_end(buffer, offset, size, path)
        return unpack(buffer, offset)[0], end

    return plain


def _string_decoder(flexible: bool, nullable: bool, path: str) -> _Read:
    read_length = _length_reader(flexible, _INT16, path)

    def decode(buffer: bytes, offset: int, budget: Budget) -> tuple[str | None, int]:
        length, start = read_length(buffer, offset)
        if length < 0:
            _check_null(nullable, offset, path)
            return None, start
        end = slice_end(buffer, start, length, path)
        return decode_utf8(buffer, start, end, path), end

    return decode


def _bytes_decoder(flexible: bool, nullable: bool, path: str) -> _Read:
    read_length = _length_reader(flexible, _INT32, path)

    def decode(buffer: bytes, offset: int, budget: Budget) -> tuple[bytes | None, int]:
        length, start = read_length(buffer, offset)
        if length < 0:
            _check_null(nullable, offset, path)
            return None, start
        end = slice_end(buffer, start, length, path)
        return bytes(buffer[start:end]), end

    return decode


def _array_decoder(of: Array, version: int, flexible: bool, nullable: bool, path: str) -> _Read:
    read_count = _length_reader(flexible, _INT32, path)
    read_elements = _elements_decoder(of.element, version, flexible, path)
    element_size_min = minimum_size(of.element, version, flexible)
    assert element_size_min > 0, f"{path}: an element without bytes has no bound"
    charge = element_charge(of.element, version, flexible) if isinstance(of.element, Struct) else 0

    def decode(buffer: bytes, offset: int, budget: Budget) -> tuple[list[Any] | None, int]:
        count, start = read_count(buffer, offset)
        if count < 0:
            _check_null(nullable, offset, path)
            return None, start
        if count * element_size_min > len(buffer) - start:
            raise Truncated(offset, path, f"{count} elements announced, {len(buffer) - start} bytes left")
        if charge > 0:
            budget.spend(count * charge, offset, path)
        return read_elements(buffer, start, count, budget)

    return decode


def _elements_decoder(
    of: Scalar | Struct, version: int, flexible: bool, path: str
) -> Callable[[bytes, int, int, Budget], tuple[list[Any], int]]:
    """Reads a known number of elements; the caller has compared their least size with what is left."""
    if isinstance(of, Scalar) and of in FORMAT:
        return _fixed_elements_decoder(of)

    credit = 0
    match of:
        case Struct():
            decode = _struct(of, version, flexible, path)
            credit = max(0, -element_charge(of, version, flexible))
        case Scalar.STRING:
            decode = _string_decoder(flexible, False, path)
        case _:
            decode = _bytes_decoder(flexible, False, path)

    def each(buffer: bytes, offset: int, count: int, budget: Budget) -> tuple[list[Any], int]:
        values = []
        for _ in range(count):
            value, offset = decode(buffer, offset, budget)
            values.append(value)
            budget.left += credit
        return values, offset

    return each


def _fixed_elements_decoder(of: Scalar) -> Callable[[bytes, int, int, Budget], tuple[list[Any], int]]:
    character, size = FORMAT[of], SIZE[of]
    few = tuple(struct.Struct(f">{count}{character}").unpack_from for count in range(_FEW))

    def fixed(buffer: bytes, offset: int, count: int, budget: Budget) -> tuple[list[Any], int]:
        if count < _FEW:
            return list(few[count](buffer, offset)), offset + count * size
        return list(struct.unpack_from(f">{count}{character}", buffer, offset)), offset + count * size

    def uuids(buffer: bytes, offset: int, count: int, budget: Budget) -> tuple[list[Any], int]:
        end = offset + count * size
        return [bytes(buffer[at : at + size]) for at in range(offset, end, size)], end

    return uuids if of is Scalar.UUID else fixed


def _nullable_struct(decode: _Read, path: str) -> _Read:
    """One byte before the struct says whether it is there; Kafka takes any negative one for null."""

    def nullable(buffer: bytes, offset: int, budget: Budget) -> tuple[Any, int]:
        start = slice_end(buffer, offset, 1, path)
        if buffer[offset] > 0x7F:
            return None, start
        return decode(buffer, start, budget)

    return nullable


def _check_null(nullable: bool, offset: int, path: str) -> None:
    if not nullable:
        raise CodecError(offset, path, "null, which this version does not allow")


def _tags_step(of: Struct, version: int, path: str) -> _Step:
    """Reads the tagged section; known fields that are absent get their defaults."""
    known = {f.tag: (f.name, _field(f, version, True, path)) for f in of.tagged(version)}
    defaults = tuple((f.name, default_factory(f, version)) for f in of.tagged(version))
    path = join(path, UNKNOWN_TAGS)

    def step(buffer: bytes, offset: int, value: dict[str, Any], budget: Budget) -> int:
        for name, make in defaults:
            value[name] = make()
        count, offset = read_unsigned_varint(buffer, offset, path)
        if count:
            budget.spend(TAG_SECTION_CHARGE, offset, path)
            return tagged(buffer, offset, value, count, budget)
        return offset

    def tagged(buffer: bytes, offset: int, value: dict[str, Any], count: int, budget: Budget) -> int:
        seen: set[int] = set()
        unknown: dict[int, bytes] = {}
        for _ in range(count):
            tag, start = read_unsigned_varint(buffer, offset, path)
            if tag in unknown or tag in seen:
                raise CodecError(offset, path, f"tag {tag} twice")
            size, start = read_unsigned_varint(buffer, start, path)
            offset = slice_end(buffer, start, size, path)
            if tag not in known:
                unknown[tag] = bytes(buffer[start:offset])
                continue
            seen.add(tag)
            name, decode = known[tag]
            value[name], end = decode(buffer, start, budget)
            if end != offset:
                raise CodecError(start, join(path, name), f"tag {tag} announced {size} bytes and has {end - start}")
        if unknown:
            value[UNKNOWN_TAGS] = unknown
        return offset

    return step
