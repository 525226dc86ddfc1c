"""A bare relay on uvloop: what a proxy in Python costs that looks at nothing.

python -m tests.benchmarks.relay PORT TO_PORT
"""

import asyncio
import sys
from typing import Any

import uvloop

from tests.support.kafka.ports import HOST


class Relay(asyncio.Protocol):
    """One side of a connection; copies what it receives to the other side, at that side's pace."""

    def __init__(self, to_port: int | None, peer: "Relay | None" = None) -> None:
        self._to_port = to_port
        self._peer = peer
        self._early: list[bytes] = []
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connects the other side."""
        self.transport = transport
        if self._to_port is not None:
            self._task = asyncio.get_running_loop().create_task(self._connect(self._to_port))

    async def _connect(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        _, self._peer = await loop.create_connection(lambda: Relay(None, self), HOST, port)
        for data in self._early:
            self._peer.transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Copies."""
        if self._peer is None:
            self._early.append(data)
        elif not self._peer.transport.is_closing():
            self._peer.transport.write(data)

    def pause_writing(self) -> None:
        """This side is slow: the other is not read."""
        if self._peer is not None:
            self._peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """This side takes bytes again."""
        if self._peer is not None:
            self._peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the other side."""
        if self._peer is not None:
            self._peer.transport.close()


async def serve(port: int, to_port: int) -> None:
    """Relays until the process is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Relay(to_port), HOST, port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
