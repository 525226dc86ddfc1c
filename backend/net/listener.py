"""A TCP port with Kafka frames: one request after the other on each connection, as a broker does it.

Knows no API: it hands each payload to a function and writes what that returns. The next request of a connection is not
looked at before the last one is answered, and not read beyond one buffer, so a client can make us hold one frame.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, final

from codec.errors import CodecError
from codec.frames import FrameReader, explain_prefix, frame

log = logging.getLogger("tidegate.listener")

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""Requests that change or read metadata are far smaller; Kafka's own limit (100 MiB) is made for records."""
CONNECTIONS_MAX: Final = 10_000
DRAIN_TIMEOUT_S: Final = 5.0
_BACKLOG: Final = 1024
_READ_BYTES: Final = 65_536
_PEERS: Final = {
    "tls_hello": "the client speaks TLS to a plaintext port",
    "tls_alert": "the client speaks TLS to a plaintext port",
    "http": "the client speaks HTTP to a Kafka port",
}

Answer = Callable[[bytes], Awaitable[bytes]]
"""From the payload of a request to that of its answer; raises `Unserved` or `CodecError` to close the connection."""


class Unserved(Exception):
    """A request that Kafka, too, answers by closing the connection; the text is the reason for the log."""


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
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], _Connection] = {}

    async def serve(self, answer: Answer) -> None:
        """Accept clients; each request goes to `answer`."""
        self._server = await asyncio.start_server(
            lambda reader, writer: self._accept(reader, writer, answer), sock=self._socket, backlog=_BACKLOG
        )

    async def close(self, drain_timeout_s: float = DRAIN_TIMEOUT_S) -> None:
        """Accept nobody any more; close each connection once the request under way on it is answered."""
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for task, connection in self._connections.items():
            if not connection.finish():
                task.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=drain_timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        connection = _Connection(reader, writer, answer)
        if len(self._connections) >= CONNECTIONS_MAX:
            log.warning("client %s refused: %d connections are open", connection.peer, CONNECTIONS_MAX)
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None, "the server runs this in a task"
        self._connections[task] = connection
        try:
            await connection.run()
        finally:
            del self._connections[task]


@final
class _Connection:
    """One client.

    Attributes:
        peer: its address, for the log.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._answering = False
        self._finishing = False
        peername = writer.get_extra_info("peername") or ("unknown", 0)
        self.peer = f"{peername[0]}:{peername[1]}"

    def finish(self) -> bool:
        """End after the present answer; False if there is none under way, so that the caller may cancel `run`."""
        self._finishing = True
        return self._answering

    async def run(self) -> None:
        """Answer until one of the two sides closes, or the client sends what no Kafka client would."""
        frames = FrameReader(FRAME_BYTES_MAX)
        try:
            while data := await self._reader.read(_READ_BYTES):
                for payload in frames.feed(data):
                    await self._serve(payload)
                    if self._finishing:
                        return
        except CodecError as error:
            cause = explain_prefix(frames.first_bytes)
            log.warning("client %s closed: %s", self.peer, _PEERS[cause] if cause else error)
        except Unserved as error:
            log.warning("client %s closed: %s", self.peer, error)
        except ConnectionError:
            log.debug("client %s is gone", self.peer)
        except asyncio.CancelledError:
            if not self._finishing:
                raise
        finally:
            self._writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._writer.wait_closed()

    async def _serve(self, payload: bytes) -> None:
        self._answering = True
        self._writer.write(frame(await self._answer(payload)))
        await self._writer.drain()
        self._answering = False
