"""Signed varints, byte by byte and at their limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec.errors import CodecError, Truncated
from codec.varints import read_varint, read_varlong, write_varint, write_varlong


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "80 01"),
        (2**31 - 1, "fe ff ff ff 0f"),
        (-(2**31), "ff ff ff ff 0f"),
    ],
)
def test_small_numbers_are_short(number: int, encoded: str) -> None:
    assert write_varint(number, "n").hex(" ") == encoded
    assert write_varlong(number, "n").hex(" ") == encoded
    assert read_varint(bytes.fromhex(encoded), 0, "n") == (number, len(bytes.fromhex(encoded)))


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_every_long_survives(number: int, after: bytes) -> None:
    encoded = write_varlong(number, "n")
    assert read_varlong(encoded + after, 0, "n") == (number, len(encoded))
    for length in range(len(encoded)):
        with pytest.raises(Truncated):
            read_varlong(encoded[:length], 0, "n")


@pytest.mark.parametrize("encoded", ["ff ff ff ff 1f", "80 80 80 80 80 00"])
def test_more_than_32_bits_are_refused(encoded: str) -> None:
    with pytest.raises(CodecError, match="more than 32 bits"):
        read_varint(bytes.fromhex(encoded), 0, "n")


def test_more_than_64_bits_are_refused() -> None:
    with pytest.raises(CodecError, match="more than 64 bits"):
        read_varlong(bytes.fromhex("ff ff ff ff ff ff ff ff ff 03"), 0, "n")


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_numbers_out_of_range_are_refused(number: int) -> None:
    with pytest.raises(CodecError, match="does not fit in 32 bits"):
        write_varint(number, "n")
