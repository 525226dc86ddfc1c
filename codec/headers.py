"""Request and response headers, and the ConsistencyState that travels in their tagged field 0.

A payload is a frame without its four bytes of size. The hot functions look at a few bytes and decode nothing; the cold
ones take a header apart or put one together. None of them looks into a body, except `acks_of`: a Produce request with
acks = 0 is never answered, and whoever matches answers to requests has to know that.

    request header   v0  api_key int16, api_version int16, correlation_id int32
                     v1  and client_id, nullable string, never compact
                     v2  and tagged fields
    response header  v0  correlation_id int32
                     v1  and tagged fields

Sources: RequestHeader.json and ResponseHeader.json of Kafka; for the tagged field, the proposal.
"""

import struct
from dataclasses import dataclass, field
from typing import Final, final

from codec.errors import CodecError, Truncated
from codec.primitives import (
    decode_utf8,
    encode_utf8,
    read_compact_string,
    read_unsigned_varint,
    slice_end,
    write_compact_string,
    write_unsigned_varint,
)
from codec.registry import request_header_version, response_header_version
from codec.tags import TagSection, read_tag_section, skip_tag_section, with_tag

CONSISTENCY_STATE_TAG: Final = 0

_REQUEST_START: Final = struct.Struct(">hhi")
_CORRELATION_ID: Final = struct.Struct(">i")
_pack_correlation_id = _CORRELATION_ID.pack
_put_correlation_id = _CORRELATION_ID.pack_into
_unpack_request_start = _REQUEST_START.unpack_from
_INT16: Final = struct.Struct(">h")
_INT64: Final = struct.Struct(">q")
_CLIENT_ID_AT: Final = 8
_REQUEST_TAGS: Final = "request_header.tags"
_RESPONSE_TAGS: Final = "response_header.tags"
_STATE: Final = "consistency_state"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyState:
    """Which metadata a request wants to see at least, or an answer has seen.

    Attributes:
        cluster_id: The cluster that the token is about, or None when unknown.
        consistency_token: Offset in the metadata log, -1 for none.
    """

    cluster_id: str | None = None
    consistency_token: int = -1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """A request header, taken apart. `client_id` and the tags exist only in the versions that have them."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None
    consistency_state: ConsistencyState | None = None
    unknown_tags: dict[int, bytes] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeader:
    """A response header, taken apart. The tags exist only in v1."""

    correlation_id: int
    consistency_state: ConsistencyState | None = None
    unknown_tags: dict[int, bytes] = field(default_factory=dict)


def peek_request(payload: bytes) -> tuple[int, int, int]:
    """API key, API version and correlation id of a request.

    Raises:
        Truncated: Fewer than 8 bytes.
    """
    try:
        return _unpack_request_start(payload)
    except struct.error:
        raise Truncated(0, "request_header", f"8 bytes wanted, {len(payload)} there") from None


def peek_correlation_id(payload: bytes) -> int:
    """The correlation id of an answer.

    Raises:
        Truncated: Fewer than 4 bytes.
    """
    try:
        return _CORRELATION_ID.unpack_from(payload)[0]  # type: ignore[no-any-return]
    except struct.error:
        raise Truncated(0, "response_header", f"4 bytes wanted, {len(payload)} there") from None


def put_request_correlation_id(buffer: bytearray, start: int, correlation_id: int) -> None:
    """Write another correlation id, an int32, into the request that begins at `start`; nothing is copied.

    Raises:
        CodecError: The number does not fit, or the buffer ends before the correlation id does. The buffer is of no
            use then.
    """
    try:
        _put_correlation_id(buffer, start + 4, correlation_id)
    except struct.error as error:
        raise CodecError(start + 4, "request_header.correlation_id", str(error)) from None


def with_response_correlation_id(payload: bytes, correlation_id: int) -> bytes:
    """The answer with another correlation id, an int32."""
    try:
        return _pack_correlation_id(correlation_id) + payload[4:]
    except struct.error as error:
        raise CodecError(0, "response_header.correlation_id", str(error)) from None


def client_id_of(payload: bytes) -> str | None:
    """The client id of a request, or None where it is null or the header has none.

    Raises:
        CodecError: The header is malformed.
    """
    api_key, api_version, _ = peek_request(payload)
    if request_header_version(api_key, api_version) == 0:
        return None
    start, end = _client_id_span(payload)
    return None if start < 0 else decode_utf8(payload, start, end, "request_header.client_id")


def request_body_offset(payload: bytes) -> int:
    """Where the body of a request begins.

    Raises:
        CodecError: The header is malformed.
    """
    api_key, api_version, _ = peek_request(payload)
    version = request_header_version(api_key, api_version)
    if version == 0:
        return _CLIENT_ID_AT
    _, end = _client_id_span(payload)
    if version == 1:
        return end
    if payload[end : end + 1] == b"\0":
        return end + 1
    return skip_tag_section(payload, end, _REQUEST_TAGS)


def response_body_offset(payload: bytes, api_key: int, api_version: int) -> int:
    """Where the body of an answer begins; key and version are those of its request.

    Raises:
        CodecError: The header is malformed.
    """
    if len(payload) < 4:
        raise Truncated(0, "response_header", f"4 bytes wanted, {len(payload)} there")
    if response_header_version(api_key, api_version) == 0:
        return 4
    if payload[4:5] == b"\0":
        return 5
    return skip_tag_section(payload, 4, _RESPONSE_TAGS)


def read_request_header(payload: bytes) -> tuple[RequestHeader, int]:
    """Take a request header apart; returns it and where the body begins.

    Raises:
        CodecError: The header is malformed, or its ConsistencyState is.
    """
    api_key, api_version, correlation_id = peek_request(payload)
    section = _request_tags(payload)
    state, unknown = _take_apart(payload, section)
    header = RequestHeader(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=client_id_of(payload),
        consistency_state=state,
        unknown_tags=unknown,
    )
    return header, section.end if section else request_body_offset(payload)


def encode_request_header(header: RequestHeader) -> bytes:
    """The bytes of a request header, in the version that its API key and version have.

    Raises:
        CodecError: A field does not fit.
    """
    start = _pack(_REQUEST_START, "request_header", header.api_key, header.api_version, header.correlation_id)
    version = request_header_version(header.api_key, header.api_version)
    if version == 0:
        return start
    if header.client_id is None:
        client_id = b"\xff\xff"
    else:
        encoded = encode_utf8(header.client_id, "request_header.client_id")
        client_id = _INT16.pack(len(encoded)) + encoded
    if version == 1:
        return start + client_id
    return start + client_id + _tags(header.consistency_state, header.unknown_tags)


def read_response_header(payload: bytes, api_key: int, api_version: int) -> tuple[ResponseHeader, int]:
    """Take a response header apart; returns it and where the body begins.

    Raises:
        CodecError: The header is malformed, or its ConsistencyState is.
    """
    section = _response_tags(payload, api_key, api_version)
    state, unknown = _take_apart(payload, section)
    header = ResponseHeader(correlation_id=peek_correlation_id(payload), consistency_state=state, unknown_tags=unknown)
    return header, section.end if section else 4


def encode_response_header(header: ResponseHeader, api_key: int, api_version: int) -> bytes:
    """The bytes of a response header, in the version that answers this API key and version.

    Raises:
        CodecError: A field does not fit.
    """
    start = _pack(_CORRELATION_ID, "response_header", header.correlation_id)
    if response_header_version(api_key, api_version) == 0:
        return start
    return start + _tags(header.consistency_state, header.unknown_tags)


def stamp_request(payload: bytes, state: ConsistencyState) -> bytes:
    """The request with this ConsistencyState in its header, in place of any other.

    A header that cannot carry one (v0, v1) is returned as it is. Every other byte stays.

    Raises:
        CodecError: The header is malformed.
    """
    section = _request_tags(payload)
    return payload if section is None else with_tag(payload, section, CONSISTENCY_STATE_TAG, encode_state(state))


def strip_request(payload: bytes) -> bytes:
    """The request without a ConsistencyState in its header; every other byte stays.

    Raises:
        CodecError: The header is malformed.
    """
    section = _request_tags(payload)
    return payload if section is None else with_tag(payload, section, CONSISTENCY_STATE_TAG, None)


def request_state(payload: bytes) -> ConsistencyState | None:
    """The ConsistencyState of a request, if its header carries one.

    Raises:
        CodecError: The header is malformed, or the state is.
    """
    api_key, api_version, _ = peek_request(payload)
    if request_header_version(api_key, api_version) < 2:
        return None
    _, tags_at = _client_id_span(payload)
    if payload[tags_at : tags_at + 1] == b"\0":
        return None
    return _state_in(payload, _request_tags(payload))


def stamp_response(payload: bytes, api_key: int, api_version: int, state: ConsistencyState) -> bytes:
    """The answer with this ConsistencyState in its header, in place of any other.

    A header that cannot carry one (v0) is returned as it is. Every other byte stays.

    Raises:
        CodecError: The header is malformed.
    """
    section = _response_tags(payload, api_key, api_version)
    return payload if section is None else with_tag(payload, section, CONSISTENCY_STATE_TAG, encode_state(state))


def strip_response(payload: bytes, api_key: int, api_version: int) -> bytes:
    """The answer without a ConsistencyState in its header; every other byte stays.

    Raises:
        CodecError: The header is malformed.
    """
    section = _response_tags(payload, api_key, api_version)
    return payload if section is None else with_tag(payload, section, CONSISTENCY_STATE_TAG, None)


def response_state(payload: bytes, api_key: int, api_version: int) -> ConsistencyState | None:
    """The ConsistencyState of an answer, if its header carries one.

    Raises:
        CodecError: The header is malformed, or the state is.
    """
    return _state_in(payload, _response_tags(payload, api_key, api_version))


def encode_state(state: ConsistencyState) -> bytes:
    """The content of the tagged field: cluster id, token, and no tagged fields of its own.

    Raises:
        CodecError: The token is no int64, or the cluster id is too long.
    """
    return (
        write_compact_string(state.cluster_id, f"{_STATE}.cluster_id")
        + _pack(_INT64, f"{_STATE}.consistency_token", state.consistency_token)
        + b"\0"
    )


def acks_of(payload: bytes, body_offset: int) -> int:
    """The `acks` of a Produce request: 0 means that no answer will come.

    The transactional id before it came with v3 and became compact with v9; unknown versions are read like v9. The
    payload may be a prefix of the frame.

    Raises:
        Truncated: The prefix is too short to tell.
        CodecError: The body is malformed.
    """
    api_version = peek_request(payload)[1]
    at = body_offset
    if api_version >= 9:
        length, at = read_unsigned_varint(payload, at, "transactional_id")
        at += max(0, length - 1)
    elif api_version >= 3:
        at += 2 + max(0, _int16(payload, at, "transactional_id"))
    return _int16(payload, at, "acks")


def _int16(payload: bytes, offset: int, name: str) -> int:
    try:
        return _INT16.unpack_from(payload, offset)[0]  # type: ignore[no-any-return]
    except struct.error:
        raise Truncated(offset, name, f"2 bytes wanted, {max(0, len(payload) - offset)} there") from None


def _pack(form: struct.Struct, name: str, *values: int) -> bytes:
    try:
        return form.pack(*values)
    except struct.error as error:
        raise CodecError(0, name, str(error)) from None


def _client_id_span(payload: bytes) -> tuple[int, int]:
    """Where the client id begins and ends; it begins at -1 when it is null."""
    length = _int16(payload, _CLIENT_ID_AT, "request_header.client_id")
    start = _CLIENT_ID_AT + 2
    if length < 0:
        return -1, start
    return start, slice_end(payload, start, length, "request_header.client_id")


def _request_tags(payload: bytes) -> TagSection | None:
    api_key, api_version, _ = peek_request(payload)
    if request_header_version(api_key, api_version) < 2:
        return None
    return read_tag_section(payload, _client_id_span(payload)[1], _REQUEST_TAGS)


def _response_tags(payload: bytes, api_key: int, api_version: int) -> TagSection | None:
    if response_header_version(api_key, api_version) == 0:
        return None
    return read_tag_section(payload, 4, _RESPONSE_TAGS)


def _tags(state: ConsistencyState | None, unknown: dict[int, bytes]) -> bytes:
    if CONSISTENCY_STATE_TAG in unknown:
        raise CodecError(0, _STATE, f"tag {CONSISTENCY_STATE_TAG} is not an unknown one")
    entries = dict(unknown)
    if state is not None:
        entries[CONSISTENCY_STATE_TAG] = encode_state(state)
    out = bytearray(write_unsigned_varint(len(entries)))
    for tag in sorted(entries):
        out += write_unsigned_varint(tag) + write_unsigned_varint(len(entries[tag])) + entries[tag]
    return bytes(out)


def _take_apart(payload: bytes, section: TagSection | None) -> tuple[ConsistencyState | None, dict[int, bytes]]:
    if section is None:
        return None, {}
    unknown = {
        entry.tag: payload[entry.content_start : entry.end]
        for entry in section.entries
        if entry.tag != CONSISTENCY_STATE_TAG
    }
    return _state_in(payload, section), unknown


def _state_in(payload: bytes, section: TagSection | None) -> ConsistencyState | None:
    entry = section.find(CONSISTENCY_STATE_TAG) if section else None
    if entry is None:
        return None
    content = payload[entry.content_start : entry.end]
    try:
        cluster_id, at = read_compact_string(content, 0, f"{_STATE}.cluster_id")
        end = slice_end(content, at, 8, f"{_STATE}.consistency_token")
        token = _INT64.unpack_from(content, at)[0]
        end = skip_tag_section(content, end, f"{_STATE}.tags")
    except CodecError as error:
        raise CodecError(entry.content_start + error.offset, error.field, error.reason) from None
    if end != len(content):
        raise CodecError(entry.content_start + end, _STATE, f"{len(content) - end} bytes left over")
    return ConsistencyState(cluster_id=cluster_id, consistency_token=token)
