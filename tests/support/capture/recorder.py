"""A relay before one broker that keeps every frame, and stays between: answers name its own port for the broker's.

Frames are kept as they were sent, before that. Knows of the protocol only frames and the first bytes of headers; the
broker and the recorder have the same host, so an address is replaced byte for byte.
"""

import contextlib
import socket
import struct
import threading
from typing import NamedTuple

from tests.support.address import Address

HOST = "127.0.0.1"
SIZE = struct.Struct(">i")
REQUEST_START = struct.Struct(">hhi")


class Recorded(NamedTuple):
    """A frame without its size; call, key and version are those of the request, also for its answer."""

    call: str
    direction: str
    api_key: int
    api_version: int
    payload: bytes


class Recorder:
    """Listens on construction. Frames that come are put down to the call that `call` names at that time."""

    def __init__(self, broker: Address) -> None:
        """Stand before `broker`, whose advertised host is `HOST`."""
        self.call = ""
        self.recorded: list[Recorded] = []
        self._broker = broker
        self._server = socket.create_server((HOST, 0))
        self.address = Address(HOST, self._server.getsockname()[1])
        self._theirs = HOST.encode() + SIZE.pack(broker.port)
        self._ours = HOST.encode() + SIZE.pack(self.address.port)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._broker)
                asked: dict[int, tuple[str, int, int]] = {}
                threading.Thread(target=self._requests, args=(client, broker, asked), daemon=True).start()
                threading.Thread(target=self._answers, args=(broker, client, asked), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[str, int, int]]) -> None:
        with client, broker, contextlib.suppress(OSError):
            while payload := _read_frame(client):
                api_key, api_version, correlation_id = REQUEST_START.unpack_from(payload)
                asked[correlation_id] = (self.call, api_key, api_version)
                self.recorded.append(Recorded(self.call, "request", api_key, api_version, payload))
                broker.sendall(SIZE.pack(len(payload)) + payload)

    def _answers(self, broker: socket.socket, client: socket.socket, asked: dict[int, tuple[str, int, int]]) -> None:
        with client, broker, contextlib.suppress(OSError):
            while payload := _read_frame(broker):
                call, api_key, api_version = asked.pop(SIZE.unpack_from(payload)[0])
                self.recorded.append(Recorded(call, "response", api_key, api_version, payload))
                passed_on = payload.replace(self._theirs, self._ours)
                client.sendall(SIZE.pack(len(passed_on)) + passed_on)


def _read_frame(source: socket.socket) -> bytes:
    """The next payload; empty at the end of the stream."""
    size = _read(source, SIZE.size)
    return _read(source, SIZE.unpack(size)[0]) if size else b""


def _read(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            return b""
        data += piece
    return bytes(data)
