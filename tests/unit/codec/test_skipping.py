"""The skipper where bytes lie: counts and lengths that nothing backs."""

import pytest

from codec.errors import CodecError, Truncated
from codec.schema import INT16, INT32, RECORDS, STRING, Field, array, field, struct
from codec.skipping import Kind, skip, skip_program

NOTED = array("partitions", field("index", INT32), field("error_code", INT16))
PLAIN = array("replicas", INT32)
NAMED = array("topics", field("name", STRING))
MAYBE = struct("cursor", field("topic", STRING), nullable=True, default=None)


def end_of(of: Field, body: str, *, flexible: bool) -> tuple[int, set[int]]:
    program = skip_program((of,), 0, flexible, tags=False)
    error_codes: set[int] = set()
    return skip(bytes.fromhex(body), 0, program, error_codes, "body"), error_codes


@pytest.mark.parametrize("of", [NOTED, PLAIN, NAMED])
@pytest.mark.parametrize(("count", "flexible"), [("7fffffff", False), ("ffffffff0f", True)])
def test_a_count_that_nothing_backs_ends_at_the_end_of_the_buffer(of: Field, count: str, flexible: bool) -> None:
    for zeros in ("", "00", "00" * 100):
        with pytest.raises(Truncated):
            end_of(of, count + zeros, flexible=flexible)


@pytest.mark.parametrize("body", ["00000001 7fff", "00000001", "000000", "00000001 0005 61626364"])
def test_a_length_that_nothing_backs_is_truncated(body: str) -> None:
    with pytest.raises(Truncated):
        end_of(NAMED, body, flexible=False)


def test_error_codes_are_noted_with_their_sign() -> None:
    body = "00000003 00000000 0006 00000001 0000 00000002 ffff"
    assert end_of(NOTED, body, flexible=False) == (22, {6, -1})
    flexible = "04 00000000 0006 00 00000001 0100 00 00000002 0000 00"
    assert end_of(NOTED, flexible, flexible=True) == (22, {6, 256})


def test_null_arrays_and_structs_take_no_more_than_their_mark() -> None:
    assert end_of(PLAIN, "ffffffff", flexible=False)[0] == 4
    assert end_of(PLAIN, "00 aa", flexible=True)[0] == 1
    assert end_of(MAYBE, "ff aa", flexible=True)[0] == 1
    assert end_of(MAYBE, "01 02 61 00 aa", flexible=True)[0] == 4


def test_neighbours_of_fixed_size_are_passed_at_once() -> None:
    partition = (field("index", INT32), field("error_code", INT16), field("epoch", INT32), field("name", STRING))
    program = skip_program(partition, 0, True, tags=True, watch=True)
    assert [(step.passed, step.error_at, step.kind) for step in program.steps] == [
        (10, 4, Kind.COMPACT_BYTES),
        (0, -1, Kind.TAGS),
    ]


def test_an_endless_varint_is_refused() -> None:
    with pytest.raises(CodecError, match="32 bits"):
        end_of(NAMED, "ffffffffff01", flexible=True)


@pytest.mark.parametrize("zero", ["00", "80 00", "80 80 00", "80 80 80 80 00"])
def test_null_may_be_written_in_more_bytes_than_it_needs(zero: str) -> None:
    """Kafka reads such a varint too; a skipper that counts one back from it goes astray."""
    size = len(bytes.fromhex(zero))
    assert end_of(PLAIN, f"{zero} aa", flexible=True)[0] == size
    assert end_of(field("name", STRING, nullable=True), f"{zero} aa", flexible=True)[0] == size
    records = array("partitions", field("error_code", INT16), field("records", RECORDS, nullable=True))
    assert end_of(records, f"02 0000 {zero} 00 aa", flexible=True)[0] == 4 + size


def test_a_leap_is_taken_only_where_nothing_else_is_there() -> None:
    partitions = array(
        "partitions",
        field("error_code", INT16),
        array("aborted", INT32, nullable=True),
        field("records", RECORDS, nullable=True),
    )
    usual = "0000 00 03 aabb 00"
    for other in (
        "0000 01 03 aabb 00",
        "0000 02 00000001 03 aabb 00",
        "0000 00 03 aabb 01 05 02 ffff",
        "0000 00 00 00",
    ):
        for body in (usual + other, other + usual):
            assert end_of(partitions, "03" + body, flexible=True) == (1 + len(bytes.fromhex(body)), set())
    assert end_of(partitions, "03" + usual + "0006 00 03 aabb 00", flexible=True)[1] == {6}
