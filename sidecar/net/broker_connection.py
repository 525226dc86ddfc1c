"""A connection of the sidecar's own to one broker: negotiated, logged in, then question and answer by correlation id.

Carries probes, questions about the head, discovery and routed reads. It never carries a client's own traffic; that is
`sidecar.net.home`. Also used by the commands that look at a cluster without a sidecar.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from codec import CodecError, decode_response, encode_request
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.frames import FrameReader, frame
from codec.headers import (
    RequestHeader,
    encode_request_header,
    peek_correlation_id,
    response_body_offset,
    with_request_correlation_id,
)
from codec.registry import known_versions
from sidecar.core.versions import Offer, read_offer
from sidecar.net.sasl import Credentials, LoginFailed, login

CLIENT_ID: Final = "tidegate"
SOFTWARE: Final = {"client_software_name": "tidegate", "client_software_version": "0.1.0"}
_FIRST_OFFER_VERSION: Final = 3
"""The first ApiVersions version whose answer carries the position."""

OnAnswer = Callable[[bytes], None]


class BrokerUnavailable(Exception):
    """The connection could not be opened, or closed before the answer came.

    Attributes:
        cause: a word of a closed set, for metrics: connect, timeout, closed, protocol, login, versions.
    """

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class BrokerConnection(asyncio.Protocol):
    """See the module. Made by `connect`.

    Attributes:
        versions: what the broker offers, API key to (lowest, highest).
        position: offset of its metadata image when the connection was negotiated; None where it reports none.
        in_flight: questions without an answer.
    """

    def __init__(self, frame_bytes_max: int, on_lost: Callable[[str], None] | None) -> None:
        self.versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        self.position: int | None = None
        self.offer: Offer | None = None
        self._frames = FrameReader(frame_bytes_max)
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, OnAnswer] = {}
        self._failed: dict[int, Callable[[], None]] = {}
        self._ids = itertools.count(1)
        self._closed_cause: str | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Hands every answer to whoever asked; an answer to no question ends the connection."""
        try:
            for payload in self._frames.feed(data):
                on_answer = self._waiting.pop(peek_correlation_id(payload), None)
                if on_answer is None:
                    raise CodecError(0, "correlation_id", "an answer to no question")
                on_answer(payload)
        except CodecError:
            self.close("protocol")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails what is outstanding and tells the owner."""
        cause = self._closed_cause or "closed"
        self._closed_cause = cause
        failed, self._failed, self._waiting = self._failed, {}, {}
        for fail in failed.values():
            fail()
        if self._on_lost is not None:
            self._on_lost(cause)

    # Questions

    @property
    def is_open(self) -> bool:
        """Whether questions can be sent."""
        return self._closed_cause is None and self._transport is not None

    @property
    def in_flight(self) -> int:
        """Questions without an answer."""
        return len(self._waiting)

    def ask(self, api_key: int, api_version: int, body: Mapping[str, Any], on_answer: OnAnswer) -> None:
        """Sends a question; ``on_answer`` gets the payload of the answer. It is not called when the connection ends."""
        correlation_id = self._next_id()
        header = RequestHeader(
            api_key=api_key, api_version=api_version, correlation_id=correlation_id, client_id=CLIENT_ID
        )
        self._send(
            encode_request_header(header) + encode_request(api_key, api_version, body), correlation_id, on_answer
        )

    def relay(self, payload: bytes, on_answer: OnAnswer) -> None:
        """Sends a client's request under a correlation id of our own; the answer carries that id."""
        correlation_id = self._next_id()
        self._send(with_request_correlation_id(payload, correlation_id), correlation_id, on_answer)

    async def call(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a question and waits for the decoded answer.

        Raises:
            BrokerUnavailable: the connection ended before, or the bytes are no such answer.
        """
        payload = await self._answer_to(api_key, api_version, body)
        try:
            return decode_response(api_key, api_version, payload, response_body_offset(payload, api_key, api_version))
        except CodecError as error:
            self.close("protocol")
            raise BrokerUnavailable("protocol", f"the broker's answer cannot be read: {error}") from error

    def version(self, api_key: int) -> int | None:
        """The newest version that the broker and our tables share; None if there is none."""
        ours, theirs = known_versions(api_key), self.versions.get(api_key)
        if ours is None or theirs is None:
            return None
        newest = min(ours[-1], theirs[1])
        return newest if newest >= max(ours[0], theirs[0]) else None

    def close(self, cause: str = "ours") -> None:
        """Ends the connection; the owner hears of it like of any other end."""
        if self._closed_cause is None:
            self._closed_cause = cause
            if self._transport is not None:
                self._transport.close()

    # Opening

    async def negotiate(self, credentials: Credentials | None) -> None:
        """Learns the broker's versions and position, and logs in where credentials are given.

        Raises:
            BrokerUnavailable: with the cause.
        """
        version = _FIRST_OFFER_VERSION
        payload = await self._answer_to(ApiKey.API_VERSIONS, version, SOFTWARE)
        try:
            offer = read_offer(payload, version, response_body_offset(payload, ApiKey.API_VERSIONS, version))
        except CodecError as error:
            raise BrokerUnavailable("protocol", f"no Kafka broker answers here: {error}") from error
        if offer.error_code:
            name = ErrorCode(offer.error_code).name
            raise BrokerUnavailable("versions", f"ApiVersions v{version} was answered with {name}")
        self.versions, self.position, self.offer = offer.versions, offer.position, offer
        if credentials is not None:
            try:
                await login(self, credentials)
            except LoginFailed as error:
                raise BrokerUnavailable("login", str(error)) from error

    # Steps

    async def _answer_to(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> bytes:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        def resolve(payload: bytes) -> None:
            if not answer.done():
                answer.set_result(payload)

        def fail() -> None:
            if not answer.done():
                answer.set_exception(
                    BrokerUnavailable(
                        self._closed_cause or "closed", "the broker closed the connection before it answered"
                    )
                )

        if not self.is_open:
            raise BrokerUnavailable(self._closed_cause or "closed", "the connection is closed")
        token = object()
        self._failed[id(token)] = fail
        try:
            self.ask(api_key, api_version, body, resolve)
            return await answer
        finally:
            self._failed.pop(id(token), None)

    def _next_id(self) -> int:
        return next(self._ids) & 0x7FFFFFFF

    def _send(self, payload: bytes, correlation_id: int, on_answer: OnAnswer) -> None:
        self._waiting[correlation_id] = on_answer
        if self._transport is not None:
            self._transport.write(frame(payload))


async def connect(
    host: str,
    port: int,
    *,
    credentials: Credentials | None,
    timeout_ms: int,
    frame_bytes_max: int,
    on_lost: Callable[[str], None] | None = None,
) -> BrokerConnection:
    """Opens a connection, negotiates and logs in.

    Args:
        on_lost: called once with the cause when the connection ends after this function has returned.

    Raises:
        BrokerUnavailable: with the cause, within ``timeout_ms``.
    """
    loop = asyncio.get_running_loop()
    ready = False

    def lost(cause: str) -> None:
        if ready and on_lost is not None:
            on_lost(cause)

    connection = BrokerConnection(frame_bytes_max, lost)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await loop.create_connection(lambda: connection, host, port)
            await connection.negotiate(credentials)
    except TimeoutError as error:
        connection.close("timeout")
        raise BrokerUnavailable("timeout", f"{host}:{port} did not answer within {timeout_ms} ms") from error
    except OSError as error:
        connection.close("connect")
        raise BrokerUnavailable("connect", f"cannot connect to {host}:{port}: {error.strerror or error}") from error
    except BrokerUnavailable:
        connection.close("negotiation")
        raise
    if not connection.is_open:
        raise BrokerUnavailable("closed", f"{host}:{port} closed the connection")
    ready = True
    return connection
