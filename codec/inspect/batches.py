"""Record batches (format 2) as entries: the 61 bytes before the records, then each record, its headers and its value.

Compressed records stay one opaque entry. A checksum that does not agree is a fault, named once the
batch has been shown. Older message sets (magic 0 and 1) are named, not read. Source: DefaultRecordBatch and
DefaultRecord of Kafka.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from codec.batches import COMPRESSIONS, HEADER_BYTES, PREFIX_BYTES
from codec.checksum import crc32c
from codec.errors import CodecError
from codec.inspect.model import Entry
from codec.inspect.records import ValueKind, record_entries

MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_LENGTH_MIN: Final = HEADER_BYTES - PREFIX_BYTES
_OLD_LENGTH_MIN: Final = 14

_COMPRESSION_MASK: Final = 0x07
_FLAGS: Final = ((0x08, "log append time"), (0x10, "transactional"), (0x20, "control"), (0x40, "delete horizon"))
_CONTROL: Final = 0x20

_FIELDS: Final = (
    ("base_offset", ">q"),
    ("batch_length", ">i"),
    ("partition_leader_epoch", ">i"),
    ("magic", ">b"),
    ("crc", ">I"),
    ("attributes", ">h"),
    ("last_offset_delta", ">i"),
    ("base_timestamp", ">q"),
    ("max_timestamp", ">q"),
    ("producer_id", ">q"),
    ("producer_epoch", ">h"),
    ("base_sequence", ">i"),
    ("records_count", ">i"),
)


class Span(NamedTuple):
    """Where a batch lies in a buffer, and its format."""

    start: int
    end: int
    magic: int


def find_batch(buffer: bytes, offset: int, end: int) -> Span | None:
    """The batch that begins at `offset`; None when it ends after `end`, as the last one of an answer may.

    Raises:
        CodecError: The length is one that no batch has.
    """
    if end - offset <= MAGIC_AT:
        return None
    (length,) = struct.unpack_from(">i", buffer, offset + 8)
    magic = buffer[offset + MAGIC_AT]
    if magic > 2:
        raise CodecError(offset + MAGIC_AT, "batch.magic", f"{magic}; Kafka has 0, 1 and 2")
    least = _LENGTH_MIN if magic == 2 else _OLD_LENGTH_MIN
    if length < least:
        raise CodecError(offset + 8, "batch.batch_length", f"{length}; the least with magic {magic} is {least}")
    if offset + PREFIX_BYTES + length > end:
        return None
    return Span(offset, offset + PREFIX_BYTES + length, magic)


def show_records(buffer: bytes, start: int, end: int, depth: int, is_metadata: bool) -> Iterator[Entry]:
    """The entries of every batch in a span; a broken off batch at its end is normal in an answer to Fetch.

    Raises:
        CodecError: While iterating.
    """
    while start < end:
        span = find_batch(buffer, start, end)
        if span is None:
            yield Entry(start, end, depth, "batch", bytes(buffer[start:end]), "goes on behind the end")
            return
        yield Entry(start, start, depth, "batch", is_parts=True)
        yield from batch_entries(buffer, span, depth + 1, is_metadata=is_metadata)
        start = span.end


def batch_entries(buffer: bytes, span: Span, depth: int, *, is_metadata: bool = False) -> Iterator[Entry]:
    """The entries of one batch.

    Args:
        buffer: Where it lies.
        span: From where to where; its length is consistent, nothing else has been looked at.
        depth: Of its fields.
        is_metadata: Whether the values are metadata records.

    Raises:
        CodecError: While iterating.
    """
    if span.magic < 2:
        yield Entry(
            span.start,
            span.end,
            depth,
            "message",
            bytes(buffer[span.start : span.end]),
            f"magic {span.magic}, not read",
        )
        return
    attributes, count, crc = 0, 0, 0
    computed = crc32c(buffer[span.start + _CRC_FROM : span.end])
    at = span.start
    for name, form in _FIELDS:
        (value,) = struct.unpack_from(form, buffer, at)
        note = ""
        if name == "attributes":
            attributes, note = value, _attributes_note(value, at)
        elif name == "records_count":
            count = value
        elif name == "last_offset_delta" and value < 0:
            raise CodecError(at, "batch.last_offset_delta", f"{value}, which is negative")
        elif name == "crc":
            crc, note = value, "agrees" if value == computed else "does not agree"
        yield Entry(at, at + struct.calcsize(form), depth, name, value, note)
        at += struct.calcsize(form)
    if attributes & _COMPRESSION_MASK:
        yield Entry(at, span.end, depth, "records", bytes(buffer[at : span.end]), "compressed, not read")
    else:
        kind: ValueKind = "control" if attributes & _CONTROL else "metadata" if is_metadata else "plain"
        if count < 0:
            raise CodecError(at - 4, "batch.records_count", f"{count}, which is negative")
        for index in range(count):
            at = yield from record_entries(buffer, at, span.end, index, depth, kind)
        if at != span.end:
            raise CodecError(at, "batch", f"{span.end - at} bytes left over in the batch")
    if crc != computed:
        raise CodecError(span.start + _CRC_AT, "batch.crc", f"{crc} in the batch, {computed} over its bytes")


def _attributes_note(attributes: int, at: int) -> str:
    kind = attributes & _COMPRESSION_MASK
    if kind >= len(COMPRESSIONS):
        raise CodecError(at, "batch.attributes", f"no compression has the number {kind}")
    return ", ".join([COMPRESSIONS[kind], *(word for bit, word in _FLAGS if attributes & bit)])
