"""From a table and bytes to entries: the third reading of a table, the one that keeps every offset.

It obeys the rules of `codec.decoding` and stops where that stops; a property holds the two together. `CodecError` is
what leaves an iterator at a fault, after everything that was read before it. Knows no header and no frame.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

from codec.decoding import join
from codec.error_codes import ErrorCode
from codec.errors import CodecError, Truncated
from codec.inspect.model import SECRET, Entry
from codec.inspect.secrets import is_secret_config
from codec.layout import FORMAT, SIZE, minimum_size
from codec.primitives import decode_utf8, read_unsigned_varint, slice_end
from codec.schema import Array, Field, Scalar, Struct

Entries = Generator[Entry, None, int]
"""Yields entries and returns the offset after them."""

ShowRecords = Callable[[bytes, int, int, int, bool], Iterator[Entry]]
"""What shows the inside of a `records` field: buffer, start, end, depth, and whether they are of the metadata log.

Its entries tile the span; it raises `CodecError`.
"""

_METADATA_TOPIC: Final = ("__cluster_metadata", bytes(15) + b"\1")
"""Name and id of the metadata log's topic."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class BodyReader:
    """Reads structs of one message in one version; one reader a message, since it remembers which topic it is in."""

    __slots__ = ("_flexible", "_in_metadata", "_secrets", "_show_records", "_version")

    def __init__(
        self,
        version: int,
        *,
        flexible: bool,
        secrets: frozenset[str] = frozenset(),
        show_records: ShowRecords | None = None,
    ) -> None:
        """Read `version`, with compact lengths and tags if `flexible`, and show nothing of the fields in `secrets`."""
        self._version = version
        self._flexible = flexible
        self._secrets = secrets
        self._show_records = show_records
        self._in_metadata = False

    def struct(self, of: Struct, buffer: bytes, offset: int, *, path: str = "", depth: int = 0) -> Entries:
        """The entries of a struct's fields and of its tagged section.

        Raises:
            CodecError: While iterating, at the first byte that does not fit.
        """
        secret_value = False
        for field in of.untagged(self._version):
            at = join(path, field.name)
            hide = field.name in self._secrets or (secret_value and field.name == "value")
            for entry in (reading := _Returned(self._field(field, buffer, offset, at, depth, hide))):
                if entry.depth == depth and entry.name == "name":
                    secret_value = is_secret_config(entry.value)
                if entry.depth == depth and entry.name in ("topic", "topic_id"):
                    self._in_metadata = entry.value in _METADATA_TOPIC
                yield entry
            offset = reading.value
        if self._flexible:
            offset = yield from self._tags(of, buffer, offset, path, depth)
        return offset

    def _field(self, field: Field, buffer: bytes, offset: int, path: str, depth: int, hide: bool) -> Entries:
        nullable = field.nullable_in(self._version)
        match field.type:
            case Array():
                return (yield from self._array(field.type, field.name, buffer, offset, nullable, path, depth))
            case Struct():
                start = offset
                if nullable:
                    offset = slice_end(buffer, offset, 1, path)
                    if buffer[start] > 0x7F:
                        yield Entry(start, offset, depth, field.name)
                        return offset
                yield Entry(start, offset, depth, field.name, is_parts=True)
                return (yield from self.struct(field.type, buffer, offset, path=path, depth=depth + 1))
            case Scalar():
                return (yield from self._scalar(field.type, field.name, buffer, offset, nullable, path, depth, hide))

    def _scalar(
        self, of: Scalar, name: str, buffer: bytes, offset: int, nullable: bool, path: str, depth: int, hide: bool
    ) -> Entries:
        if of in SIZE:
            end = offset + SIZE[of]
            if end > len(buffer):
                raise Truncated(offset, path, f"{SIZE[of]} bytes wanted, {len(buffer) - offset} left")
            (value,) = struct.unpack_from(">" + FORMAT[of], buffer, offset)
            note = _kafka_uuid(value) if of is Scalar.UUID else _error_name(value) if name == "error_code" else ""
            yield Entry(offset, end, depth, name, SECRET if hide else value, note)
            return end
        length, start = self._length(of, buffer, offset, path)
        if length < 0:
            if not nullable:
                raise CodecError(offset, path, "null, which this version does not allow")
            yield Entry(offset, start, depth, name)
            return start
        end = slice_end(buffer, start, length, path)
        if of is Scalar.STRING:
            text = decode_utf8(buffer, start, end, path)
            yield Entry(offset, end, depth, name, SECRET if hide else text)
        elif of is Scalar.RECORDS and self._show_records and end > start and not hide:
            yield Entry(offset, start, depth, name, note=f"{length} bytes", is_parts=True)
            yield from self._show_records(buffer, start, end, depth + 1, self._in_metadata)
        else:
            yield Entry(offset, end, depth, name, SECRET if hide else bytes(buffer[start:end]))
        return end

    def _array(
        self, of: Array, name: str, buffer: bytes, offset: int, nullable: bool, path: str, depth: int
    ) -> Entries:
        count, start = self._length(of, buffer, offset, path)
        if count < 0:
            if not nullable:
                raise CodecError(offset, path, "null, which this version does not allow")
            yield Entry(offset, start, depth, name)
            return start
        if count * minimum_size(of.element, self._version, self._flexible) > len(buffer) - start:
            raise Truncated(offset, path, f"{count} elements announced, {len(buffer) - start} bytes left")
        yield Entry(offset, start, depth, name, note=f"{count} element{'s' * (count != 1)}", is_parts=True)
        offset = start
        for index in range(count):
            if isinstance(of.element, Struct):
                yield Entry(offset, offset, depth + 1, f"[{index}]", is_parts=True)
                offset = yield from self.struct(of.element, buffer, offset, path=path, depth=depth + 2)
            else:
                hide = name in self._secrets
                offset = yield from self._scalar(of.element, f"[{index}]", buffer, offset, False, path, depth + 1, hide)
        return offset

    def _tags(self, of: Struct, buffer: bytes, offset: int, path: str, depth: int) -> Entries:
        known = {field.tag: field for field in of.tagged(self._version)}
        where = join(path, "unknown_tags")
        count, start = read_unsigned_varint(buffer, offset, where)
        yield Entry(offset, start, depth, "tags", note=f"{count or 'none'}", is_parts=True)
        offset = start
        seen: set[int] = set()
        for _ in range(count):
            tag, at = read_unsigned_varint(buffer, offset, where)
            if tag in seen:
                raise CodecError(offset, where, f"tag {tag} twice")
            seen.add(tag)
            size, at = read_unsigned_varint(buffer, at, where)
            end = slice_end(buffer, at, size, where)
            if tag not in known:
                hide = bool(self._secrets)
                yield Entry(offset, end, depth + 1, f"tag {tag}", SECRET if hide else bytes(buffer[at:end]), "unknown")
                offset = end
                continue
            field = known[tag]
            yield Entry(offset, at, depth + 1, f"tag {tag}", note=f"{size} bytes", is_parts=True)
            inside = join(path, field.name)
            hide = field.name in self._secrets
            after = yield from self._field(field, buffer, at, inside, depth + 2, hide)
            if after != end:
                raise CodecError(at, inside, f"tag {tag} announced {size} bytes and has {after - at}")
            offset = end
        return offset

    def _length(self, of: Scalar | Array, buffer: bytes, offset: int, path: str) -> tuple[int, int]:
        """A length or count and the offset after it; negative for null."""
        if self._flexible:
            length, offset = read_unsigned_varint(buffer, offset, path)
            return length - 1, offset
        width = _INT16 if of is Scalar.STRING else _INT32
        end = slice_end(buffer, offset, width.size, path)
        return width.unpack_from(buffer, offset)[0], end


class _Returned:
    """Iterates over a generator and keeps what it returns."""

    __slots__ = ("_entries", "value")

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self.value = 0

    def __iter__(self) -> Iterator[Entry]:
        self.value = yield from self._entries


def _kafka_uuid(value: bytes) -> str:
    """A uuid as Kafka writes it: URL-safe base 64 without padding."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def _error_name(code: Any) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return "no error code of Kafka 4.4"
