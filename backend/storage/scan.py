"""Batches of a file, one after the other, each with its checksum compared.

Knows what a batch is and nothing of names, order or meaning; `segments` and `snapshots` judge those. Memory is bounded
by a window, or by the largest batch that is really there: a length that reaches beyond the file allocates nothing.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, final

from backend.storage.disk import File
from codec.batches import HEADER_BYTES, BatchSpan, batch_size, read_batch_span
from codec.errors import CodecError, Truncated

WINDOW_BYTES: Final = 4 << 20

_MAGIC_AT: Final = 16
_MAGIC: Final = b"\x02"


@final
class Found(NamedTuple):
    """A batch, its position in the file, and where in a buffer its bytes are."""

    position: int
    span: BatchSpan
    buffer: bytes
    at: int

    @property
    def encoded(self) -> bytes:
        """The bytes of the batch."""
        return self.buffer[self.at : self.at + self.span.size]


def walk(file: File, position: int = 0, window_bytes: int = WINDOW_BYTES) -> Iterator[Found]:
    """The batches from `position`, where one starts, to the end of the file.

    Raises:
        CodecError: While iterating, at the first batch that is not whole and sound; its offset is that in the file.
    """
    size = file.size
    while position < size:
        buffer = _window(file, position, size, window_bytes)
        at = 0
        try:
            while at < len(buffer):
                span = read_batch_span(buffer, at)
                yield Found(position + at, span, buffer, at)
                at += span.size
        except Truncated as error:
            if not at or position + len(buffer) >= size:
                raise CodecError(position + error.offset, error.field, error.reason) from None
        except CodecError as error:
            raise CodecError(position + error.offset, error.field, error.reason) from None
        position += at


def sound_batch_from(file: File, position: int) -> int | None:
    """Position of the first batch with the right checksum at or behind a place where none need start; None for none."""
    size = file.size
    while position < size:
        buffer = file.read(position, WINDOW_BYTES)
        magic_at = buffer.find(_MAGIC, _MAGIC_AT)
        while magic_at >= 0:
            at = magic_at - _MAGIC_AT
            if _is_sound(file, position + at, buffer, at, size):
                return position + at
            magic_at = buffer.find(_MAGIC, magic_at + 1)
        if position + len(buffer) >= size:
            break
        position += len(buffer) - _MAGIC_AT
    return None


def _window(file: File, position: int, size: int, window_bytes: int) -> bytes:
    buffer = file.read(position, max(window_bytes, HEADER_BYTES))
    try:
        wanted = batch_size(buffer, 0)
    except CodecError:
        return buffer
    return file.read(position, wanted) if len(buffer) < wanted <= size - position else buffer


def _is_sound(file: File, position: int, buffer: bytes, at: int, size: int) -> bool:
    try:
        wanted = batch_size(buffer, at)
        if buffer[at] or wanted > size - position:
            return False
        if wanted > len(buffer) - at:
            buffer, at = file.read(position, wanted), 0
        read_batch_span(buffer, at)
    except CodecError:
        return False
    return True
