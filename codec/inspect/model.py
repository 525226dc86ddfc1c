"""What an annotated tree is: entries in the order of their bytes, each with its place, name, value and depth.

A tree is an iterator, not nested objects: entries are made as they are asked for, so a frame of 100 MB is shown with
the memory of one entry, and what was read before a fault is there whatever comes after. Knows no Kafka message.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, final


@final
class Secret:
    """Stands for a value that is never shown; only its size is kept."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(secret)"


SECRET: Final = Secret()


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """Some bytes and what they mean.

    Every byte of a section belongs to exactly one entry: the one of an array has the bytes of the count, the one of a
    struct none, and those of their parts follow, one level deeper.

    Attributes:
        start: Offset of the first byte in the section's buffer.
        end: Offset after the last one.
        depth: 0 for the parts of a frame.
        name: Kafka's name in snake_case, `[3]` for an element, or a word of ours such as `header`.
        value: What was read; None for null and for what only has parts; SECRET for what must not be shown.
        note: What else there is to say, such as the name of an error code.
        is_parts: Whether only the parts below have values.
    """

    start: int
    end: int
    depth: int
    name: str
    value: Any = None
    note: str = ""
    is_parts: bool = False


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """Where bytes stop to make sense; it is the last item of its section.

    Attributes:
        offset: Near which byte of the section's buffer.
        field: Dotted path in Kafka's words.
        reason: One clause.
    """

    offset: int
    field: str
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One frame, batch or remark: a title, and the tree of its bytes.

    Attributes:
        title: What it is, for example `request Metadata v13`.
        buffer: The bytes that the offsets of the items are about.
        items: Entries, and at most one fault at the end; to be iterated once.
        base: What to add to an offset to find the byte in the input, where that makes sense.
    """

    title: str
    buffer: bytes = b""
    items: Iterator[Entry | Fault] = field(default_factory=lambda: iter(()))
    base: int = 0


@final
class UnreadableInput(Exception):
    """Input that is none of what can be inspected; the message says what to do."""
