"""Requests to a controller in another process: a small pool of connections, one request at a time on each.

Kafka's nodes answer the requests of a connection one after the other, and a leader holds a Fetch for a while; so
whatever must not wait takes another connection. Knows frames and headers; which requests, and what to make of an
answer, is the callers' business.
"""

import asyncio
import contextlib
import struct
from collections.abc import Mapping
from typing import Any, Final, final

from codec import CodecError, decode_response, encode_request
from codec.frames import SIZE_BYTES, frame
from codec.headers import RequestHeader, ResponseHeader, encode_request_header, read_response_header

CONNECTIONS_MAX: Final = 64
"""Requests under way to one controller; more of them wait."""
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_SIZE: Final = struct.Struct(">i")


class Unreachable(Exception):
    """No answer came; whether the request was carried out is not known."""


@final
class Remote:
    """One controller.

    Args:
        host, port: where it listens for the quorum.
        client_id: who asks, for the request's header.
    """

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self._host = host
        self._port = port
        self._client_id = client_id
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)
        self._idle: list[_Connection] = []

    async def ask(
        self, api_key: int, api_version: int, body: Mapping[str, Any], timeout_s: float
    ) -> tuple[ResponseHeader, dict[str, Any]]:
        """Header and body of the answer.

        Raises:
            Unreachable: There is none within the time.
        """
        try:
            async with asyncio.timeout(timeout_s), self._room:
                connection = self._take() or await _Connection.open(self._host, self._port, self._client_id)
                try:
                    answer = await connection.ask(api_key, api_version, body)
                except BaseException:
                    connection.close()
                    raise
                self._idle.append(connection)
                return answer
        except (OSError, EOFError, TimeoutError, CodecError) as error:
            raise Unreachable(f"{self._host}:{self._port}: {error or type(error).__name__}") from error

    async def close(self) -> None:
        """Close what is idle; requests under way close theirs when they are cancelled."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        await asyncio.gather(*(connection.closed() for connection in idle))

    def _take(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None


@final
class _Connection:
    """One connection, used by one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_id = 0

    @classmethod
    async def open(cls, host: str, port: int, client_id: str) -> "_Connection":
        reader, writer = await asyncio.open_connection(host, port)
        return cls(reader, writer, client_id)

    @property
    def is_open(self) -> bool:
        """Whether the other side has not closed it, as far as is known."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def ask(
        self, api_key: int, api_version: int, body: Mapping[str, Any]
    ) -> tuple[ResponseHeader, dict[str, Any]]:
        self._correlation_id = self._correlation_id % 0x7FFFFFFF + 1
        header = RequestHeader(
            api_key=api_key,
            api_version=api_version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        self._writer.write(frame(encode_request_header(header) + encode_request(api_key, api_version, body)))
        await self._writer.drain()
        (size,) = _SIZE.unpack(await self._reader.readexactly(SIZE_BYTES))
        if not 0 <= size <= ANSWER_BYTES_MAX:
            raise CodecError(0, "frame.size", f"{size} bytes; the limit is {ANSWER_BYTES_MAX}")
        payload = await self._reader.readexactly(size)
        answer_header, at = read_response_header(payload, api_key, api_version)
        if answer_header.correlation_id != self._correlation_id:
            raise CodecError(0, "response_header.correlation_id", "another than the request's")
        return answer_header, decode_response(api_key, api_version, payload, at)

    def close(self) -> None:
        self._writer.close()

    async def closed(self) -> None:
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
