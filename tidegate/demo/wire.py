"""A Kafka client in a page: one connection, one question at a time, by codec's tables.

Sends what it is told to the address it is told; it follows no metadata, retries nothing and sends no ConsistencyState:
an unmodified client. Used by the workload of the demo.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from codec import CodecError, decode_response, encode_request
from codec.api_keys import ApiKey
from codec.frames import FrameReader, frame
from codec.headers import RequestHeader, encode_request_header, peek_correlation_id, response_body_offset

CLIENT_ID: Final = "tidegate-demo"
TIMEOUT_S: Final = 10.0
FRAME_BYTES_MAX: Final = 10 << 20
_READ_BYTES: Final = 1 << 16
_CORRELATION_IDS: Final = 1 << 31


class Unanswered(Exception):
    """No answer: nobody listens, the connection ended, time was over, or what came makes no sense."""


class Connection:
    """Connects to `address` when first asked something, and again after a failure."""

    def __init__(self, host: str, port: int) -> None:
        self.address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._frames = FrameReader(FRAME_BYTES_MAX)
        self._correlation_id = 0

    async def ask(self, api_key: ApiKey, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and return the body of its answer. One caller at a time.

        Raises:
            Unanswered: There is no answer; the connection is closed then.
        """
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._ask(api_key, api_version, body)
        except (OSError, EOFError, CodecError) as error:  # a TimeoutError is an OSError
            self.close()
            reason = str(error) or type(error).__name__
            raise Unanswered(f"{api_key.name} to {self.address[0]}:{self.address[1]}: {reason}") from error
        except BaseException:
            # An answer that nobody waits for any more would be taken for the next one.
            self.close()
            raise

    def close(self) -> None:
        """End the connection; the next question opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _ask(self, api_key: ApiKey, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._streams is None:
            self._frames = FrameReader(FRAME_BYTES_MAX)
            self._streams = await asyncio.open_connection(*self.address)
        reader, writer = self._streams
        self._correlation_id = (self._correlation_id + 1) % _CORRELATION_IDS
        header = RequestHeader(
            api_key=api_key, api_version=api_version, correlation_id=self._correlation_id, client_id=CLIENT_ID
        )
        writer.write(frame(encode_request_header(header) + encode_request(api_key, api_version, body)))
        await writer.drain()
        payload = await self._next_frame(reader)
        if peek_correlation_id(payload) != self._correlation_id:
            raise EOFError("the answer belongs to another request")
        return decode_response(api_key, api_version, payload, response_body_offset(payload, api_key, api_version))

    async def _next_frame(self, reader: asyncio.StreamReader) -> bytes:
        data = b""
        while True:
            for payload in self._frames.feed(data):
                return payload
            data = await reader.read(_READ_BYTES)
            if not data:
                raise EOFError("the connection was closed")
