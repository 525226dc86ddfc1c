"""The connection of one client to its own broker: requests out in their order, answers back in the same order.

A chunk of answers that need no reading goes to the client as it came, in one write. A large answer to a plain request
is never collected: it streams through (`sidecar.core.long_answers`), or is left with the broker while an earlier answer
is to come from elsewhere. Of a broker that implements the proposal every answer with room for a ConsistencyState is
read, to take it out.
"""

import asyncio
import logging
import math
import ssl
import struct
from typing import Final

from codec import CodecError
from codec.frames import SIZE_BYTES, explain_prefix, frame
from codec.walk import WALKED
from sidecar.core.answers import passes_unchanged
from sidecar.core.apis import Kind, Trace
from sidecar.core.events import HomeClosed, HomeOpened
from sidecar.core.exchange import Exchange
from sidecar.core.ids import NodeId
from sidecar.core.long_answers import LongAnswer
from sidecar.core.raw_tokens import is_answer, pass_tokens, takes_tokens
from sidecar.core.states import can_carry, state_in
from sidecar.core.versions import READ_HERE
from sidecar.net.access import Endpoint, explain_tls, tls_arguments
from sidecar.net.broker_connection import BrokerUnavailable, connect
from sidecar.net.driver import Driver
from sidecar.net.parties import Owner
from sidecar.net.patience import keep_alive
from sidecar.net.sasl import Login

log = logging.getLogger("tidegate.home")

_START: Final = struct.Struct(">ii")
_SIZE: Final = struct.Struct(">i")
_CORRELATION_ID_BYTES: Final = 4
_PLAIN: Final = Kind.PLAIN
_NO_TRACE: Final = Trace.NONE
CLOSE_TIMEOUT_S: Final = 5.0
"""How long a connection that we end may take to deliver what was written."""
STALLED_S: Final = 120.0
"""How long a broker may take no request before the client is closed: longer than clients wait for an answer."""
LASTED_S: Final = 1.0
"""A connection that the broker ends earlier, without an answer, is not worth a second one."""
REPLACE_EVERY_S: Final = 0.02
"""How often a connection whose login ends soon is looked at, until it can be replaced."""
STREAM_BYTES_MIN: Final = 65536
"""Answers to plain requests from this size on go to the client before they are complete."""

_REMEDIES: Final = {
    "tls_alert": "the broker speaks TLS on this address: set cluster.security.protocol to SSL or SASL_SSL",
    "tls_hello": "a TLS client answers at the address of the broker: name the port of a Kafka broker",
    "http": "an HTTP server answers at the address of the broker: name the port of a Kafka broker",
}


def can_stream(exchange: Exchange) -> bool:
    """Whether a large answer may leave before it is complete: nobody need read it, or none but its tail."""
    request = exchange.request
    return (
        exchange.kind is _PLAIN
        and request.trace is _NO_TRACE
        and (request.api_key not in READ_HERE or request.api_key in WALKED)
    )


class Home(asyncio.Protocol):
    """See the module.

    Attributes:
        node_id: the broker.
        paused: the client is slow.
        was_answered: the broker has said something.
    """

    def __init__(self, driver: Driver, client: Owner) -> None:
        self.node_id = NodeId(-1)
        self._driver = driver
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unsent = bytearray()
        self._full = False
        self._pending = bytearray()
        self._wanted = 0
        self._streaming: LongAnswer | None = None
        self.paused = False
        self._left_with_broker = False
        self._takes_tokens = False
        self._finishing = False
        self._closed = False
        self._aborting: asyncio.TimerHandle | None = None
        self._stalling: asyncio.TimerHandle | None = None
        self._replacing: asyncio.TimerHandle | None = None
        self._cause = "ours"
        self._opened_s = math.inf
        self.was_answered = False
        # Until the broker has answered without a ConsistencyState where there was room for one.
        self._looks_for_state = not driver.expose_state

    def open(self, node_id: NodeId) -> None:
        """Starts to connect; requests may be written at once and leave when the connection is there."""
        self.node_id = node_id
        self._opening = asyncio.get_running_loop().create_task(self._open())

    def write(self, data: bytes) -> None:
        """Sends bytes of requests, in the order of the calls."""
        if not data or self._closed:
            return
        self._driver.counters.bytes["broker", "out"] += len(data)
        if self._transport is None:
            self._unsent += data
        else:
            self._transport.write(data)

    def send(self, payload: bytes) -> None:
        """Sends one request."""
        self.write(frame(payload))
        self.look_again()

    def is_full(self, unsent_bytes_max: int) -> bool:
        """Whether the broker takes requests more slowly than they come."""
        return self._full or len(self._unsent) > unsent_bytes_max

    def close(self) -> None:
        """Ends the connection; what was written still leaves, even if it has yet to open (proxying.md 3.5)."""
        if self._transport is None and self._unsent:
            self._finishing = True
            return
        self._closed = True
        if self._transport is not None:
            # Not by cancelling: uvloop then drops a connection just made without a word to `connection_lost`.
            self._transport.close()
            if self._transport.get_write_buffer_size() and self._aborting is None:
                # A broker that takes nothing any more would keep its connection for ever.
                self._aborting = asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_S, self._transport.abort)
        elif self._opening is not None:
            self._opening.cancel()

    def pause_reading(self) -> None:
        """The client is slow."""
        self.paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """The client takes answers again."""
        self.paused = False
        if self._transport is not None and not self._left_with_broker:
            self._transport.resume_reading()

    def look_again(self) -> None:
        """An answer has left, or a request was sent here: a large answer that was left with the broker may be next."""
        if self._left_with_broker:
            self._left_with_broker = False
            if not self.paused and self._transport is not None:
                self._transport.resume_reading()

    async def _open(self) -> None:
        driver = self._driver
        try:
            async with asyncio.timeout(driver.connect_timeout_ms / 1000):
                endpoint = await driver.endpoint(self.node_id)
                if self._client.listener.lends_identity and endpoint.login is not None:
                    await self._open_logged_in(endpoint, endpoint.login)
                else:
                    arguments = tls_arguments(endpoint.tls, driver.connect_timeout_ms)
                    loop = asyncio.get_running_loop()
                    await loop.create_connection(lambda: self, endpoint.host, endpoint.port, **arguments)
        except (OSError, TimeoutError, BrokerUnavailable) as error:
            reason = explain_tls(error, "the broker") if isinstance(error, ssl.SSLError) else error or "timeout"
            log.info("client %s: broker %d is not reachable: %s", self._client.peer, self.node_id, reason)
            self._unsent.clear()
            if not (self._closed or self._finishing):
                driver.handle(HomeClosed(self._client.connection))
        else:
            # Half a kilobyte that is of no more use.
            self._opening = None

    async def _open_logged_in(self, endpoint: Endpoint, login: Login) -> None:
        """The sidecar logs in for its client, who then takes the connection over."""
        connection = await connect(
            endpoint.host,
            endpoint.port,
            tls=endpoint.tls,
            credentials=login,
            timeout_ms=self._driver.connect_timeout_ms,
            frame_bytes_max=self._driver.limits.frame_bytes,
        )
        connection.hand_over(self)
        if connection.renew_after_s is not None:
            self._replacing = asyncio.get_running_loop().call_later(connection.renew_after_s, self._replace)

    def _replace(self) -> None:
        """The login that the sidecar lends ends soon: another connection takes over as soon as nothing is outstanding.

        If that never happens the broker ends it, and the client connects again, as it would without us.
        """
        client, loop = self._client, asyncio.get_running_loop()
        if self._closed or self._transport is None:
            return
        if client.half_read or not client.connection.leaves_nothing_at_home:
            self._replacing = loop.call_later(REPLACE_EVERY_S, self._replace)
            return
        self._closed, self._cause = True, "ours"
        self._transport.close()
        self._driver.handle(HomeClosed(client.connection, served=True, ours=True))

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends what waited for the connection."""
        if self._closed:
            transport.close()
            return
        self._transport = transport  # type: ignore[assignment]
        self._opened_s = asyncio.get_running_loop().time()
        keep_alive(transport)
        driver = self._driver
        driver.counters.broker_connections[self.node_id] += 1
        driver.counters.opened["broker"] += 1
        if self._unsent:
            self._transport.write(bytes(self._unsent))  # type: ignore[union-attr]
            self._unsent.clear()
        if self._finishing:
            self.close()
            return
        if self.paused:
            self.pause_reading()
        driver.handle(HomeOpened(self._client.connection, driver.next_channel_id()))
        self._client.update_reading()

    def data_received(self, data: bytes) -> None:
        """Passes on the answers that may pass, reads those that must be read."""
        if self._closed:
            return
        self._driver.counters.bytes["broker", "in"] += len(data)
        try:
            if self._streaming is not None:
                data = self._stream(self._streaming, data)
                if not data:
                    return
            if self._pending:
                self._pending += data
                if len(self._pending) < self._wanted:
                    return
                data = bytes(self._pending)
                self._pending.clear()
            self._consume(data)
        except CodecError as error:
            self._unreadable(data, str(error))
        else:
            if not self.was_answered:
                self.was_answered = True
                self._driver.backoff.succeeded(self.node_id)

    def connection_lost(self, exc: Exception | None) -> None:
        """The broker's end of it is the client's end, once what it answered is delivered; but see `HomeClosed`."""
        driver = self._driver
        if self._transport is not None:
            driver.counters.broker_connections[self.node_id] -= 1
        for timer in (self._aborting, self._stalling, self._replacing):
            if timer is not None:
                timer.cancel()
        cause = self._cause if self._closed else ("broker_closed" if exc is None else "broker_reset")
        driver.counters.closed["broker", cause] += 1
        if not self._closed:
            self._closed = True
            lasted_s = asyncio.get_running_loop().time() - self._opened_s
            served = self.was_answered or lasted_s >= LASTED_S
            driver.handle(HomeClosed(self._client.connection, served=served, half_read=self._client.half_read))

    def pause_writing(self) -> None:
        """The broker is slow: the client's requests wait, and nobody sees whether it is still there."""
        self._full = True
        self._stalling = asyncio.get_running_loop().call_later(STALLED_S, self._stalled)
        self._client.update_reading()

    def resume_writing(self) -> None:
        """The broker takes requests again."""
        self._full = False
        if self._stalling is not None:
            self._stalling.cancel()
        self._client.update_reading()

    def _stalled(self) -> None:
        log.warning("client %s closed: broker %d took no request for %d s", self._client.peer, self.node_id, STALLED_S)
        self._client.close("broker_stalled")

    # In

    def _consume(self, data: bytes) -> None:
        if self._takes_tokens and not (data := self._consume_tokens(data)):
            return
        position = run = 0
        length = len(data)
        client, driver = self._client, self._driver
        connection = client.connection
        now_ms, frame_bytes_max = driver.now_ms(), driver.limits.frame_bytes
        self._wanted = 0
        while length - position >= SIZE_BYTES + _CORRELATION_ID_BYTES:
            size, correlation_id = _START.unpack_from(data, position)
            exchange = connection.next_at_home
            if not _CORRELATION_ID_BYTES <= size <= frame_bytes_max:
                raise CodecError(position, "frame.size", f"{size} bytes; the limit is {frame_bytes_max}")
            if exchange is None or correlation_id != exchange.correlation_id:
                raise CodecError(position, "correlation_id", "an answer to no request")
            end = position + SIZE_BYTES + size
            request = exchange.request
            may_carry = self._looks_for_state and can_carry(request.api_key, request.api_version)
            passes = (
                exchange.kind is _PLAIN
                and not may_carry
                and request.trace is _NO_TRACE
                and request.api_key not in READ_HERE
                and connection.is_next(exchange)
            )
            if end > length:
                self._wanted = end - position
                if size >= STREAM_BYTES_MIN and can_stream(exchange):
                    if connection.is_next(exchange):
                        client.write(data[run:position])
                        run = position = length
                        self._begin_stream(exchange, size, data[end - size :], takes_state=may_carry)
                    elif connection.waits_elsewhere:
                        self._leave_with_broker()
                break
            if passes or (
                request.api_key in WALKED
                and not may_carry
                and connection.is_next(exchange)
                and passes_unchanged(data[end - size : end], request)
            ):
                connection.passed(exchange)
                driver.observe_passed(exchange, now_ms)
                position = end
                continue
            connection.home_answered()
            if run < position:
                client.write(data[run:position])
            run = position = end
            payload = data[end - size : end]
            if may_carry:
                self._looks_for_state = state_in(payload, request.api_key, request.api_version) is not None
            driver.answered(exchange, payload, client.listener.ports)
            if self._closed:
                return
            if takes_tokens(request.api_key, request.api_version):
                self._takes_tokens = True
                self._consume(data[position:])
                return
        if run < position:
            client.write(data if run == 0 and position == length else data[run:position])
            client.passed()
        if position < length:
            self._pending += data[position:]
            self._check_size()

    def _consume_tokens(self, data: bytes) -> bytes:
        """Passes the raw tokens that follow SaslHandshake v0; returns the answers behind them, keeps what is cut.

        Tokens have no correlation id. They end with the first answer to a request that came after them.
        """
        oldest = self._client.connection.next_at_home
        ends = is_answer(None if oldest is None else oldest.correlation_id)
        end, self._wanted, over = pass_tokens(data, self._driver.limits.frame_bytes, ends)
        if end:
            self._client.write(data[:end])
        if over:
            self._takes_tokens = False
            return data[end:]
        self._pending += data[end:]
        return b""

    def _check_size(self) -> None:
        """A size that makes no sense is refused as soon as it is there."""
        if len(self._pending) >= SIZE_BYTES:
            (size,) = _SIZE.unpack_from(self._pending)
            if not _CORRELATION_ID_BYTES <= size <= self._driver.limits.frame_bytes:
                raise CodecError(0, "frame.size", f"{size} bytes; the limit is {self._driver.limits.frame_bytes}")

    # Large answers

    def _begin_stream(self, exchange: Exchange, size: int, begun: bytes, *, takes_state: bool) -> None:
        answer = LongAnswer(exchange.request, size, takes_state=takes_state)
        self._client.write(answer.begin())
        self._streaming = answer
        self._stream(answer, begun)

    def _stream(self, answer: LongAnswer, data: bytes) -> bytes:
        """Passes the bytes of a large answer on; returns those that come after it."""
        part, rest = data[: answer.left], data[answer.left :]
        ready = answer.feed(part)
        if answer.left:
            if ready:
                self._client.write(ready)
            return rest
        self._streaming = None
        if answer.takes_state:
            self._looks_for_state = answer.state is not None
        client, driver = self._client, self._driver
        exchange = client.connection.home_answered()
        assert exchange is not None, "the answer that streams is the next one"
        last = driver.passes(exchange, answer, client.listener.ports)
        # Apart: together they would be copied once more.
        for part in (ready, last):
            if part:
                client.write(part)
        client.connection.left(exchange)
        driver.observe_passed(exchange, driver.now_ms())
        client.passed()
        return rest

    def _leave_with_broker(self) -> None:
        """Reads on when it is this answer's turn, or when the answer ahead of it is to come behind it after all."""
        self._wanted = 0
        self._left_with_broker = True
        if self._transport is not None:
            self._transport.pause_reading()

    def _unreadable(self, data: bytes, reason: str) -> None:
        cause = explain_prefix(data[:16])
        self._cause = cause or "protocol"
        log.warning(
            "client %s: the answer of broker %d cannot be read: %s",
            self._client.peer,
            self.node_id,
            _REMEDIES.get(cause or "", reason),
        )
        self._client.close("broker_malformed")
        self.close()
