"""One record of a batch as entries: its deltas, key, value and headers.

Values of the metadata log and of control batches are taken apart with their tables. All lengths here are signed varints
in zigzag form, and a negative one is null. Sits below `batches`. Source: DefaultRecord of Kafka.
"""

import struct
from collections.abc import Generator
from dataclasses import replace
from typing import Final, Literal

from codec.control_records import CONTROL_TABLES, ControlType, control_type_of
from codec.errors import CodecError, Truncated
from codec.inspect.body import BodyReader, Entries
from codec.inspect.model import SECRET, Entry
from codec.inspect.secrets import SECRET_RECORD_FIELDS
from codec.metadata_records import FRAME_VERSION, METADATA_TABLES
from codec.primitives import read_unsigned_varint
from codec.schema import Record
from codec.varints import read_varint, read_varlong

ValueKind = Literal["plain", "metadata", "control"]
"""Whose the values of a batch's records are."""

_Content = Generator[Entry, None, tuple[bytes | None, int]]
"""Yields one entry; returns the content and the offset after it."""

_VERSION: Final = struct.Struct(">h")
_CONTROL_TABLES: Final[dict[int, Record]] = dict(CONTROL_TABLES)
_MARKERS: Final = (ControlType.ABORT, ControlType.COMMIT)


def record_entries(buffer: bytes, offset: int, end: int, index: int, depth: int, kind: ValueKind) -> Entries:
    """The entries of the record that starts at `offset`; returns the offset after it.

    Args:
        buffer: Where it lies.
        offset: Of its length.
        end: Where its batch ends.
        index: Which of the batch's records it is.
        depth: Of its first entry.
        kind: What its value is.

    Raises:
        CodecError: While iterating.
    """
    length, start = _signed(buffer, offset, end, "record.length")
    end = _checked_end(start, length, end, "record.length")
    yield Entry(offset, start, depth, f"record {index}", note=f"{length} bytes", is_parts=True)
    after = yield from _record(buffer, start, end, depth + 1, kind)
    if after != end:
        raise CodecError(after, "record", f"{end - after} bytes left over in the record")
    return end


def _record(buffer: bytes, offset: int, end: int, depth: int, kind: ValueKind) -> Entries:
    at = _checked_end(offset, 1, end, "record.attributes")
    yield Entry(offset, at, depth, "attributes", buffer[offset])
    for name in ("timestamp_delta", "offset_delta"):
        value, after = _signed(buffer, at, end, f"record.{name}", is_long=name == "timestamp_delta")
        yield Entry(at, after, depth, name, value)
        at = after
    key, at = yield from _content(buffer, at, end, depth, "key")
    if kind == "plain":
        _, at = yield from _content(buffer, at, end, depth, "value")
    else:
        length, start = _signed(buffer, at, end, "record.value")
        if length < 0:
            yield Entry(at, start, depth, "value")
            at = start
        else:
            yield Entry(at, start, depth, "value", note=f"{length} bytes", is_parts=True)
            at = _checked_end(start, length, end, "record.value")
            content = bytes(buffer[start:at])
            inside = _metadata(content, depth + 1) if kind == "metadata" else _control(key, content, depth + 1)
            yield from _moved(inside, start)
    count, after = _signed(buffer, at, end, "record.headers")
    if count < 0:
        raise CodecError(at, "record.headers", f"{count}, which is negative")
    yield Entry(at, after, depth, "headers", note=f"{count or 'none'}", is_parts=True)
    at = after
    for _ in range(count):
        at = yield from _header_key(buffer, at, end, depth + 1)
        _, at = yield from _content(buffer, at, end, depth + 1, "value")
    return at


def _header_key(buffer: bytes, offset: int, end: int, depth: int) -> Entries:
    """The key of a header: text, and never null."""
    name = "record.headers.key"
    length, start = _signed(buffer, offset, end, name)
    after = _checked_end(start, length, end, name)
    try:
        text = bytes(buffer[start:after]).decode()
    except UnicodeDecodeError as error:
        raise CodecError(start + error.start, name, "not UTF-8") from None
    yield Entry(offset, after, depth, "key", text)
    return after


def _content(buffer: bytes, offset: int, end: int, depth: int, name: str) -> _Content:
    """A key or value: a length and so many bytes."""
    length, start = _signed(buffer, offset, end, f"record.{name}")
    if length < 0:
        yield Entry(offset, start, depth, name)
        return None, start
    after = _checked_end(start, length, end, f"record.{name}")
    content = bytes(buffer[start:after])
    yield Entry(offset, after, depth, name, content)
    return content, after


def _metadata(content: bytes, depth: int) -> Entries:
    frame_version, at = read_unsigned_varint(content, 0, "frame_version")
    yield Entry(0, at, depth, "frame_version", frame_version)
    if frame_version != FRAME_VERSION:
        raise CodecError(0, "frame_version", f"{frame_version}; {FRAME_VERSION} is the only one")
    type_id, type_end = read_unsigned_varint(content, at, "type")
    table = METADATA_TABLES.get(type_id)
    yield Entry(at, type_end, depth, "type", type_id, table.title if table else "unknown")
    version, start = read_unsigned_varint(content, type_end, "version")
    yield Entry(type_end, start, depth, "version", version)
    return (yield from _body(content, start, depth, table, version))


def _control(key: bytes | None, content: bytes, depth: int) -> Entries:
    type_id = control_type_of(key)
    table = _CONTROL_TABLES.get(type_id)
    if len(content) < _VERSION.size:
        raise Truncated(0, "control_record.version", f"{_VERSION.size} bytes wanted, {len(content)} there")
    (version,) = _VERSION.unpack_from(content)
    start = 0
    if type_id in _MARKERS:
        start = _VERSION.size
        yield Entry(0, start, depth, "version", version, ControlType(type_id).name)
    return (yield from _body(content, start, depth, table, version))


def _body(content: bytes, start: int, depth: int, table: Record | None, version: int) -> Entries:
    """The fields, or one opaque entry when this type or version is newer than the tables."""
    if table is None or version not in table.versions:
        name = table.title if table else "record"
        # What cannot be read may be a credential.
        yield Entry(start, len(content), depth, "body", SECRET, f"no table for {name} v{version}")
        return len(content)
    reader = BodyReader(version, flexible=table.is_flexible(version), secrets=SECRET_RECORD_FIELDS)
    end = yield from reader.struct(table.body, content, start, path=table.title, depth=depth)
    if end != len(content):
        raise CodecError(end, table.title, f"{len(content) - end} bytes left over")
    return end


def _moved(entries: Entries, by: int) -> Entries:
    """Entries and errors about a copy, as if they were about the buffer that it was copied from."""
    try:
        while True:
            entry = next(entries)
            yield replace(entry, start=entry.start + by, end=entry.end + by)
    except StopIteration as stop:
        return by + int(stop.value)
    except CodecError as error:
        raise CodecError(by + error.offset, error.field, error.reason) from None


def _signed(buffer: bytes, offset: int, end: int, field: str, *, is_long: bool = False) -> tuple[int, int]:
    """A signed varint and the offset after it, which is at most `end`."""
    value, after = (read_varlong if is_long else read_varint)(buffer, offset, field)
    if after > end:
        raise Truncated(end, field, "the bytes end within a varint")
    return value, after


def _checked_end(offset: int, length: int, end: int, field: str) -> int:
    if length < 0:
        raise CodecError(offset, field, f"{length}, which is negative")
    if offset + length > end:
        raise Truncated(offset, field, f"{length} bytes announced, {end - offset} left")
    return offset + length
