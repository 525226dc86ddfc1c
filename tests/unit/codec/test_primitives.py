"""Variable-length numbers and strings: known encodings, and every way to get them wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec.errors import CodecError, Truncated
from codec.primitives import (
    STRING_BYTES_MAX,
    encode_utf8,
    read_compact_string,
    read_unsigned_varint,
    write_compact_string,
    write_unsigned_varint,
)

VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), VARINTS)
def test_varints(value: int, encoded: str) -> None:
    assert write_unsigned_varint(value).hex() == encoded
    assert read_unsigned_varint(b"\xff" + bytes.fromhex(encoded) + b"\xff", 1, "n") == (value, 1 + len(encoded) // 2)


@given(st.integers(0, 2**32 - 1))
def test_a_varint_survives(value: int) -> None:
    encoded = write_unsigned_varint(value)
    assert read_unsigned_varint(encoded, 0, "n") == (value, len(encoded))


def test_a_varint_may_be_longer_than_it_needs_to_be() -> None:
    assert read_unsigned_varint(bytes.fromhex("8180808000"), 0, "n") == (1, 5)


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "80808080"])
def test_a_varint_that_does_not_end_is_truncated(encoded: str) -> None:
    with pytest.raises(Truncated, match="within a varint"):
        read_unsigned_varint(bytes.fromhex(encoded), 0, "n")


@pytest.mark.parametrize("encoded", ["ffffffff10", "ffffffffff01", "808080808000"])
def test_a_varint_beyond_32_bits_is_refused(encoded: str) -> None:
    with pytest.raises(CodecError, match="32 bits") as caught:
        read_unsigned_varint(bytes.fromhex(encoded), 0, "n")
    assert not isinstance(caught.value, Truncated)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_number_that_no_varint_holds_is_not_written(value: int) -> None:
    with pytest.raises(CodecError, match="32 bits"):
        write_unsigned_varint(value)


@pytest.mark.parametrize(("text", "encoded"), [(None, "00"), ("", "01"), ("kafka", "066b61666b61"), ("é", "03c3a9")])
def test_compact_strings(text: str | None, encoded: str) -> None:
    assert write_compact_string(text, "s").hex() == encoded
    assert read_compact_string(bytes.fromhex(encoded), 0, "s") == (text, len(encoded) // 2)


def test_the_longest_string_passes_and_one_byte_more_does_not() -> None:
    longest = "x" * STRING_BYTES_MAX
    assert read_compact_string(write_compact_string(longest, "s"), 0, "s")[0] == longest
    with pytest.raises(CodecError, match="32768 bytes"):
        encode_utf8(longest + "x", "s")
    with pytest.raises(CodecError, match="32768 bytes"):
        read_compact_string(write_unsigned_varint(STRING_BYTES_MAX + 2) + b"x" * (STRING_BYTES_MAX + 1), 0, "s")


@pytest.mark.parametrize("encoded", ["02ff", "03c328", "04eda080"])
def test_text_must_be_utf8(encoded: str) -> None:
    with pytest.raises(CodecError, match="not UTF-8") as caught:
        read_compact_string(bytes.fromhex(encoded), 0, "topics.name")
    assert (caught.value.field, caught.value.offset) == ("topics.name", 1)


def test_a_lone_surrogate_is_not_written() -> None:
    with pytest.raises(CodecError, match="UTF-8"):
        encode_utf8("\ud800", "s")


def test_a_string_longer_than_the_buffer_is_truncated() -> None:
    with pytest.raises(Truncated, match="5 bytes announced, 2 left"):
        read_compact_string(b"\x06ab", 0, "s")
