"""A connection of the sidecar's own to one broker: negotiated, logged in, then question and answer by correlation id.

    connect      TCP, TLS, ApiVersions, and the login where credentials are given; all within one timeout
    renew        the login again before it expires (KIP-368); questions wait meanwhile
    ask, relay   a question with a callback; call, ask_offer: the same, awaited
    close        by us, by the broker, or because its bytes make no sense: every end has a cause, told once to the owner

Carries probes, questions about the head, discovery and routed reads. It never carries a client's own traffic; that is
`sidecar.net.home`. Also used by `sidecar.net.surveyor`, which looks at a cluster without a sidecar. Messages of errors
name no address: whoever reports them knows it.
"""

import asyncio
import itertools
import logging
import os
import random
import socket
import ssl
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from codec import CodecError, decode_response, encode_request
from codec.api_keys import ApiKey
from codec.frames import SIZE_BYTES, FrameReader, explain_prefix, frame, frame_buffer
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    encode_request_header,
    peek_correlation_id,
    put_request_correlation_id,
    response_body_offset,
)
from codec.registry import known_versions
from sidecar.core.error_names import error_name
from sidecar.core.versions import Offer, read_offer
from sidecar.net.access import ClientTls, explain_tls, tls_arguments
from sidecar.net.sasl import Login, LoginFailed, login

log = logging.getLogger("tidegate.connection")

CLIENT_ID: Final = "tidegate"
SOFTWARE: Final = {"client_software_name": "tidegate", "client_software_version": "0.1.0"}
NO_TOPICS: Final[Mapping[str, Any]] = MappingProxyType({"topics": [], "allow_auto_topic_creation": False})
"""A Metadata question that needs no privilege and creates nothing."""
OFFER_VERSION: Final = 3
"""The first ApiVersions version whose answer carries the position."""

_CORRELATION_ID_MASK: Final = 0x7FFFFFFF
_LOGIN_KEYS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_RENEW_AT_LEAST_S: Final = 1.1
"""A broker lets a login be renewed once a second at most."""
_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tls_alert": "TLS answers there; set cluster.security.protocol to SSL or SASL_SSL, or use a port without TLS",
        "tls_hello": "a TLS client answers there; name the port of a Kafka broker",
        "http": "an HTTP server answers there; name the port of a Kafka broker",
        "protocol": "what answers there does not speak Kafka's protocol; name the port of a Kafka broker",
        "timeout": "no answer came in time",
        "ours": "the connection was closed on this side",
    }
)
_CLOSED_EARLY: Final = "the connection was closed before ApiVersions was answered; name the port of a Kafka broker"
_CLOSED_ANONYMOUS: Final = (
    "the connection was closed at the first question after ApiVersions, as a listener does that demands a SASL login; "
    "give credentials in cluster.security, or use a PLAINTEXT listener"
)
_CLOSED: Final = "the connection was closed before the answer came"
_CLOSED_EARLY_TLS: Final = (
    "the connection was closed after the TLS handshake and before ApiVersions was answered, as a broker does that asks "
    "for a certificate; see cluster.security.ssl.cert_file"
)
_CLOSED_IN_TLS: Final = (
    "the connection was closed during the TLS handshake, as a port without TLS does; "
    "set cluster.security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the TLS port"
)

OnAnswer = Callable[[bytes], None]


class BrokerUnavailable(Exception):
    """The connection could not be opened, or ended before the answer came. The message says what to do about it.

    Attributes:
        cause: for metrics, one of `sidecar.net.counters.CAUSES`.
    """

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class BrokerConnection(asyncio.Protocol):
    """See the module. Made by `connect`.

    Attributes:
        versions: what the broker offers, API key to (lowest, highest).
        position: offset of its metadata image when the connection was negotiated; None where it reports none.
        renew_after_s: when after the last login it is time for another one; None: that holds as long as the connection.
    """

    def __init__(self, frame_bytes_max: int, on_lost: Callable[[str], None] | None) -> None:
        self.versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        self.position: int | None = None
        self.renew_after_s: float | None = None
        self._frames = FrameReader(frame_bytes_max)
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, OnAnswer] = {}
        self._calls: set[asyncio.Future[bytes]] = set()
        self._ids = itertools.count(1)
        self._answers = 0
        self._anonymous = True
        self._cause: str | None = None
        self._is_tls = False
        self._tls_fault: ssl.SSLError | None = None
        self._login: Login | None = None
        self._timeout_ms = 0
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._waits_for_login: list[tuple[bytes | bytearray, int, OnAnswer]] | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = cast(asyncio.Transport, transport)
        self._is_tls = transport.get_extra_info("ssl_object") is not None
        if self._cause is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Hands every answer to whoever asked; an answer to no question ends the connection."""
        try:
            for payload in self._frames.feed(data):
                on_answer = self._waiting.pop(peek_correlation_id(payload), None)
                if on_answer is None:
                    raise CodecError(0, "correlation_id", "an answer to no question")
                self._answers += 1
                on_answer(payload)
        except CodecError:
            self.close(self._foreign() or "protocol")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails what is outstanding and tells the owner."""
        if isinstance(exc, ssl.SSLError):
            # In TLS 1.3 a broker refuses our certificate after the handshake has succeeded on our side.
            self._tls_fault = exc
            self._cause = self._cause or "tls"
        self._cause = self._cause or self._foreign() or "closed"
        self._stop_renewing()
        self._waiting.clear()
        for answer in self._calls:
            if not answer.done():
                answer.set_exception(self._ended())
        if self._on_lost is not None:
            self._on_lost(self._cause)

    # Questions

    @property
    def is_open(self) -> bool:
        """Whether questions can be sent."""
        return self._cause is None and self._transport is not None

    @property
    def in_flight(self) -> int:
        """Questions without an answer."""
        return len(self._waiting)

    def ask(
        self,
        api_key: int,
        api_version: int,
        body: Mapping[str, Any],
        on_answer: OnAnswer,
        state: ConsistencyState | None = None,
    ) -> None:
        """Sends a question; ``on_answer`` gets the payload of the answer. It is not called when the connection ends.

        Args:
            state: what the header says, where the version has room for it.
        """
        correlation_id = self._next_id()
        header = RequestHeader(
            api_key=api_key,
            api_version=api_version,
            correlation_id=correlation_id,
            client_id=CLIENT_ID,
            consistency_state=state,
        )
        question = encode_request_header(header) + encode_request(api_key, api_version, body)
        self._send(frame(question), correlation_id, on_answer, waits=api_key not in _LOGIN_KEYS)

    def relay(self, payload: bytes, on_answer: OnAnswer) -> None:
        """Sends a client's request under a correlation id of our own; the answer carries that id."""
        correlation_id = self._next_id()
        framed = frame_buffer(payload)
        put_request_correlation_id(framed, SIZE_BYTES, correlation_id)
        self._send(framed, correlation_id, on_answer)

    async def call(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a question and waits for the decoded answer; the caller sets the time limit.

        Raises:
            BrokerUnavailable: the connection ended before, or the bytes are no such answer.
        """
        payload = await self._answer_to(api_key, api_version, body)
        try:
            return decode_response(api_key, api_version, payload, response_body_offset(payload, api_key, api_version))
        except CodecError as error:
            raise self._unreadable(error) from error

    async def ask_offer(self) -> Offer:
        """Asks ApiVersions: what the broker offers, and its position now. Needs no privilege.

        Raises:
            BrokerUnavailable: as `call`, or the broker is older than Kafka 2.4 and refuses this version.
        """
        payload = await self._answer_to(ApiKey.API_VERSIONS, OFFER_VERSION, SOFTWARE)
        try:
            body_offset = response_body_offset(payload, ApiKey.API_VERSIONS, OFFER_VERSION)
            offer = read_offer(payload, OFFER_VERSION, body_offset)
        except CodecError as error:
            raise self._unreadable(error) from error
        if offer.error_code:
            name = error_name(offer.error_code)
            raise BrokerUnavailable("versions", f"ApiVersions v{OFFER_VERSION} was answered with {name}")
        return offer

    def version(self, api_key: int) -> int | None:
        """The newest version that the broker and our tables share; None if there is none."""
        ours, theirs = known_versions(api_key), self.versions.get(api_key)
        if ours is None or theirs is None:
            return None
        newest = min(ours[-1], theirs[1])
        return newest if newest >= max(ours[0], theirs[0]) else None

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Gives the connection, on which nothing is outstanding, to somebody else; this object is done with."""
        transport, self._transport = self._transport, None
        assert transport is not None, "it is open"
        assert not self._waiting, "nothing is outstanding"
        self._stop_renewing()
        self._cause = "ours"
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def close(self, cause: str = "ours") -> None:
        """Ends the connection at once, whether or not the broker reads; the owner hears of it like of any other end."""
        if self._cause is None:
            self._cause = cause
            if self._transport is not None:
                self._transport.abort()

    # Opening

    async def negotiate(self, credentials: Login | None, timeout_ms: int) -> None:
        """Learns the broker's versions and position, and logs in where credentials are given.

        Args:
            timeout_ms: for renewing the login later; the caller limits this one.

        Raises:
            BrokerUnavailable: with the cause.
        """
        offer = await self.ask_offer()
        self.versions, self.position = offer.versions, offer.position
        if credentials is not None:
            self._anonymous = False
            self._login, self._timeout_ms = credentials, timeout_ms
            await self._log_in(credentials)

    async def _log_in(self, credentials: Login) -> None:
        try:
            lifetime_ms = await login(self, credentials.now())
        except LoginFailed as error:
            raise BrokerUnavailable("login", str(error)) from error
        self.renew_after_s = None
        if lifetime_ms > 0 and self.is_open:
            # Not all connections of one broker at the same moment.
            self.renew_after_s = max(lifetime_ms / 1000 * random.uniform(0.75, 0.85), _RENEW_AT_LEAST_S)
            self._renewal = asyncio.get_running_loop().call_later(self.renew_after_s, self._start_renewing)

    def _start_renewing(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        """Between the two halves of a login a broker takes no other request: what is asked meanwhile waits."""
        assert self._login is not None, "it has logged in before"
        self._waits_for_login = []
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._log_in(self._login)
        except (BrokerUnavailable, TimeoutError) as error:
            log.warning("a login could not be renewed, its connection is closed: %s", error or "timeout")
            self.close("login")
            return
        waiting, self._waits_for_login = self._waits_for_login, None
        for framed, correlation_id, on_answer in waiting:
            self._send(framed, correlation_id, on_answer)

    def _stop_renewing(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        # The task itself ends with what it asks: `_calls` are failed when the connection ends.

    # Steps

    async def _answer_to(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> bytes:
        if not self.is_open:
            raise self._ended()
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def resolve(payload: bytes) -> None:
            if not answer.done():
                answer.set_result(payload)

        self._calls.add(answer)
        try:
            self.ask(api_key, api_version, body, resolve)
            return await answer
        finally:
            self._calls.discard(answer)

    def _next_id(self) -> int:
        return next(self._ids) & _CORRELATION_ID_MASK

    def _send(self, framed: bytes | bytearray, correlation_id: int, on_answer: OnAnswer, *, waits: bool = True) -> None:
        if self._transport is None or self._cause is not None:
            return
        if waits and self._waits_for_login is not None:
            self._waits_for_login.append((framed, correlation_id, on_answer))
            return
        self._waiting[correlation_id] = on_answer
        self._transport.write(framed)

    def _unreadable(self, error: CodecError) -> BrokerUnavailable:
        self.close("protocol")
        return BrokerUnavailable("protocol", f"the answer cannot be read: {error}")

    def _foreign(self) -> str | None:
        """The cause for a peer that is no Kafka broker and says so with its first bytes."""
        if self._answers:
            return None
        return explain_prefix(self._frames.first_bytes)

    def _ended(self) -> BrokerUnavailable:
        cause = self._cause or "closed"
        if self._tls_fault is not None:
            return BrokerUnavailable("tls", explain_tls(self._tls_fault, "the broker"))
        if cause in _REASONS:
            return BrokerUnavailable(cause, _REASONS[cause])
        if self._answers == 0:
            return BrokerUnavailable(cause, _CLOSED_EARLY_TLS if self._is_tls else _CLOSED_EARLY)
        if self._anonymous and self._answers == 1:
            return BrokerUnavailable(cause, _CLOSED_ANONYMOUS)
        return BrokerUnavailable(cause, _CLOSED)


async def connect(
    host: str,
    port: int,
    *,
    credentials: Login | None,
    timeout_ms: int,
    frame_bytes_max: int,
    tls: ClientTls | None = None,
    on_lost: Callable[[str], None] | None = None,
) -> BrokerConnection:
    """Opens a connection, negotiates and logs in.

    Args:
        on_lost: called once with the cause when the connection ends after this function has returned.

    Raises:
        BrokerUnavailable: with the cause, within ``timeout_ms``; nothing is left open.
    """
    ready = False

    def lost(cause: str) -> None:
        if ready and on_lost is not None:
            on_lost(cause)

    connection = BrokerConnection(frame_bytes_max, lost)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            arguments = tls_arguments(tls, timeout_ms)
            await asyncio.get_running_loop().create_connection(lambda: connection, host, port, **arguments)
            await connection.negotiate(credentials, timeout_ms)
        ready = connection.is_open
    except TimeoutError as error:
        raise BrokerUnavailable("timeout", f"no answer within {timeout_ms} ms") from error
    except socket.gaierror as error:
        raise BrokerUnavailable("resolve", f"the host name does not resolve: {error.strerror}") from error
    except ssl.SSLError as error:
        raise BrokerUnavailable("tls", explain_tls(error, tls.server_hostname if tls else host)) from error
    except ConnectionRefusedError as error:
        raise BrokerUnavailable("connect", "cannot connect: Connection refused") from error
    except OSError as error:
        if tls is not None and isinstance(error, ConnectionError):
            raise BrokerUnavailable("tls", _CLOSED_IN_TLS) from error
        reason = os.strerror(error.errno) if error.errno else "none of its addresses takes connections"
        raise BrokerUnavailable("connect", f"cannot connect: {reason}") from error
    finally:
        if not ready:
            connection.close("negotiation")
    if not ready:
        raise BrokerUnavailable("closed", _CLOSED)
    return connection
