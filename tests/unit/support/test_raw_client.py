"""The oracle's framing and its behaviour on one connection, against bytes written out by hand."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from kio.schema.api_versions.v0 import ApiVersionsRequest as ApiVersionsRequestV0
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import MetadataResponse

from tests.support.address import Address
from tests.support.raw_client import (
    API_VERSIONS,
    FRAME_BYTES_MAX,
    PlainLogin,
    RawClientError,
    RawConnection,
    ask_once,
    decode_response,
    encode_request,
    frame_size,
)

# ApiVersions v3: no error, key 18 from 0 to 4, no throttling, FinalizedFeaturesEpoch 41 in tagged field 1.
API_VERSIONS_BODY = bytes.fromhex("0000 02 0012 0000 0004 00 00000000 01 01 08 0000000000000029")
HEADER_V0 = bytes.fromhex("00000007")


def answer(correlation_id: int) -> bytes:
    body = correlation_id.to_bytes(4) + API_VERSIONS_BODY
    return len(body).to_bytes(4) + body


def test_a_flexible_request_has_its_header_version_2_and_its_size() -> None:
    expected = "00000026 0012 0003 00000007 0002 6d65 00 0b 7261772d636c69656e74 02 31 00"
    frame = bytes.fromhex(expected)
    frame = (len(frame) - 4).to_bytes(4) + frame[4:]
    assert encode_request(API_VERSIONS, 7, "me") == frame


def test_an_old_request_has_no_tagged_fields_and_may_have_no_client_id() -> None:
    assert encode_request(ApiVersionsRequestV0(), 7, None) == bytes.fromhex("0000000a 0012 0000 00000007 ffff")


def test_an_answer_is_read_with_its_tagged_fields() -> None:
    response = decode_response(HEADER_V0 + API_VERSIONS_BODY, ApiVersionsResponse, 7)
    assert response.finalized_features_epoch == 41
    assert response.api_keys[0].max_version == 4


def test_a_flexible_answer_has_tagged_fields_in_its_header() -> None:
    # Metadata v12: no throttling, no brokers, cluster "c", controller 1, no topics, behind a header without tags.
    frame = bytes.fromhex("00000007 00 00000000 01 02 63 00000001 01 00")
    assert decode_response(frame, MetadataResponse, 7).cluster_id == "c"


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (bytes.fromhex("00000008") + API_VERSIONS_BODY, "answer to request 8, expected 7"),
        (HEADER_V0 + API_VERSIONS_BODY + b"\0", "1 bytes after"),
        (HEADER_V0 + API_VERSIONS_BODY[:-1], "unreadable"),
        (HEADER_V0, "unreadable"),
        (b"\0\0\0", "no correlation id"),
    ],
)
def test_an_answer_that_is_not_exactly_the_expected_one_is_refused(frame: bytes, complaint: str) -> None:
    with pytest.raises(RawClientError, match=complaint):
        decode_response(frame, ApiVersionsResponse, 7)


@pytest.mark.parametrize("size", [-1, FRAME_BYTES_MAX + 1])
def test_an_absurd_size_is_refused_before_anything_is_read(size: int) -> None:
    with pytest.raises(RawClientError, match=f"a frame of {size} bytes"):
        frame_size(size.to_bytes(4, signed=True))


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Address]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield Address(*server.sockets[0].getsockname())


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def answer_two(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            request = await read_frame(reader)
            writer.write(answer(int.from_bytes(request[4:8])))

    async with serving(answer_two) as address, await RawConnection.open(address) as connection:
        assert [await connection.send(API_VERSIONS) for _ in range(2)] == [1, 2]
        for _ in range(2):
            assert (await connection.receive(ApiVersionsResponse)).error_code is ErrorCode.none


async def test_an_answer_out_of_order_is_refused() -> None:
    async def answer_the_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(answer(2))

    async with serving(answer_the_second) as address, await RawConnection.open(address) as connection:
        with pytest.raises(RawClientError, match="answer to request 2, expected 1"):
            await connection.ask(API_VERSIONS, ApiVersionsResponse)


async def test_versions_are_given_by_api_key() -> None:
    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(answer(1))

    async with serving(answer_one) as address, await RawConnection.open(address) as connection:
        assert await connection.api_versions() == {18: range(5)}


async def test_a_peer_that_hangs_up_is_an_error() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(b"\0\0")

    async with serving(hang_up) as address, await RawConnection.open(address) as connection:
        with pytest.raises(RawClientError, match="closed the connection"):
            await connection.ask(API_VERSIONS, ApiVersionsResponse)


async def test_a_refused_login_says_why() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        handshake = bytes.fromhex("00000001 0000 00000001 0005 504c41494e")
        writer.write(len(handshake).to_bytes(4) + handshake)
        assert (await read_frame(reader)).endswith(b"\x14\0alice\0alice-secret\0")
        # SaslAuthenticate v2: error 58, message "no", no bytes, session lifetime 0.
        refusal = bytes.fromhex("00000002 00 003a 03 6e6f 01 0000000000000000 00")
        writer.write(len(refusal).to_bytes(4) + refusal)

    async with serving(refuse) as address:
        with pytest.raises(RawClientError, match="login as alice refused: no"):
            await RawConnection.open(address, login=PlainLogin.of("alice"))


def test_asking_once_needs_no_event_loop() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer(1)[:9])
                connection.sendall(answer(1)[9:])

        thread = threading.Thread(target=serve)
        thread.start()
        response = ask_once(Address(*server.getsockname()), API_VERSIONS, ApiVersionsResponse)
        thread.join()
    assert response.finalized_features_epoch == 41


@pytest.mark.parametrize("text", ["localhost", ":9092", "host:", "host:0", "host:65536", "host:-1", "host:x"])
def test_an_address_needs_host_and_port(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Address.parse(text)


def test_an_address_reads_back_as_it_is_written() -> None:
    assert str(Address.parse("127.0.0.1:9092")) == "127.0.0.1:9092"
