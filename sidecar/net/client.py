"""One client connection: its bytes in, the answers out.

The hot path of the sidecar. A chunk of plain requests goes on to the client's own broker as it came, in one write; only
the first twelve bytes of each frame are looked at. Large plain requests stream through without being collected.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from functools import partial
from typing import Final

from codec import CodecError
from codec.frames import SIZE_BYTES, explain_prefix, frame
from codec.headers import peek_request
from codec.registry import known_versions
from sidecar.core.apis import PLAIN, api_name
from sidecar.core.connection import ClientConnection
from sidecar.core.events import RequestReceived
from sidecar.core.exchange import Exchange, Request, plain_request
from sidecar.core.ids import NodeId
from sidecar.core.login_refusal import refuse_login
from sidecar.core.passing import LOOKED_AT, Passing, UnsupportedVersion, look
from sidecar.core.raw_tokens import is_request, pass_tokens, takes_tokens
from sidecar.core.requests import read_request
from sidecar.core.versions import refuse_offer
from sidecar.net.driver import Driver
from sidecar.net.home import Home
from sidecar.net.identities import LOGIN_KEYS
from sidecar.net.parties import ListenerParty
from sidecar.net.patience import keep_alive

log = logging.getLogger("tidegate.client")

_START: Final = struct.Struct(">ihhi")
_SIZE: Final = struct.Struct(">i")
_KEY: Final = struct.Struct(">hh")
_PLAIN: Final = Passing.PLAIN.value
_WHOLE: Final = frozenset({Passing.GATED, Passing.LOCAL})
_HEADER_BYTES_MIN: Final = 8
STREAM_BYTES_MIN: Final = 65536
"""Plain requests above this size go on before they are complete."""
_UNSENT_BYTES_MAX: Final = 65536
"""What is read ahead while the connection to the broker opens."""

GRACE_S: Final = 0.4
"""How long a read that ends by closing its connection lets the answers ahead of it leave."""
LINGER_S: Final = 60.0
"""How long a client that sends no more is given the answers that are due."""
CLOSE_TIMEOUT_S: Final = 5.0
"""How long a connection that we end may take to deliver what was written."""

_BACKED_OFF: Final = frozenset({"no_broker", "broker_unreachable", "broker_closed", "broker_malformed"})
_REMEDIES: Final = {
    "tls_hello": "the client speaks TLS to a plain port: set its security.protocol to PLAINTEXT or SASL_PLAINTEXT",
    "tls_alert": "the client ended a TLS handshake: this port is plain",
    "http": "an HTTP request came to a Kafka port: metrics and health are on the admin address",
}


class Client(asyncio.Protocol):
    """See the module.

    Attributes:
        connection: its place in the core, once a broker was found for it.
        home: the connection to its own broker.
    """

    def __init__(self, driver: Driver, listener: ListenerParty, node_id: NodeId | None) -> None:
        self.connection: ClientConnection
        self.home = Home(driver, self)
        self.listener = listener
        self._driver = driver
        self._limits = driver.limits
        self._node_id = node_id
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._pending = bytearray()
        self._wanted = 0
        self._streaming = 0
        self._takes_tokens = False
        self._reading = True
        self._admitted = False
        self._finished: str | None = None
        self._cause: str | None = None
        self._last: Exchange | None = None
        self._last_cause = ""
        self._ending: asyncio.TimerHandle | None = None
        self.peer = "?"

    def closing(self) -> bool:
        """Whether the connection has ended or is about to."""
        return self._cause is not None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Finds a broker for the client and starts to connect to it; closes if there is none."""
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        keep_alive(transport)
        counters = self._driver.counters
        counters.client_connections += 1
        counters.opened["client"] += 1
        if counters.client_connections > self._limits.connections:
            self._driver.warn(self.peer, f"refused: limits.connections ({self._limits.connections}) is reached")
            self.close("too_many_connections")
            return
        connection = self._driver.open_client(self, self._node_id)
        if connection is None:
            self.close("no_broker")
            return
        self.connection = connection
        self._admitted = True
        self._driver.backoff.succeeded(self.home.node_id)
        self.home.open(connection.node_id)

    def data_received(self, data: bytes) -> None:
        """Passes on what may pass, gives what is gated to the core, keeps the rest."""
        if self.closing():
            return
        self._driver.counters.bytes["client", "in"] += len(data)
        if self._streaming:
            part, data = data[: self._streaming], data[self._streaming :]
            self._streaming -= len(part)
            self.home.write(part)
            if not data:
                if self.home.is_full(_UNSENT_BYTES_MAX):
                    self.update_reading()
                return
        if self._pending:
            self._pending += data
            if len(self._pending) < self._wanted:
                return
            data = bytes(self._pending)
            self._pending.clear()
        self._consume(data)
        if self._pending or not self._reading or not self.accepts() or self.home.is_full(_UNSENT_BYTES_MAX):
            self.update_reading()

    def eof_received(self) -> bool:
        """The client sends no more; what it sent is still answered, except over TLS, which knows no half-closed end."""
        self._finish("client_closed")
        if not self.closing():
            self._end_later(LINGER_S, partial(self.close, "client_closed"))
        return self._transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees everything that the connection held."""
        cause = self._cause or ("client_closed" if exc is None else "client_reset")
        if not self.closing() and self._pending:
            cause = "truncated"
        self._cause = cause
        if self._ending is not None:
            self._ending.cancel()
        counters = self._driver.counters
        counters.client_connections -= 1
        counters.closed["client", cause] += 1
        self.home.close()
        if self._admitted:
            self._driver.client_closed(self)

    def pause_writing(self) -> None:
        """The client is slow: its broker's answers wait."""
        self.home.pause_reading()

    def resume_writing(self) -> None:
        """The client takes answers again."""
        self.home.resume_reading()

    # Out

    def write(self, data: bytes) -> None:
        """Sends whole frames, or a part of one that streams."""
        self._driver.counters.bytes["client", "out"] += len(data)
        self._transport.write(data)

    def passed(self) -> None:
        """Answers went to the client as they came: only now and then does that change anything for the others."""
        if self.connection.waiting_bytes or not self._reading or self._finished is not None or self._last is not None:
            self.deliver()

    def deliver(self) -> None:
        """Sends the answers whose turn it is."""
        if self.closing():
            return
        now_ms = self._driver.now_ms()
        for exchange in self.connection.take_ready():
            self.write(frame(exchange.answer or b""))
            self._driver.observe(exchange, now_ms)
        self.home.look_again()
        if self._last is not None and self.connection.is_next(self._last):
            self.close(self._last_cause)
        self._close_when_done()
        self._driver.read_again(self)

    def close(self, cause: str, at: Exchange | None = None) -> None:
        """Ends the connection once what was written has left; ``cause`` from a closed set.

        Args:
            at: the answers ahead of this exchange are waited for, `GRACE_S` at the longest.
        """
        if at is not None and not self.connection.is_next(at):
            if self._last is None:
                self._last, self._last_cause = at, cause
                asyncio.get_running_loop().call_later(GRACE_S, self.close, cause)
        elif not self.closing():
            self._cause = cause
            if cause in _BACKED_OFF and not self.home.was_answered:
                # A client that is refused at once would be back at once.
                self._end_later(self._driver.backoff.failed(self.home.node_id), self._end)
            else:
                self._end()

    def _end(self) -> None:
        self._transport.close()
        # A client that takes nothing any more would keep its connection for ever.
        self._end_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def _end_later(self, delay_s: float, end: Callable[[], None]) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(delay_s, end)

    def drain(self) -> None:
        """Takes no more requests; the connection ends when those that came are answered."""
        if not self.closing() and self._finished is None:
            self._transport.pause_reading()
            self._finish("drained")

    def update_reading(self) -> None:
        """Reads from the client as long as order, limits and the broker's pace allow it."""
        if self.closing():
            return
        while True:
            readable = self._last is None and self.accepts() and not self.home.is_full(_UNSENT_BYTES_MAX)
            if readable and self._pending and len(self._pending) >= max(self._wanted, SIZE_BYTES):
                data = bytes(self._pending)
                self._pending.clear()
                self._consume(data)
                if self.closing():
                    return
                if len(self._pending) == len(data):
                    break
                continue
            break
        if readable != self._reading and self._finished is None:
            self._reading = readable
            if readable:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def accepts(self) -> bool:
        """Whether the core lets the next request in."""
        return self.connection.accepts(self._limits.in_flight_per_connection, self._limits.overtaken_answer_bytes)

    # In

    def _consume(self, data: bytes) -> None:
        """Takes the whole frames of ``data``; the rest stays in `_pending`, `_wanted` bytes of it make sense next."""
        position = run = 0
        length = len(data)
        connection, driver, limits = self.connection, self._driver, self._limits
        now_ms = driver.now_ms()
        self._wanted = 0
        if self._takes_tokens:
            self._consume_tokens(data)
            return
        while length - position >= _START.size:
            if not connection.accepts(limits.in_flight_per_connection, limits.overtaken_answer_bytes):
                break
            size, api_key, api_version, correlation_id = _START.unpack_from(data, position)
            if not _HEADER_BYTES_MIN <= size <= limits.frame_bytes or api_key < 0:
                self.home.write(data[run:position])
                self._malformed(data[position : position + 16], size)
                return
            end = position + SIZE_BYTES + size
            if api_key not in LOOKED_AT and end <= length:
                # What becomes of most requests, in short.
                driver.counters.requests[api_key, _PLAIN] += 1
                request = plain_request(api_key, api_version)
                connection.pass_through(request, driver.next_seq(), now_ms, correlation_id)
                position = end
                continue
            passing = Passing.PLAIN if api_key not in LOOKED_AT else self._look(data, position + SIZE_BYTES, end)
            if passing is None:
                return
            if passing is Passing.LATER:
                self._wanted = min(end - position, 2 * (length - position))
                break
            if end > length and (size < STREAM_BYTES_MIN or passing in _WHOLE):
                self._wanted = end - position
                break
            if passing in _WHOLE:
                self.home.write(data[run:position])
                run = position = end
                if passing is Passing.GATED:
                    self._gated(data[end - size : end])
                else:
                    self._answer_here(api_key, 0, correlation_id, refuse_offer(correlation_id))
                if self.closing():
                    return
                if takes_tokens(api_key, api_version) and not self.listener.lends_identity:
                    self._takes_tokens = True
                    self._consume_tokens(data[position:])
                    return
                continue
            if passing is not Passing.PLAIN:
                # Without answers a close is all that a broker has to say.
                connection.tied = True
                if passing is Passing.TIED:
                    passing = Passing.PLAIN
            driver.counters.requests[api_key, passing.value] += 1
            if passing is Passing.PLAIN:
                request = plain_request(api_key, api_version)
                connection.pass_through(request, driver.next_seq(), now_ms, correlation_id)
            if end > length:
                self._streaming = end - length
                end = length
            position = end
        self.home.write(data if run == 0 and position == length else data[run:position])
        self._keep(data, position)

    def _consume_tokens(self, data: bytes) -> None:
        """Takes the raw tokens that follow SaslHandshake v0, unseen; the first request after them is one as ever."""
        if not self.accepts():
            self._pending[:0] = data
            return
        try:
            end, self._wanted, over = pass_tokens(data, self._limits.frame_bytes, is_request)
        except CodecError as error:
            first_bytes = data[error.offset : error.offset + 16]
            self._malformed(first_bytes, _SIZE.unpack_from(first_bytes)[0])
            return
        self.home.write(data[:end])
        if over:
            self._takes_tokens = False
            self._consume(data[end:])
        else:
            self._pending[:0] = data[end:]

    def _look(self, data: bytes, start: int, end: int) -> Passing | None:
        """Looks closer at a request; None when what it is ended the connection."""
        api_key, api_version = _KEY.unpack_from(data, start)
        try:
            return look(data, start, end, api_key, api_version)
        except CodecError as error:
            self._unreadable(str(error))
        except UnsupportedVersion:
            self._unsupported(api_key, api_version)
        return None

    def _keep(self, data: bytes, position: int) -> None:
        rest = data[position:]
        if not rest:
            return
        if len(rest) >= SIZE_BYTES:
            (size,) = _SIZE.unpack_from(rest)
            if not _HEADER_BYTES_MIN <= size <= self._limits.frame_bytes:
                self._malformed(rest[:16], size)
                return
        # Requests may have come in while the core was at work; they are behind these bytes.
        self._pending[:0] = rest

    def _gated(self, payload: bytes) -> None:
        driver, connection = self._driver, self.connection
        if self.listener.lends_identity and _KEY.unpack_from(payload)[0] in LOGIN_KEYS:
            self._refuse_login(payload)
            return
        try:
            request = read_request(payload, driver.scope, connection.connection_id)
        except CodecError as error:
            self._unreadable(str(error))
        except UnsupportedVersion:
            self._unsupported(*_KEY.unpack_from(payload))
        else:
            driver.handle(RequestReceived(connection, request))

    def _refuse_login(self, payload: bytes) -> None:
        api_key, api_version, correlation_id = peek_request(payload)
        if api_version not in (known_versions(api_key) or ()):
            self._unsupported(api_key, api_version)
            return
        log.warning(
            "client %s wants to log in, which the sidecar does for it on listener %s: "
            "set its security.protocol to PLAINTEXT, or to SSL if the listener speaks TLS",
            self.peer,
            self.listener.name,
        )
        self._answer_here(api_key, api_version, correlation_id, refuse_login(api_key, api_version, correlation_id))

    def _answer_here(self, api_key: int, api_version: int, correlation_id: int, payload: bytes) -> None:
        driver, connection = self._driver, self.connection
        request = Request(
            api_key=api_key,
            api_version=api_version,
            correlation_id=correlation_id,
            kind=PLAIN.kind,
            trace=PLAIN.trace,
        )
        driver.counters.requests[api_key, Passing.LOCAL.value] += 1
        exchange = connection.take_local(request, driver.next_seq(), driver.now_ms())
        connection.answered(exchange, payload)
        self.deliver()

    # Faults

    def _malformed(self, first_bytes: bytes, size: int) -> None:
        cause = explain_prefix(first_bytes)
        limit = self._limits.frame_bytes
        if cause is not None:
            self._reject(cause, _REMEDIES[cause])
        elif size > limit:
            self._reject("oversized", f"a frame of {size} bytes is above limits.frame_bytes ({limit})")
        else:
            self._unreadable(f"a frame cannot start with {first_bytes[:8].hex(' ')}")

    def _unsupported(self, api_key: int, api_version: int) -> None:
        name = api_name(api_key)
        reason = f"{name} v{api_version} is newer than this sidecar, whose ApiVersions hides it"
        self._reject("unsupported_version", reason)

    def _unreadable(self, reason: str) -> None:
        self._reject("malformed", f"these bytes are no Kafka request: {reason}")

    def _reject(self, cause: str, reason: str) -> None:
        self._driver.warn(self.peer, f"closed: {reason}")
        self.close(cause)

    def _finish(self, cause: str) -> None:
        self._finished = cause
        self._close_when_done()

    def _close_when_done(self) -> None:
        if self._finished is None or self.closing():
            return
        connection, left = self.connection, self._finished == "client_closed"
        if left and self._streaming and connection.in_flight <= 1:
            # The rest of that request never comes, and no answer without it.
            self.close("truncated")
        elif connection.in_flight == 0 or (left and connection.only_waits):
            # Nobody takes the answers of reads that still wait.
            self.close("truncated" if left and self._pending else self._finished)

    @property
    def half_read(self) -> bool:
        """Whether part of a request has come, and the rest has not."""
        return bool(self._pending or self._streaming)

    def reopen_home(self) -> None:
        """Connects to the client's own broker again; requests may be sent meanwhile."""
        ended, self.home = self.home, Home(self._driver, self)
        if ended.paused:
            self.home.pause_reading()
        self.home.open(self.connection.node_id)
        self.update_reading()

    def send_home(self, payload: bytes) -> None:
        """Sends one request to the client's own broker."""
        self.home.send(payload)

    def answer_plain(self, exchange: Exchange, payload: bytes) -> None:
        """Gives a plain request its answer, now or when it is its turn."""
        if self.connection.is_next(exchange):
            self.connection.left(exchange)
            self.write(frame(payload))
            self._driver.observe(exchange, self._driver.now_ms())
        else:
            self.connection.answered(exchange, payload)
