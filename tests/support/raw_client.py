"""A Kafka client for tests that shares nothing with the code under test: sockets, and kio's messages.

An oracle: it sends exactly the message and version it is given to exactly the address it is given, checks the
correlation id and that the answer has no byte too many, and retries nothing. Must not import Tidegate's own packages.
The framing is pure (`encode_request`, `decode_response`); `RawConnection` is its asyncio shell, `ask_once` a blocking
one for the harness.
"""

import asyncio
import contextlib
import itertools
import socket
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import Self, TypeVar, cast

from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake import v0 as sasl_handshake_v0
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.serial import entity_reader, entity_writer
from kio.serial.readers import read_unsigned_varint
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from tests.support.address import Address

CLIENT_ID = "raw-client"
FRAME_BYTES_MAX = 100 * 1024 * 1024
TIMEOUT_S = 30.0
_SIZE = struct.Struct(">i")

R = TypeVar("R", bound=ResponsePayload)


class RawClientError(Exception):
    """The peer broke the protocol, refused the login or hung up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainLogin:
    """Who to be, by SASL PLAIN.

    Attributes:
        pinned: log in with the old handshake: a sidecar cannot repeat that, so all reads stay with one broker.
    """

    username: str
    password: str
    pinned: bool = False

    @classmethod
    def of(cls, username: str, *, pinned: bool = False) -> Self:
        """A user of the harness, whose password is its name with `-secret` appended."""
        return cls(username=username, password=f"{username}-secret", pinned=pinned)


def encode_request(request: RequestPayload, correlation_id: int, client_id: str | None = CLIENT_ID) -> bytes:
    """One request as it goes over the wire, its 4 bytes of size included."""
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    body = BytesIO()
    entity_writer(header_type)(body, header)
    entity_writer(type(request))(body, request)
    return _SIZE.pack(body.tell()) + body.getvalue()


def decode_response(frame: bytes, response_type: type[R], correlation_id: int) -> R:
    """The answer in a frame without its size.

    Raises:
        RawClientError: if it answers another request, or has bytes missing or left over.
    """
    if len(frame) < 4:
        raise RawClientError(f"an answer of {len(frame)} bytes has no correlation id")
    (found,) = _SIZE.unpack_from(frame)
    if found != correlation_id:
        raise RawClientError(f"answer to request {found}, expected {correlation_id}")
    try:
        header_size = _header_size(frame, flexible=response_type.__header_schema__.__flexible__)
        response, body_size = entity_reader(response_type)(frame, header_size)
    except Exception as error:
        raise RawClientError(f"{response_type.__name__} v{response_type.__version__} unreadable: {error!r}") from error
    if header_size + body_size != len(frame):
        raise RawClientError(f"{len(frame) - header_size - body_size} bytes after {response_type.__name__}")
    return response


def _header_size(frame: bytes, *, flexible: bool) -> int:
    """Where the body begins: behind the correlation id and, in a flexible header, whatever tagged fields it has.

    Clients pass over fields that they do not know (KIP-482); kio does not.
    """
    offset = _SIZE.size
    if not flexible:
        return offset
    count, read = read_unsigned_varint(frame, offset)
    offset += read
    for _ in range(count):
        _, read = read_unsigned_varint(frame, offset)
        offset += read
        size, read = read_unsigned_varint(frame, offset)
        offset += read + size
    return offset


def frame_size(head: bytes) -> int:
    """The size that the first 4 bytes of a frame announce.

    Raises:
        RawClientError: if it is negative or beyond `FRAME_BYTES_MAX`.
    """
    (size,) = _SIZE.unpack(head)
    if not 0 <= size <= FRAME_BYTES_MAX:
        raise RawClientError(f"a frame of {size} bytes")
    return cast(int, size)


class RawConnection:
    """One connection of an asyncio program. Requests are answered in the order in which they were sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None) -> None:
        """Use `open` instead; this wraps streams that exist already."""
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)
        self._unanswered: deque[int] = deque()

    @classmethod
    async def open(
        cls, address: Address, *, login: PlainLogin | None = None, client_id: str | None = CLIENT_ID
    ) -> Self:
        """Connect, and log in if told as whom.

        Raises:
            OSError: if nobody listens there.
            RawClientError: if the login is refused.
        """
        async with asyncio.timeout(TIMEOUT_S):
            connection = cls(*await asyncio.open_connection(*address), client_id)
        if login is not None:
            try:
                await connection.log_in(login)
            except BaseException:
                await connection.close()
                raise
        return connection

    async def log_in(self, login: PlainLogin) -> None:
        """SASL PLAIN with Kafka's handshake, the old one where the login says so.

        Raises:
            RawClientError: if it is refused; the message has the server's reason.
        """
        secret = f"\0{login.username}\0{login.password}".encode()
        if login.pinned:
            old_handshake = sasl_handshake_v0.SaslHandshakeRequest(mechanism="PLAIN")
            old = await self.ask(old_handshake, sasl_handshake_v0.SaslHandshakeResponse)
            await self.send_bytes(_SIZE.pack(len(secret)) + secret)
            if old.error_code is not ErrorCode.none or await self.receive_frame():
                raise RawClientError(f"login as {login.username} refused")
            return
        handshake = await self.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        if handshake.error_code is not ErrorCode.none:
            raise RawClientError(f"SASL handshake refused: {handshake.error_code.name}")
        answer = await self.ask(SaslAuthenticateRequest(auth_bytes=secret), SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            raise RawClientError(f"login as {login.username} refused: {answer.error_message}")

    async def ask(self, request: RequestPayload, response_type: type[R], *, timeout_s: float = TIMEOUT_S) -> R:
        """Send one request and return its answer.

        Raises:
            RawClientError: if the peer hangs up or answers something else.
            TimeoutError: if the answer takes longer than `timeout_s`.
        """
        await self.send(request)
        return await self.receive(response_type, timeout_s=timeout_s)

    async def send(self, request: RequestPayload) -> int:
        """Send one request without waiting for its answer; returns its correlation id."""
        correlation_id = next(self._correlation_ids)
        self._unanswered.append(correlation_id)
        await self.send_bytes(encode_request(request, correlation_id, self._client_id))
        return correlation_id

    async def receive(self, response_type: type[R], *, timeout_s: float = TIMEOUT_S) -> R:
        """The answer to the oldest request that has none yet; raises as `ask`."""
        frame = await self.receive_frame(timeout_s=timeout_s)
        return decode_response(frame, response_type, self._unanswered.popleft())

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, for instance a frame that is wrong on purpose."""
        self._writer.write(data)
        await self._writer.drain()

    async def receive_frame(self, *, timeout_s: float = TIMEOUT_S) -> bytes:
        """The next frame without its size; raises as `ask`."""
        try:
            async with asyncio.timeout(timeout_s):
                size = frame_size(await self._reader.readexactly(_SIZE.size))
                return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise RawClientError("the peer closed the connection") from error

    async def api_versions(self) -> Mapping[int, range]:
        """The versions that the peer speaks of each API, by API key.

        Raises:
            RawClientError: if it refuses ApiVersions v3.
        """
        answer = await self.ask(API_VERSIONS, ApiVersionsResponse)
        if answer.error_code is not ErrorCode.none:
            raise RawClientError(f"ApiVersions refused: {answer.error_code.name}")
        return {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}

    async def close(self) -> None:
        """Close; unanswered requests stay unanswered."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


API_VERSIONS = ApiVersionsRequest(client_software_name="raw-client", client_software_version="1")


def ask_once(address: Address, request: RequestPayload, response_type: type[R], *, timeout_s: float = TIMEOUT_S) -> R:
    """Connect, ask, hang up; blocks.

    Raises:
        OSError: if nobody listens there, or the answer takes longer than `timeout_s` between two of its bytes.
        RawClientError: if the peer hangs up or answers something else.
    """
    with socket.create_connection(address, timeout_s) as connection:
        connection.sendall(encode_request(request, 1))
        size = frame_size(_receive_exactly(connection, _SIZE.size))
        return decode_response(_receive_exactly(connection, size), response_type, 1)


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise RawClientError("the peer closed the connection")
        data += chunk
    return bytes(data)
