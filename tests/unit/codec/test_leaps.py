"""Leaps end where ordinary steps end, and find what they find, whatever the partitions look like."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec.api_keys import ApiKey
from codec.errors import CodecError
from codec.primitives import write_unsigned_varint
from codec.skipping import Program, skip
from codec.walk import plan_of

PLAIN, ADJACENT, COMPACT = 11, 4, 17
"""Versions of Fetch: int32 lengths, with a field between the count and the length and without; varints."""

FIXED: Final = {PLAIN: (b"\1" * 24, b"\xff" * 4), ADJACENT: (b"\1" * 16, b""), COMPACT: (b"\1" * 24, b"\xff" * 4)}
"""What stands between the error code and the count, and between the count and the length."""

COMMON: Final = st.just((0, 0, 3))
ERRORS: Final = st.sampled_from((0, 0, 0, 1, 6, -1, 256))
COUNTS: Final = st.sampled_from((0, 0, -1, -1, 1, 2, -2, 200))
LENGTHS: Final = st.sampled_from((0, 1, 126, 127, 128, 200, 16382, 16383, 16384, 40000, -1, -2, -3))
PARTITIONS: Final = st.lists(COMMON | COMMON | st.tuples(ERRORS, COUNTS, LENGTHS), max_size=8)


def without_leaps(program: Program) -> Program:
    steps = (step._replace(inner=step.inner and without_leaps(step.inner)) for step in program.steps)
    return Program(tuple(steps), None)


def number(version: int, value: int) -> bytes:
    """A count or a length; as a varint, -2 is null in two bytes and -3 in three."""
    if version != COMPACT:
        return value.to_bytes(4, "big", signed=True)
    if value < 0:
        return b"\x80" * (-1 - value) + b"\0"
    return write_unsigned_varint(value + 1)


def partition(version: int, error_code: int, count: int, length: int) -> bytes:
    before, between = FIXED[version]
    aborted = bytes(16 + (version == COMPACT)) * max(0, count)
    start = b"\0\0\0\7" + error_code.to_bytes(2, "big", signed=True) + before
    end = bytes(max(0, length)) + b"\0" * (version == COMPACT)
    return start + number(version, count) + aborted + between + number(version, length) + end


def body(version: int, topics: list[list[bytes]]) -> bytes:
    name = {PLAIN: b"\0\1t", ADJACENT: b"\0\1t", COMPACT: bytes(16)}[version]
    fixed = 4 if version == ADJACENT else 10
    end = b"\0" * (version == COMPACT)

    def counted(elements: list[bytes]) -> bytes:
        return number(version, len(elements)) + b"".join(elements)

    return bytes(fixed) + counted([name + counted(partitions) + end for partitions in topics])


def outcome(data: bytes, program: Program) -> tuple[int, set[int]] | None:
    """Where the answer ends and its error codes, None where it is refused."""
    error_codes: set[int] = set()
    try:
        return skip(data, 0, program, error_codes, "body"), error_codes
    except CodecError:
        return None


@pytest.mark.parametrize("version", [PLAIN, ADJACENT, COMPACT])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_leaps_and_steps_agree(version: int, data: st.DataObject) -> None:
    shapes = data.draw(st.lists(PARTITIONS, max_size=3))
    whole = bytearray(body(version, [[partition(version, *shape) for shape in topic] for topic in shapes]))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(whole)))
        whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    cut = bytes(whole[: data.draw(st.none() | st.integers(0, len(whole)))])
    program = plan_of(ApiKey.FETCH, version).before
    assert outcome(cut, program) == outcome(cut, without_leaps(program))


@pytest.mark.parametrize("version", [PLAIN, ADJACENT, COMPACT])
@pytest.mark.parametrize("many", [1, 127, 128, 129, 300])
@pytest.mark.parametrize(
    "shape", [(0, 0, 3), (0, -1, 300), (0, 0, -1), (0, 1, 3), (6, 0, 3), (0, 0, -2), (0, -1, 20000)]
)
def test_many_partitions_with_an_odd_one_anywhere(version: int, many: int, shape: tuple[int, int, int]) -> None:
    program = plan_of(ApiKey.FETCH, version).before
    usual = partition(version, 0, 0, 3)
    for at in {0, many // 2, many - 1}:
        partitions = [usual] * many
        partitions[at] = partition(version, *shape)
        whole = body(version, [partitions, [usual]])
        assert outcome(whole, program) == (len(whole), {6} & {shape[0]})
        assert outcome(whole[:-1], program) is None


def test_a_count_as_large_as_any_is_not_taken_for_a_length() -> None:
    program = plan_of(ApiKey.FETCH, ADJACENT).before
    usual, odd = partition(ADJACENT, 0, 0, 3), partition(ADJACENT, 0, 0, 3)
    for count in (1, 0x7FFFFFFF):
        broken = odd[:22] + count.to_bytes(4, "big") + odd[26:]
        assert outcome(body(ADJACENT, [[usual, broken, usual]]), program) is None
