"""From a table to a short program that finds the end of a value without decoding it.

A program is the sequence of steps for one struct: pass so many bytes, then skip by a length prefix, or an array, or
tagged fields. The interpreter here runs it over a whole buffer and notes error codes on the way; `codec.chunked_walk`
runs the same programs over chunks. The cost follows the number of elements, never the number of bytes: a megabyte of
records is one addition.

Used by `codec.walk` and `codec.splice`. What the skipper accepts is a superset of what `codec.decoding` accepts: it
does not look into strings and tagged fields.
"""

import enum
import struct
from typing import Final, NamedTuple, final

from codec.errors import Truncated
from codec.layout import SIZE
from codec.leaps import Leap, leap_over
from codec.primitives import read_unsigned_varint
from codec.schema import Array, Field, Scalar, Struct
from codec.tags import skip_tag_section


@final
class Kind(enum.Enum):
    """What a step skips after the bytes that it passes."""

    NOTHING = "nothing"
    COMPACT_BYTES = "compact bytes"
    SHORT_BYTES = "bytes with an int16 length"
    LONG_BYTES = "bytes with an int32 length"
    COMPACT_ARRAY = "compact array"
    ARRAY = "array with an int32 count"
    TAGS = "tagged fields"
    NULLABLE_STRUCT = "struct behind a byte that is negative for null"


@final
class Step(NamedTuple):
    """One step. A plain tuple, because the interpreter unpacks some for every partition.

    Attributes:
        passed: How many bytes of fixed size to pass first.
        error_at: Where in them an error code stands, -1 for nowhere.
        kind: What to skip after them.
        inner: The program of an array's element or of the struct.
    """

    passed: int
    error_at: int
    kind: Kind
    inner: "Program | None" = None


@final
class Program(NamedTuple):
    """The steps of one struct, and the leap over most of them, where there is one."""

    steps: tuple[Step, ...]
    leap: Leap | None


def skip_program(
    fields: tuple[Field, ...], version: int, flexible: bool, *, tags: bool, watch: bool = False
) -> Program:
    """Compile the untagged fields of a struct.

    Args:
        fields: The fields, in wire order.
        version: The API version.
        flexible: Whether that version is flexible.
        tags: Whether to skip the struct's tagged section too.
        watch: Whether the error codes among these very fields are noted; those of array elements always are.
    """
    steps: list[Step] = []
    for field in Struct(fields).untagged(version):
        steps += _field_steps(field, version, flexible, watch)
    if tags and flexible:
        steps.append(Step(0, -1, Kind.TAGS))
    fused = _fused(steps)
    return Program(fused, _leap(fused))


def skip(buffer: bytes, offset: int, program: Program, error_codes: set[int], field: str) -> int:
    """The offset after one struct that starts at `offset`; error codes other than 0 are added to the set.

    Raises:
        CodecError: The bytes are no such struct; `field` says in the error what was skipped.
    """
    try:
        offset = _run(buffer, offset, 1, program, error_codes, field)
    except (IndexError, struct.error):
        raise Truncated(len(buffer), field, "the bytes end within it") from None
    if offset > len(buffer):
        raise Truncated(len(buffer), field, f"{offset - len(buffer)} more bytes announced")
    return offset


_NOTHING: Final = Kind.NOTHING
_COMPACT_BYTES: Final = Kind.COMPACT_BYTES
_LONG_BYTES: Final = Kind.LONG_BYTES
_SHORT_BYTES: Final = Kind.SHORT_BYTES
_COMPACT_ARRAY: Final = Kind.COMPACT_ARRAY
_ARRAY: Final = Kind.ARRAY
_TAGS: Final = Kind.TAGS
_NONE: Final = Program((), None)
_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from


def _run(buffer: bytes, offset: int, count: int, program: Program, error_codes: set[int], field: str) -> int:
    """Skip `count` structs.

    Nothing is checked that need not be: reading beyond the end raises IndexError or struct.error, skipping beyond it
    shows in the result, and since every struct that comes here is read somewhere, no count outruns the buffer.
    """
    steps, leap = program
    while count > 0:
        if leap is not None:
            offset, count = leap.over(buffer, offset, count, leap)
            if not count:
                break
        count -= 1
        for passed, error_at, kind, inner in steps:
            if error_at >= 0:
                at = offset + error_at
                if buffer[at + 1] or buffer[at]:
                    error_codes.add(_int16(buffer, at)[0])
            offset += passed
            if kind is _TAGS:
                offset = skip_tag_section(buffer, offset, field) if buffer[offset] else offset + 1
            elif kind is _COMPACT_BYTES:
                length = buffer[offset]
                if length < 0x80:
                    offset += length or 1
                else:
                    length, offset = read_unsigned_varint(buffer, offset, field)
                    offset += length and length - 1
            elif kind is _COMPACT_ARRAY:
                elements = buffer[offset]
                if elements < 2:
                    offset += 1
                else:
                    elements, offset = read_unsigned_varint(buffer, offset, field)
                    if elements > 1:
                        offset = _skip_elements(buffer, offset, elements - 1, inner or _NONE, error_codes, field)
            elif kind is _LONG_BYTES:
                length = _int32(buffer, offset)[0]
                offset += 4 if length < 0 else 4 + length
            elif kind is _ARRAY:
                elements = _int32(buffer, offset)[0]
                offset += 4
                if elements > 0:
                    offset = _skip_elements(buffer, offset, elements, inner or _NONE, error_codes, field)
            elif kind is _SHORT_BYTES:
                length = _int16(buffer, offset)[0]
                offset += 2 if length < 0 else 2 + length
            elif kind is not _NOTHING:
                is_null = buffer[offset] > 0x7F
                offset = offset + 1 if is_null else _run(buffer, offset + 1, 1, inner or _NONE, error_codes, field)
    return offset


def _skip_elements(buffer: bytes, offset: int, count: int, program: Program, error_codes: set[int], field: str) -> int:
    step = program.steps[0]
    if step.kind is _NOTHING and step.error_at < 0 and len(program.steps) == 1:
        return offset + count * step.passed
    return _run(buffer, offset, count, program, error_codes, field)


_WATCHED: Final = frozenset({"error_code", "acknowledge_error_code"})


def _field_steps(field: Field, version: int, flexible: bool, watch: bool) -> tuple[Step, ...]:
    match field.type:
        case Array():
            return (_array_step(field.type.element, version, flexible),)
        case Struct():
            inner = skip_program(field.type.fields, version, flexible, tags=True, watch=watch)
            return (Step(0, -1, Kind.NULLABLE_STRUCT, inner),) if field.nullable_in(version) else inner.steps
        case _:
            return (_scalar_step(field.type, flexible, watch and field.name in _WATCHED),)


def _array_step(element: Scalar | Struct, version: int, flexible: bool) -> Step:
    if isinstance(element, Struct):
        inner = skip_program(element.fields, version, flexible, tags=True, watch=True)
    else:
        inner = Program((_scalar_step(element, flexible, False),), None)
    kind = Kind.COMPACT_ARRAY if flexible else Kind.ARRAY
    return Step(0, -1, kind, inner)


def _scalar_step(of: Scalar, flexible: bool, watch: bool) -> Step:
    if of in SIZE:
        return Step(SIZE[of], 0 if watch else -1, Kind.NOTHING)
    if flexible:
        return Step(0, -1, Kind.COMPACT_BYTES)
    return Step(0, -1, Kind.SHORT_BYTES if of is Scalar.STRING else Kind.LONG_BYTES)


_LEAPT_OVER: Final = frozenset(
    {(Kind.COMPACT_ARRAY, Kind.COMPACT_BYTES, Kind.TAGS), (Kind.ARRAY, Kind.LONG_BYTES)},
)


def _leap(steps: tuple[Step, ...]) -> Leap | None:
    """The leap over a struct of one error code, one array and bytes; None for all others."""
    kinds = tuple(step.kind for step in steps)
    if kinds not in _LEAPT_OVER:
        return None
    array, content, *tags = steps
    if array.error_at < 0 or content.error_at >= 0 or any(step.passed for step in tags):
        return None
    compact = content.kind is Kind.COMPACT_BYTES
    length_at = array.passed + (1 if compact else 4) + content.passed
    return leap_over(array.error_at, array.passed, length_at, compact=compact)


def _fused(steps: list[Step]) -> tuple[Step, ...]:
    """Let each step pass the fixed bytes before it; a step carries one error code at most."""
    fused: list[Step] = []
    for step in steps:
        last = fused[-1] if fused else None
        if last is None or last.kind is not Kind.NOTHING or (last.error_at >= 0 and step.error_at >= 0):
            fused.append(step)
            continue
        error_at = last.passed + step.error_at if step.error_at >= 0 else last.error_at
        fused[-1] = step._replace(passed=last.passed + step.passed, error_at=error_at)
    return tuple(fused)
