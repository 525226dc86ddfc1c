"""A TCP port with Kafka frames: one request after the other on each connection, as a broker does it, under TLS or not.

Knows no API: it hands each payload to a function and writes what that returns. The next request of a connection is not
looked at before the last one is answered, and not read beyond one buffer, so a client can make us hold one frame. TLS
handshakes count as connections, and each has a time limit.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, final

from backend.net.certificates import BadCertificate, subject_of
from codec.errors import CodecError
from codec.frames import FrameReader, explain_prefix, frame

log = logging.getLogger("tidegate.listener")

CONNECTIONS_MAX: Final = 10_000
DRAIN_TIMEOUT_S: Final = 5.0
TLS_HANDSHAKE_TIMEOUT_S: Final = 10.0
_PAUSE_S: Final = 0.1
"""How long nothing is accepted when the process has no file descriptor left."""
_BACKLOG: Final = 1024
_READ_BYTES: Final = 65_536
_PEERS: Final = {
    "tls_hello": "the client speaks TLS to a plaintext port",
    "tls_alert": "the client speaks TLS to a plaintext port",
    "http": "the client speaks HTTP to a Kafka port",
}

_DISTRUST: Final = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED")
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"})


class Conversation(Protocol):
    """What answers the requests of one connection."""

    @property
    def frame_bytes_max(self) -> int:
        """How large the next request may be."""
        ...

    async def answer(self, payload: bytes) -> bytes:
        """From the payload of a request to that of its answer.

        Raises:
            Farewell: The connection is closed after a last answer.
            Unserved: It is closed without.
            CodecError: The same; the request is malformed.
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Where a connection comes from, and the subject of the certificate that the client has shown, if it has."""

    host: str
    port: int
    subject: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Converse = Callable[[Peer], Conversation]
"""From a new connection to what answers its requests."""


class Unserved(Exception):
    """A request that Kafka, too, answers by closing the connection; the text is the reason for the log."""


class Farewell(Exception):
    """The last answer of a connection; the text is the reason for the log."""

    def __init__(self, payload: bytes, reason: str) -> None:
        super().__init__(reason)
        self.payload = payload


class PortTaken(Exception):
    """The address cannot be listened on; the text says why."""


@final
class Listener:
    """One port.

    Attributes:
        host: the address it is bound to.
        port: the port, also when 0 was asked for.
    """

    def __init__(self, host: str, port: int) -> None:
        """Bind, and accept nobody yet.

        Raises:
            PortTaken: The address cannot be had.
        """
        self.host = host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise PortTaken(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self.port: int = self._socket.getsockname()[1]
        self._accepting: asyncio.Task[None] | None = None
        self._connections: dict[asyncio.Task[None], _Connection | None] = {}

    async def serve(self, converse: Converse, tls: ssl.SSLContext | None = None) -> None:
        """Accept clients; each connection gets a session, which answers its requests."""
        self._socket.listen(_BACKLOG)
        self._socket.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(converse, tls))

    async def close(self, drain_timeout_s: float = DRAIN_TIMEOUT_S) -> None:
        """Accept nobody any more; close each connection once the request under way on it is answered."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        self._socket.close()
        for task, connection in self._connections.items():
            if connection is None or not connection.finish():
                task.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=drain_timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _accept(self, converse: Converse, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._socket)
            except OSError as error:
                log.warning("cannot accept a connection: %s", error.strerror or error)
                await asyncio.sleep(_PAUSE_S)
                continue
            peer = Peer(host=address[0], port=address[1])
            if len(self._connections) >= CONNECTIONS_MAX:
                log.warning("client %s refused: %d connections are open", peer, CONNECTIONS_MAX)
                accepted.close()
                continue
            task = loop.create_task(self._serve(accepted, peer, converse, tls))
            self._connections[task] = None
            task.add_done_callback(self._connections.pop)

    async def _serve(self, accepted: socket.socket, peer: Peer, converse: Converse, tls: ssl.SSLContext | None) -> None:
        try:
            reader, writer = await _streams(accepted, tls)
        except (OSError, EOFError) as error:
            accepted.close()
            log.warning("client %s closed: %s", peer, explain_handshake(error))
            return
        except asyncio.CancelledError:
            accepted.close()
            raise
        try:
            peer = _with_subject(peer, writer)
        except BadCertificate as error:
            writer.close()
            log.warning("client %s closed: %s", peer, error)
            return
        connection = _Connection(reader, writer, peer, converse(peer))
        task = asyncio.current_task()
        assert task is not None, "this is one"
        self._connections[task] = connection
        await connection.run()


async def _streams(
    accepted: socket.socket, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection's two directions, after the TLS handshake if there is one."""
    loop = asyncio.get_running_loop()
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = asyncio.StreamReader(limit=_READ_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    # Not the protocol that is returned: under TLS, uvloop returns its own.
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol,
        accepted,
        ssl=tls,
        ssl_handshake_timeout=None if tls is None else TLS_HANDSHAKE_TIMEOUT_S,
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _with_subject(peer: Peer, writer: asyncio.StreamWriter) -> Peer:
    shown = writer.get_extra_info("ssl_object")
    certificate = None if shown is None else shown.getpeercert(binary_form=True)
    return peer if certificate is None else replace(peer, subject=subject_of(certificate))


def explain_handshake(error: OSError | EOFError) -> str:
    """Why TLS came to nothing, in words for the log."""
    if isinstance(error, ConnectionAbortedError):
        return f"the TLS handshake took longer than {TLS_HANDSHAKE_TIMEOUT_S:g} s"
    if not isinstance(error, ssl.SSLError):
        return "the client left during the TLS handshake"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not trusted: {error.verify_message}; see ssl.ca_file"
    reason = (error.reason or "").upper()
    if reason in _NO_TLS:
        return "the client does not speak TLS; set its security.protocol to SSL or SASL_SSL"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the client shows no certificate, and client_auth is required; give it one"
    if reason.endswith(_DISTRUST):
        return f"the client does not trust our certificate ({reason}); give it the authority that signed it"
    return f"the TLS handshake failed: {reason or type(error).__name__}"


@final
class _Connection:
    """One client."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer, conversation: Conversation
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._conversation = conversation
        self._peer = peer
        self._answering = False
        self._finishing = False

    def finish(self) -> bool:
        """End after the present answer; False if there is none under way, so that the caller may cancel `run`."""
        self._finishing = True
        return self._answering

    async def run(self) -> None:
        """Answer until one of the two sides closes, or the client sends what no Kafka client would."""
        frames = FrameReader(self._conversation.frame_bytes_max)
        try:
            while data := await self._reader.read(_READ_BYTES):
                for payload in frames.feed(data):
                    await self._serve(payload)
                    if self._finishing:
                        return
                    frames.accept_up_to(self._conversation.frame_bytes_max)
        except CodecError as error:
            cause = explain_prefix(frames.first_bytes)
            log.warning("client %s closed: %s", self._peer, _PEERS[cause] if cause else error)
        except Farewell as error:
            self._writer.write(frame(error.payload))
            log.warning("client %s closed: %s", self._peer, error)
        except Unserved as error:
            log.warning("client %s closed: %s", self._peer, error)
        except ssl.SSLError as error:
            log.warning("client %s closed: %s", self._peer, explain_handshake(error))
        except OSError:
            log.debug("client %s is gone", self._peer)
        except asyncio.CancelledError:
            if not self._finishing:
                raise
        finally:
            self._writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._writer.wait_closed()

    async def _serve(self, payload: bytes) -> None:
        self._answering = True
        self._writer.write(frame(await self._conversation.answer(payload)))
        await self._writer.drain()
        self._answering = False
