"""A frame, its size included, as a tree: size, header, body, and whatever is wrong with any of them.

Headers are written as the same kind of table that bodies have. A body without a table is one opaque entry, which is no
fault. Sits on `body`; knows no file format.
"""

import struct
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.errors import CodecError, Truncated
from codec.frames import SIZE_BYTES, explain_prefix
from codec.inspect.batches import show_records
from codec.inspect.body import BodyReader, Entries
from codec.inspect.model import SECRET, Entry, Fault, Section
from codec.inspect.secrets import SECRET_FIELDS
from codec.registry import (
    known_versions,
    request_header_version,
    request_table,
    response_header_version,
    response_table,
)
from codec.schema import INT16, INT32, INT64, STRING, Struct, field
from codec.schema import struct as struct_field

_SIZE: Final = struct.Struct(">i")
_START: Final = (field("api_key", INT16), field("api_version", INT16), field("correlation_id", INT32))
_CLIENT_ID: Final = field("client_id", STRING, nullable=True)
_ANSWER_START: Final = (field("correlation_id", INT32),)
_STATE: Final = struct_field(
    "consistency_state",
    field("cluster_id", STRING, nullable=True, default=None),
    field("consistency_token", INT64, default=-1),
    tag=0,
)
_PLAIN: Final = BodyReader(0, flexible=False)
_FLEXIBLE: Final = BodyReader(0, flexible=True)
PREFIXES: Final = {"tls_hello": "a TLS handshake", "tls_alert": "a TLS alert", "http": "HTTP"}


class Api(NamedTuple):
    """What an answer does not say about itself: the key and version of its request."""

    api_key: int
    api_version: int

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} v{self.api_version}"


def request_section(frame: bytes, *, where: str = "", base: int = 0) -> Section:
    """The tree of a request.

    Args:
        frame: Its bytes, the four bytes of size included.
        where: What to put before the title.
        base: Where in the input the frame begins.
    """
    api = f"{Api(*struct.unpack_from('>hh', frame, SIZE_BYTES))}" if len(frame) >= SIZE_BYTES + 4 else "?"
    items = _guarded(frame, _request(frame))
    return Section(title=f"{where}request {api}", buffer=frame, items=items, base=base)


def response_section(frame: bytes, api: Api, *, where: str = "", base: int = 0) -> Section:
    """The tree of the answer to a request with this API key and version; otherwise as `request_section`."""
    return Section(
        title=f"{where}response {api}", buffer=frame, items=_guarded(frame, _response(frame, api)), base=base
    )


def opaque_section(title: str, frame: bytes, *, secret: bool, base: int = 0) -> Section:
    """A frame whose payload is one opaque entry, shown or not."""

    def entries() -> Entries:
        offset = yield from _size(frame)
        yield _opaque(frame, offset, 0, "payload", "", secret)
        return len(frame)

    return Section(title=title, buffer=frame, items=_guarded(frame, entries()), base=base)


def api_name(api_key: int) -> str:
    """Kafka's name of an API, or its number."""
    try:
        return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))
    except ValueError:
        return f"API {api_key}"


def _guarded(frame: bytes, entries: Entries) -> Iterator[Entry | Fault]:
    """The entries, then a fault if there is one or if bytes are left over."""
    try:
        end = yield from entries
        if end != len(frame):
            raise CodecError(end, "frame", f"{len(frame) - end} bytes left over")
    except CodecError as error:
        yield Fault(error.offset, error.field, error.reason)


def _size(frame: bytes) -> Entries:
    """The entry of the size, once it agrees with what is there."""
    if len(frame) < SIZE_BYTES:
        raise Truncated(0, "size", f"{SIZE_BYTES} bytes wanted, {len(frame)} there")
    (size,) = _SIZE.unpack_from(frame)
    there = len(frame) - SIZE_BYTES
    guess = explain_prefix(frame[:16])
    if size != there and guess:
        raise CodecError(0, "size", f"this looks like {PREFIXES[guess]}, not like a Kafka frame")
    if size < 0:
        raise CodecError(0, "size", f"{size}, which is negative")
    yield Entry(0, SIZE_BYTES, 0, "size", size, "" if size == there else f"but {there} bytes follow")
    return SIZE_BYTES


def _check_size(frame: bytes) -> None:
    (size,) = _SIZE.unpack_from(frame)
    there = len(frame) - SIZE_BYTES
    if size != there:
        raise CodecError(0, "size", f"{size} bytes announced, {there} there")


def _request(frame: bytes) -> Entries:
    offset = yield from _size(frame)
    yield Entry(offset, offset, 0, "header", is_parts=True)
    start = offset
    for entry in _PLAIN.struct(Struct(_START), frame, offset, path="header", depth=1):
        note = api_name(entry.value) if entry.name == "api_key" else ""
        yield Entry(entry.start, entry.end, entry.depth, entry.name, entry.value, note)
        offset = entry.end
    api = Api(*struct.unpack_from(">hh", frame, start))
    header_version = request_header_version(*api)
    if header_version >= 1:
        offset = yield from _PLAIN.struct(Struct((_CLIENT_ID,)), frame, offset, path="header", depth=1)
    if header_version == 2:
        offset = yield from _FLEXIBLE.struct(Struct((_STATE,)), frame, offset, path="header", depth=1)
    return (yield from _body(frame, offset, api, "request"))


def _response(frame: bytes, api: Api) -> Entries:
    offset = yield from _size(frame)
    yield Entry(offset, offset, 0, "header", is_parts=True)
    offset = yield from _PLAIN.struct(Struct(_ANSWER_START), frame, offset, path="header", depth=1)
    if response_header_version(*api) == 1:
        offset = yield from _FLEXIBLE.struct(Struct((_STATE,)), frame, offset, path="header", depth=1)
    if api.api_key == ApiKey.API_VERSIONS and frame[offset : offset + 2] == _UNSUPPORTED:
        # Whatever was asked, this refusal is written as v0 (KIP-511).
        api = Api(api.api_key, 0)
    return (yield from _body(frame, offset, api, "response"))


_UNSUPPORTED: Final = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)


def _body(frame: bytes, offset: int, api: Api, direction: Literal["request", "response"]) -> Entries:
    secrets = SECRET_FIELDS.get(api.api_key, frozenset())
    versions = known_versions(api.api_key)
    if versions is None or api.api_version not in versions:
        yield _opaque(frame, offset, 0, "body", f"no table for {api}", bool(secrets))
        _check_size(frame)
        return len(frame)
    table = request_table(api.api_key) if direction == "request" else response_table(api.api_key)
    reader = BodyReader(
        api.api_version,
        flexible=table.is_flexible(api.api_version),
        secrets=secrets,
        show_records=show_records,
    )
    yield Entry(offset, offset, 0, "body", is_parts=True)
    offset = yield from reader.struct(table.body, frame, offset, depth=1)
    if offset == len(frame):
        _check_size(frame)
    return offset


def _opaque(frame: bytes, offset: int, depth: int, name: str, note: str, secret: bool) -> Entry:
    return Entry(offset, len(frame), depth, name, SECRET if secret else bytes(frame[offset:]), note)
