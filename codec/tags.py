"""A section of tagged fields (KIP-482) as offsets: found, and one entry put in, replaced or taken out.

The other entries are copied byte for byte, so that what a later Kafka adds there survives. Knows no field by name.
"""

from dataclasses import dataclass
from typing import Final, final

from codec.errors import CodecError
from codec.primitives import read_unsigned_varint, slice_end, write_unsigned_varint

TAGS_MAX: Final = 1024
"""Kafka has no limit and uses 10 at most; each costs a hundred times its bytes in memory here."""


@final
@dataclass(frozen=True, slots=True)
class TagEntry:
    """One tagged field: its number, where the entry begins, and where its content lies."""

    tag: int
    start: int
    content_start: int
    end: int


@final
@dataclass(frozen=True, slots=True)
class TagSection:
    """A whole section, its count included: offsets in the buffer that it was read from."""

    start: int
    entries_start: int
    end: int
    entries: tuple[TagEntry, ...]

    def find(self, tag: int) -> TagEntry | None:
        """The entry with this number, if there is one."""
        for entry in self.entries:
            if entry.tag == tag:
                return entry
        return None


def read_tag_section(buffer: bytes, offset: int, field: str) -> TagSection:
    """Read the section that starts at `offset`.

    Raises:
        CodecError: It is malformed, a number stands in it twice, or it has more than `TAGS_MAX` fields.
    """
    count, at = read_unsigned_varint(buffer, offset, field)
    if count > TAGS_MAX:
        raise CodecError(offset, field, f"{count} tagged fields; {TAGS_MAX} are the most")
    entries_start = at
    entries: list[TagEntry] = []
    seen: set[int] = set()
    for _ in range(count):
        tag, content_start = read_unsigned_varint(buffer, at, field)
        if tag in seen:
            raise CodecError(at, field, f"tag {tag} twice")
        seen.add(tag)
        size, content_start = read_unsigned_varint(buffer, content_start, field)
        end = slice_end(buffer, content_start, size, field)
        entries.append(TagEntry(tag, at, content_start, end))
        at = end
    return TagSection(offset, entries_start, at, tuple(entries))


def skip_tag_section(buffer: bytes, offset: int, field: str) -> int:
    """The offset after the section that starts at `offset`; its contents are not looked at."""
    count, offset = read_unsigned_varint(buffer, offset, field)
    for _ in range(count):
        _, offset = read_unsigned_varint(buffer, offset, field)
        size, offset = read_unsigned_varint(buffer, offset, field)
        offset = slice_end(buffer, offset, size, field)
    return offset


def with_tag(buffer: bytes, section: TagSection, tag: int, content: bytes | None) -> bytes:
    """The buffer with that tagged field set to `content`, or without it when `content` is None.

    A new entry goes before the first one with a higher number: Kafka writes tags in ascending order. Every byte outside
    the entry and the count is the same.
    """
    old = section.find(tag)
    if old is None and content is None:
        return buffer
    cut, resume = (old.start, old.end) if old else (_place(section, tag),) * 2
    count = len(section.entries) - (old is not None) + (content is not None)
    entry = b""
    if content is not None:
        entry = write_unsigned_varint(tag) + write_unsigned_varint(len(content)) + content
    return b"".join(
        (
            buffer[: section.start],
            write_unsigned_varint(count),
            buffer[section.entries_start : cut],
            entry,
            buffer[resume:],
        )
    )


def _place(section: TagSection, tag: int) -> int:
    for entry in section.entries:
        if entry.tag > tag:
            return entry.start
    return section.end
