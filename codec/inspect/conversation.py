"""Streams to frames: the requests and answers of every connection of a capture, each answer with its request.

Answers come in the order of their requests, and say neither their API nor its version, so each connection keeps what it
has asked. Raw SASL tokens (SaslHandshake v0) and connections that are not Kafka's are told apart. Sits on `streams`
and `frame`.
"""

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, final

from codec.api_keys import ApiKey
from codec.errors import CodecError
from codec.frames import SIZE_BYTES, FrameReader, explain_prefix
from codec.headers import acks_of, peek_correlation_id, peek_request, request_body_offset
from codec.inspect.frame import PREFIXES, Api, opaque_section, request_section, response_section
from codec.inspect.model import Fault, Section
from codec.inspect.pcap import segments
from codec.inspect.streams import Bytes, Connection, Ended, Lost, Opened, reassemble
from codec.primitives import decode_utf8

FRAME_BYTES_MAX: Final = 104857600
"""Above it, Kafka's own default limit, a size is taken to be no size."""

_TOKENS: Final = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}
"""How many raw tokens the client sends after SaslHandshake v0; for other mechanisms the rest is not looked into."""
_ALL: Final = 1 << 62


@final
@dataclass(slots=True, eq=False)
class _Side:
    """One direction of a connection: its unfinished frame, and whether it can still be read."""

    reader: FrameReader = field(default_factory=lambda: FrameReader(FRAME_BYTES_MAX))
    is_lost: bool = False
    tokens_left: int = 0


@final
@dataclass(slots=True, eq=False)
class _Talk:
    """What is known of one connection."""

    number: int
    connection: Connection
    client: _Side = field(default_factory=_Side)
    broker: _Side = field(default_factory=_Side)
    asked: deque[tuple[int, Api]] = field(default_factory=deque)
    mechanism: str = ""


def pcap_sections(buffer: bytes, ports: frozenset[int] = frozenset()) -> Iterator[Section]:
    """The frames of a capture in the order in which they are complete, and remarks about what is missing.

    Args:
        buffer: The capture file.
        ports: The brokers' ports; empty for every TCP connection.

    Raises:
        UnreadableInput: While iterating; see `codec.inspect.pcap.segments`.
    """
    talks: dict[Connection, _Talk] = {}
    for event in reassemble(segments(buffer), ports):
        match event:
            case Opened(connection):
                talks[connection] = _Talk(len(talks) + 1, connection)
                if not connection.is_whole:
                    yield Section(title=f"{_who(talks[connection], True)}began before the capture")
            case Bytes():
                yield from _frames(talks[event.connection], event)
            case Lost(connection, from_client, missing):
                where = _who(talks[connection], from_client)
                fault = Fault(
                    0, "stream", f"{missing} bytes are not in the capture; the rest of this direction is left out"
                )
                yield Section(title=f"{where}bytes missing", items=iter([fault]))
                _side(talks[connection], from_client).is_lost = True
            case Ended(connection, from_client):
                yield from _ended(talks[connection], from_client)
    for talk in talks.values():
        for from_client in (True, False):
            side = _side(talk, from_client)
            if side.reader.buffered_bytes and not side.is_lost:
                left = f"{side.reader.buffered_bytes} bytes of a frame whose rest comes after the capture"
                yield Section(title=_who(talk, from_client) + left)


def _side(talk: _Talk, from_client: bool) -> _Side:
    return talk.client if from_client else talk.broker


def _who(talk: _Talk, from_client: bool) -> str:
    ends = (talk.connection.client, talk.connection.broker)
    source, target = ends if from_client else reversed(ends)
    return f"connection {talk.number} {source} > {target}: "


def _frames(talk: _Talk, event: Bytes) -> Iterator[Section]:
    side = _side(talk, event.from_client)
    if side.is_lost:
        return
    where = f"packet {event.packet}, {event.at_s:.6f} s, {_who(talk, event.from_client)}"
    try:
        for payload in side.reader.feed(event.data):
            frame = struct.pack(">i", len(payload)) + payload
            if event.from_client:
                yield _request(talk, frame, where)
            else:
                knows_all = talk.connection.is_whole and not event.other_waits and not talk.client.is_lost
                yield _response(talk, frame, where, knows_all)
    except CodecError as error:
        side.is_lost = True
        guess = explain_prefix(side.reader.first_bytes)
        reason = f"{PREFIXES[guess]}, not Kafka frames" if guess else f"{error.reason}; no frame can follow"
        yield Section(title=f"{where}no frame", items=iter([Fault(0, "size", reason)]))


def _ended(talk: _Talk, from_client: bool) -> Iterator[Section]:
    side = _side(talk, from_client)
    if side.reader.buffered_bytes and not side.is_lost:
        fault = Fault(0, "frame", f"closed after {side.reader.buffered_bytes} bytes of a frame")
        yield Section(title=f"{_who(talk, from_client)}closed within a frame", items=iter([fault]))
        side.is_lost = True


def _request(talk: _Talk, frame: bytes, where: str) -> Section:
    if talk.client.tokens_left:
        talk.client.tokens_left -= 1
        return opaque_section(f"{where}SASL token", frame, secret=True)
    payload = frame[SIZE_BYTES:]
    try:
        api_key, api_version, correlation_id = peek_request(payload)
    except CodecError:
        return request_section(frame, where=where)
    api = Api(api_key, api_version)
    if _is_answered(api, payload):
        talk.asked.append((correlation_id, api))
    if api == (ApiKey.SASL_HANDSHAKE, 0):
        talk.client.tokens_left = talk.broker.tokens_left = _TOKENS.get(_mechanism(payload), _ALL)
    return request_section(frame, where=where)


def _response(talk: _Talk, frame: bytes, where: str, knows_all: bool) -> Section:
    """An answer; unless the capture `knows_all` requests, one without a request is no fault."""
    if not talk.asked and talk.broker.tokens_left:
        talk.broker.tokens_left -= 1
        return opaque_section(f"{where}SASL token", frame, secret=True)
    try:
        correlation_id = peek_correlation_id(frame[SIZE_BYTES:])
    except CodecError as error:
        return _fault(f"{where}response", frame, error.field, error.reason)
    if not knows_all and all(asked != correlation_id for asked, _ in talk.asked):
        return opaque_section(f"{where}response to a request that was not captured", frame, secret=True)
    if not talk.asked:
        return _fault(f"{where}response", frame, "correlation_id", f"{correlation_id} answers no request")
    asked, api = talk.asked[0]
    if asked != correlation_id:
        reason = f"{correlation_id}; the oldest unanswered request, {api}, has {asked}"
        return _fault(f"{where}response", frame, "correlation_id", reason)
    talk.asked.popleft()
    return response_section(frame, api, where=where)


def _fault(title: str, frame: bytes, name: str, reason: str) -> Section:
    return Section(title=title, buffer=frame, items=iter([Fault(SIZE_BYTES, name, reason)]))


def _is_answered(api: Api, payload: bytes) -> bool:
    if api.api_key != ApiKey.PRODUCE:
        return True
    try:
        return acks_of(payload, request_body_offset(payload)) != 0
    except CodecError:
        return True


def _mechanism(payload: bytes) -> str:
    """The mechanism in a SaslHandshake v0, or nothing when it cannot be read."""
    try:
        start = request_body_offset(payload) + 2
        return decode_utf8(payload, start, len(payload), "mechanism")
    except CodecError:
        return ""
