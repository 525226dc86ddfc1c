"""Sections of tagged fields: found, changed in one place, and the rest kept byte for byte."""

import pytest

from codec.errors import CodecError, Truncated
from codec.tags import read_tag_section, skip_tag_section, with_tag

BEFORE = b"before"
AFTER = b"after"
SECTION = bytes.fromhex("03 01 02 aabb 05 00 c801 01 cc")  # tags 1, 5 and 200
LONG_WINDED = bytes.fromhex("8200 8100 8200 aabb 05 00")  # tags 1 and 5 in varints longer than needed


def changed(section: bytes, tag: int, content: bytes | None) -> str:
    """The section after the change, with what stands around it checked."""
    buffer = BEFORE + section + AFTER
    result = with_tag(buffer, read_tag_section(buffer, len(BEFORE), "tags"), tag, content)
    assert result.startswith(BEFORE)
    assert result.endswith(AFTER)
    return result[len(BEFORE) : -len(AFTER)].hex()


def test_entries_are_found() -> None:
    buffer = BEFORE + SECTION + AFTER
    section = read_tag_section(buffer, len(BEFORE), "tags")
    assert [(entry.tag, buffer[entry.content_start : entry.end]) for entry in section.entries] == [
        (1, b"\xaa\xbb"),
        (5, b""),
        (200, b"\xcc"),
    ]
    assert section.end == len(BEFORE + SECTION) == skip_tag_section(buffer, len(BEFORE), "tags")
    assert section.find(5) is section.entries[1]
    assert section.find(2) is None


@pytest.mark.parametrize(
    ("tag", "content", "expected"),
    [
        (0, b"\x00", "04 00 01 00 01 02 aabb 05 00 c801 01 cc"),
        (3, b"\xee", "04 01 02 aabb 03 01 ee 05 00 c801 01 cc"),
        (300, b"", "04 01 02 aabb 05 00 c801 01 cc ac02 00"),
        (1, b"\x11", "03 01 01 11 05 00 c801 01 cc"),
        (200, b"\x01\x02", "03 01 02 aabb 05 00 c801 02 0102"),
        (5, None, "02 01 02 aabb c801 01 cc"),
        (200, None, "02 01 02 aabb 05 00"),
    ],
)
def test_one_entry_is_put_in_replaced_or_taken_out(tag: int, content: bytes | None, expected: str) -> None:
    assert changed(SECTION, tag, content) == expected.replace(" ", "")


def test_taking_out_what_is_not_there_returns_the_same_object() -> None:
    buffer = BEFORE + SECTION
    assert with_tag(buffer, read_tag_section(buffer, len(BEFORE), "tags"), 9, None) is buffer


def test_an_empty_section_gets_its_first_entry() -> None:
    assert changed(b"\x00", 0, b"\x07") == "01000107"


def test_other_entries_keep_their_bytes_however_they_were_written() -> None:
    assert changed(LONG_WINDED, 0, b"") == "03 00 00 8100 8200 aabb 05 00".replace(" ", "")
    assert changed(LONG_WINDED, 5, None) == "01 8100 8200 aabb".replace(" ", "")


def test_a_count_that_outgrows_one_byte_is_written_in_two() -> None:
    full = b"\x7f" + b"".join(bytes((tag, 0)) for tag in range(1, 128))
    assert changed(full, 0, b"") == "8001" + "0000" + full[1:].hex()


@pytest.mark.parametrize("length", range(len(SECTION)))
def test_a_section_that_is_cut_short_is_truncated(length: int) -> None:
    with pytest.raises(Truncated):
        read_tag_section(SECTION[:length], 0, "tags")
    with pytest.raises(Truncated):
        skip_tag_section(SECTION[:length], 0, "tags")


def test_a_tag_that_stands_there_twice_is_refused() -> None:
    with pytest.raises(CodecError, match="tag 1 twice"):
        read_tag_section(bytes.fromhex("02 01 00 01 00"), 0, "tags")


def test_a_count_beyond_all_bytes_makes_nothing() -> None:
    with pytest.raises(CodecError, match="4294967295 tagged fields; 1024 are the most"):
        read_tag_section(bytes.fromhex("ffffffff0f 0100 0200"), 0, "tags")
    with pytest.raises(Truncated):
        read_tag_section(bytes.fromhex("8008 0100 0200"), 0, "tags")
