"""One record of a batch: key, value and headers behind a length, in signed varints.

    length           varint, of all that follows
    attributes       int8, unused
    timestamp_delta  varlong, to the batch's base timestamp
    offset_delta     varint, to the batch's base offset
    key, value       varint length, -1 for null, then the bytes
    headers          varint count, then for each key (varint length, UTF-8) and value (as above)

Batches are `codec.batches`' business; what a value holds is that of `codec.metadata_records` and
`codec.control_records`. Source: DefaultRecord of Kafka.
"""

from typing import Final, NamedTuple, final

from codec.errors import CodecError
from codec.primitives import slice_end
from codec.varints import read_varint, read_varlong, write_varint, write_varlong

RECORD_BYTES_MIN: Final = 7
"""A record without key, value and headers."""

_HEADER_BYTES_MIN: Final = 2

RecordHeader = tuple[str, bytes | None]
"""Key and value of an application's header; a key may come more than once."""


@final
class LogRecord(NamedTuple):
    """A record; its offset and timestamp are its batch's plus the deltas. A plain tuple, because logs are long."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[RecordHeader, ...] = ()
    timestamp_delta: int = 0
    offset_delta: int = 0


def read_record(buffer: bytes, offset: int) -> tuple[LogRecord, int]:
    """Read the record that starts at `offset`; returns it and the offset after it.

    Raises:
        CodecError: It is malformed, or its parts do not fill its length.
    """
    size, start = read_varint(buffer, offset, "record.length")
    if size < 0:
        raise CodecError(offset, "record.length", f"{size}")
    end = slice_end(buffer, start, size, "record")
    timestamp_delta, at = read_varlong(buffer, start + 1, "record.timestamp_delta")
    offset_delta, at = read_varint(buffer, at, "record.offset_delta")
    key, at = _read_bytes(buffer, at, "record.key")
    value, at = _read_bytes(buffer, at, "record.value")
    headers, at = _read_headers(buffer, at)
    if at != end:
        raise CodecError(at, "record", f"its length says {size} bytes, its parts have {at - start}")
    return LogRecord(key, value, headers, timestamp_delta, offset_delta), end


def encode_record(record: LogRecord) -> bytes:
    """The bytes of a record, its length included.

    Raises:
        CodecError: A delta is out of range, or a header's key is no text.
    """
    parts = [
        b"\0",
        write_varlong(record.timestamp_delta, "record.timestamp_delta"),
        write_varint(record.offset_delta, "record.offset_delta"),
        _bytes(record.key, "record.key"),
        _bytes(record.value, "record.value"),
        write_varint(len(record.headers), "record.headers"),
    ]
    for key, value in record.headers:
        try:
            encoded = key.encode()
        except UnicodeEncodeError:
            raise CodecError(0, "record.headers.key", "not a string that UTF-8 can carry") from None
        parts += (_bytes(encoded, "record.headers.key"), _bytes(value, "record.headers.value"))
    body = b"".join(parts)
    return write_varint(len(body), "record.length") + body


def _read_bytes(buffer: bytes, offset: int, field: str) -> tuple[bytes | None, int]:
    length, start = read_varint(buffer, offset, field)
    if length < 0:
        return None, start
    end = slice_end(buffer, start, length, field)
    return bytes(buffer[start:end]), end


def _read_headers(buffer: bytes, offset: int) -> tuple[tuple[RecordHeader, ...], int]:
    count, at = read_varint(buffer, offset, "record.headers")
    if count == 0:
        return (), at
    if count < 0 or count * _HEADER_BYTES_MIN > len(buffer) - at:
        raise CodecError(offset, "record.headers", f"{count} headers announced, {len(buffer) - at} bytes left")
    headers: list[RecordHeader] = []
    for _ in range(count):
        key_at = at
        key, at = _read_bytes(buffer, at, "record.headers.key")
        if key is None:
            raise CodecError(key_at, "record.headers.key", "null")
        try:
            text = key.decode()
        except UnicodeDecodeError:
            raise CodecError(key_at, "record.headers.key", "not UTF-8") from None
        value, at = _read_bytes(buffer, at, "record.headers.value")
        headers.append((text, value))
    return tuple(headers), at


def _bytes(content: bytes | None, field: str) -> bytes:
    if content is None:
        return b"\x01"
    return write_varint(len(content), field) + content
