"""Leaps over the partitions of an answer that look as nearly all do: no error, an empty array, and bytes at the end.

`codec.skipping` finds out which structs can be leapt over and takes its ordinary steps wherever a leap ends early. A
leap unpacks one run of bytes a struct, and never more of them than decide: the error code, the count of the array, and
the length of the bytes. It stops in front of the first struct that looks otherwise; properties hold leaps and steps
equal.

Every loop here runs once for each partition of each Fetch answer. Nothing is compared that shows later anyway: a length
that leads beyond the buffer makes the next unpacking fail.
"""

import struct
from collections.abc import Callable
from itertools import repeat
from operator import length_hint
from typing import Any, Final, NamedTuple, final


@final
class Leap(NamedTuple):
    """How to pass many structs of one kind.

    Attributes:
        over: `over(buffer, offset, count, leap)` passes up to `count` structs and returns the offset after them, which
            may be beyond the buffer, and how many are left: the next one needs a closer look.
        unpack: Each reads what `over` looks at. The first reads from the start of a struct; each of the others begins
            one empty struct further on than the one before, so that nothing but the lengths of the bytes has to be
            added up.
        length_at: Where the length of the bytes stands, from the start of the struct.
    """

    over: "Callable[[bytes, int, int, Leap], tuple[int, int]]"
    unpack: tuple[Callable[[bytes, int], tuple[Any, ...]], ...]
    length_at: int


def leap_over(error_at: int, count_at: int, length_at: int, *, compact: bool) -> Leap:
    """The leap over structs of fixed fields, an empty array, fixed fields again, and bytes.

    Args:
        error_at: Where the int16 error code stands, from the start of the struct.
        count_at: Where the count of the array stands.
        length_at: Where the length of the bytes stands, if the array is empty.
        compact: Whether counts and lengths are varints, plus one, and tagged fields follow, nearly always none.
    """
    to_count = f"xh{count_at - error_at - 2}x"
    if compact:
        # Bytes have no order, and the error code only has to be 0: the machine's own order is the fastest.
        form = struct.Struct(f"<{error_at}{to_count}B{length_at - count_at - 1}xBB")
        return Leap(_over_compact, (form.unpack_from,), length_at)
    rest = f"{to_count}i{length_at - count_at - 4}xI"
    size = length_at + 4
    forms = (struct.Struct(f">{error_at + empty * size}{rest}") for empty in range(_GROUP))
    return Leap(_over_plain, tuple(form.unpack_from for form in forms), length_at)


_GROUP: Final = 128
_INT32_MAX: Final = 0x7FFFFFFF


def _over_plain(buffer: bytes, offset: int, count: int, leap: Leap) -> tuple[int, int]:
    """Counts and lengths are int32, and negative for null.

    Null bytes, read as an unsigned number, lead beyond any buffer, and the last leap is taken back.
    """
    size = leap.length_at + 4
    length = 0
    while count > 0:
        group = leap.unpack[:count]
        turns = iter(group)
        try:
            for unpack in turns:
                error_code, elements, length = unpack(buffer, offset)
                if error_code or elements > 0:
                    passed = len(group) - length_hint(turns) - 1
                    return offset + passed * size, count - passed
                offset += length
        except struct.error:
            # The buffer ends within this one, as in nearly every chunk.
            passed = len(group) - length_hint(turns) - 1
            offset += passed * size
            count -= passed
            break
        offset += len(group) * size
        count -= len(group)
    if length > _INT32_MAX:
        return offset - size - length, count + 1
    return offset, count


def _over_compact(buffer: bytes, offset: int, count: int, leap: Leap) -> tuple[int, int]:
    """Counts and lengths are varints, plus one, and a byte 0 follows: no tagged fields.

    A varint has seven bits a byte, the lowest first, and the highest bit of all its bytes but the last is set: those
    bits are taken off the sum at once.
    """
    unpack, at = leap.unpack[0], leap.length_at
    two_bytes_at = at + 1 - 0x80
    three_bytes_at = at + 2 - 0x80 - (0x80 << 7)
    turns = repeat(None, count)
    try:
        for _ in turns:
            error_code, elements, low, high = unpack(buffer, offset)
            if error_code or elements > 1:
                break
            if low < 0x80:
                end = offset + at + (low or 1)
            elif high < 0x80:
                if not high:
                    break  # Zero, in more bytes than it needs, is null.
                end = offset + two_bytes_at + low + high * 0x80
            elif 0 < (higher := buffer[offset + at + 2]) < 0x80:
                end = offset + three_bytes_at + low + high * 0x80 + higher * 0x4000
            else:
                break
            if buffer[end]:
                break
            offset = end + 1
        else:
            return offset, 0
    except (IndexError, struct.error):
        pass  # The buffer ends within this one, as in nearly every chunk.
    return offset, length_hint(turns) + 1
