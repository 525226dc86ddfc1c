"""TLS towards clients: accepts connections of one port and takes them through the handshake, each within a time limit.

A client has its place in the sidecar once the handshake is over; before, it is a socket and a task, and there are never
more of them than `limits.connections` leaves room for. The context may be replaced at any time: handshakes that begin
later use the new one. Knows nothing of Kafka; `sidecar.net.listener` says what a connection becomes.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from sidecar.net.access import SHUTDOWN_TIMEOUT_S
from sidecar.net.counters import Counters

log = logging.getLogger("tidegate.tls")

HANDSHAKE_TIMEOUT_S: Final = 10.0
"""How long a client may take to finish the handshake."""
_PAUSE_S: Final = 0.1
"""How long nothing is accepted when the process has no file descriptor left."""

_PLAIN: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_MESSAGE"}
)
_DISTRUST: Final = frozenset({"UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED"})


class TlsServer:
    """See the module.

    Args:
        full: whether ``pending`` handshakes are as many as the limits allow.

    Attributes:
        context: for handshakes that begin from now on.
        pending: handshakes that have begun and not ended.
    """

    def __init__(self, context: ssl.SSLContext, counters: Counters, full: Callable[[int], bool]) -> None:
        self.context = context
        self._counters = counters
        self._full = full
        self._handshakes: set[asyncio.Task[None]] = set()

    @property
    def pending(self) -> int:
        """How many handshakes are under way."""
        return len(self._handshakes)

    async def serve(self, bound: socket.socket, factory: Callable[[], asyncio.Protocol]) -> None:
        """Accepts until cancelled; ``factory`` makes the protocol of a connection whose handshake succeeded."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(bound)
            except OSError as error:
                log.warning("cannot accept a connection: %s", error.strerror or error)
                await asyncio.sleep(_PAUSE_S)
                continue
            peer = f"{address[0]}:{address[1]}"
            if self._full(self.pending):
                log.warning("connection from %s refused: limits.connections is reached", peer)
                self._counters.closed["client", "too_many_connections"] += 1
                connection.close()
                continue
            task = loop.create_task(self._shake_hands(connection, peer, factory))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def close(self) -> None:
        """Ends the handshakes that are under way; connections that are past it stay."""
        for task in self._handshakes:
            task.cancel()

    async def _shake_hands(self, connection: socket.socket, peer: str, factory: Callable[[], asyncio.Protocol]) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        done = False
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                factory,
                connection,
                ssl=self.context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
            )
            done = True
        except (OSError, EOFError) as error:
            cause, why = _explain(error)
            self._counters.closed["client", cause] += 1
            log.log(logging.WARNING if why else logging.DEBUG, "connection from %s closed: %s", peer, why or error)
        finally:
            if not done:
                connection.close()


def _explain(error: OSError | EOFError) -> tuple[str, str]:
    """Cause for the metric, and what to do; nothing to do about a client that just left."""
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "").upper()
        if reason == "HTTP_REQUEST":
            return "http", "an HTTP request came to a Kafka port: metrics and health are on the admin address"
        if reason in _PLAIN:
            return "plain", "the client does not speak TLS: set its security.protocol to SSL or SASL_SSL"
        if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "tls", "the client shows no certificate, and client_auth is required: give it one"
        if isinstance(error, ssl.SSLCertVerificationError):
            return "tls", f"the client's certificate is not trusted: {error.verify_message}; see ssl.ca_file"
        if any(reason.endswith(alert) for alert in _DISTRUST):
            return "tls", f"the client does not trust our certificate ({reason}): give it the authority that signed it"
        return "tls", f"the TLS handshake failed: {reason or type(error).__name__}"
    if isinstance(error, ConnectionAbortedError):
        return "tls", f"the TLS handshake took longer than {HANDSHAKE_TIMEOUT_S:g} s"
    return "client_reset", ""
