"""A port with frames: order, garbage, an end that lets answers go out. Real sockets on loopback."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from backend.net import listener as listener_module
from backend.net.listener import Listener, PortTaken, Unserved, explain_handshake
from codec.frames import frame

TIMEOUT_S = 10
FRAME_BYTES_MAX = 16 * 1024 * 1024


async def echo(payload: bytes) -> bytes:
    if payload == b"unserved":
        raise Unserved("it asks for what is not offered")
    return payload.upper()


class Talk:
    """A conversation that a function answers."""

    def __init__(self, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self.frame_bytes_max = FRAME_BYTES_MAX
        self._answer = answer

    async def answer(self, payload: bytes) -> bytes:
        if payload == b"known":
            self.frame_bytes_max *= 2
        return await self._answer(payload)


Serve = Callable[[Callable[[bytes], Awaitable[bytes]]], Awaitable[Listener]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Makes listeners, and ends them."""
    listeners: list[Listener] = []

    async def make(answer: Callable[[bytes], Awaitable[bytes]]) -> Listener:
        listener = Listener("127.0.0.1", 0)
        listeners.append(listener)
        await listener.serve(lambda _: Talk(answer))
        return listener

    yield make
    for listener in listeners:
        await listener.close()


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self) -> bytes:
        async with asyncio.timeout(TIMEOUT_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def connect(listener: Listener) -> Client:
    return Client(*await asyncio.open_connection(listener.host, listener.port))


async def test_requests_are_answered_in_order_however_they_are_cut(serve: Serve) -> None:
    client = await connect(await serve(echo))
    data = b"".join(frame(word) for word in (b"one", b"two", b"three", b""))
    for at in range(len(data)):
        client.writer.write(data[at : at + 1])
        await client.writer.drain()
    assert [await client.answer() for _ in range(4)] == [b"ONE", b"TWO", b"THREE", b""]
    await client.close()


async def test_the_next_request_waits_until_the_last_is_answered(serve: Serve) -> None:
    started: asyncio.Queue[bytes] = asyncio.Queue()
    go = asyncio.Event()

    async def slow(payload: bytes) -> bytes:
        started.put_nowait(payload)
        await go.wait()
        return payload

    listener = await serve(slow)
    client, other = await connect(listener), await connect(listener)
    client.writer.write(frame(b"first") + frame(b"second"))
    other.writer.write(frame(b"other"))
    assert sorted([await started.get(), await started.get()]) == [b"first", b"other"]
    assert started.empty()
    go.set()
    assert [await client.answer(), await client.answer()] == [b"first", b"second"]
    await client.close()
    await other.close()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "the client speaks TLS to a plaintext port"),
        (b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP to a Kafka port"),
        (b"\xff\xff\xff\xff1234", "frame.size at byte 0: -1 bytes; the limit is 16777216"),
        (b"\x7f\xff\xff\xff", "frame.size at byte 0: 2147483647 bytes; the limit is 16777216"),
        (frame(b"unserved"), "it asks for what is not offered"),
    ],
)
async def test_garbage_closes_its_connection_with_one_line_and_disturbs_nobody(
    serve: Serve, data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    listener = await serve(echo)
    bystander, client = await connect(listener), await connect(listener)
    client.writer.write(data)
    assert await client.is_closed()
    host, port = client.writer.get_extra_info("sockname")
    assert caplog.messages == [f"client {host}:{port} closed: {reason}"]
    bystander.writer.write(frame(b"still here"))
    assert await bystander.answer() == b"STILL HERE"
    await client.close()
    await bystander.close()


async def test_a_good_request_before_garbage_is_answered(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = await connect(await serve(echo))
    client.writer.write(frame(b"good") + b"\xff" * 8)
    assert await client.answer() == b"GOOD"
    assert await client.is_closed()
    assert len(caplog.messages) == 1
    await client.close()


async def test_a_client_that_leaves_is_no_line_in_the_log(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    listener = await serve(echo)
    client = await connect(listener)
    client.writer.write(frame(b"half a frame")[:7])
    await client.writer.drain()
    await client.close()
    await listener.close()
    assert caplog.messages == []


async def test_an_end_lets_the_answer_under_way_go_out(serve: Serve) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(payload: bytes) -> bytes:
        asked.set()
        await go.wait()
        return payload

    listener = await serve(slow)
    idle, busy = await connect(listener), await connect(listener)
    busy.writer.write(frame(b"one") + frame(b"two"))
    await asked.wait()
    closing = asyncio.create_task(listener.close())
    assert await idle.is_closed()
    go.set()
    assert await busy.answer() == b"one"
    assert await busy.is_closed()
    await closing
    with pytest.raises(ConnectionRefusedError):
        await connect(listener)
    await idle.close()
    await busy.close()


async def test_an_end_does_not_wait_for_ever(serve: Serve) -> None:
    asked = asyncio.Event()

    async def never(payload: bytes) -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return payload

    listener = await serve(never)
    client = await connect(listener)
    client.writer.write(frame(b"one"))
    await asked.wait()
    await listener.close(drain_timeout_s=0.01)
    assert await client.is_closed()
    await client.close()


async def test_too_many_connections_are_refused(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener_module, "CONNECTIONS_MAX", 1)
    listener = await serve(echo)
    first = await connect(listener)
    first.writer.write(frame(b"one"))
    assert await first.answer() == b"ONE"
    second = await connect(listener)
    assert await second.is_closed()
    assert caplog.messages[0].endswith("refused: 1 connections are open")
    await first.close()
    await second.close()


async def test_the_limit_of_a_request_may_grow_with_the_conversation(serve: Serve) -> None:
    large = bytes(FRAME_BYTES_MAX + 1)
    listener = await serve(echo)
    stranger, client = await connect(listener), await connect(listener)
    stranger.writer.write(frame(large)[:100])
    assert await stranger.is_closed()
    client.writer.write(frame(b"known") + frame(large))
    assert await client.answer() == b"KNOWN"
    assert len(await client.answer()) == len(large)
    await stranger.close()
    await client.close()


async def test_nobody_gets_in_before_it_serves_and_the_port_is_its_own() -> None:
    listener = Listener("127.0.0.1", 0)
    with pytest.raises(ConnectionRefusedError):
        await connect(listener)
    await listener.serve(lambda _: Talk(echo))
    with pytest.raises(PortTaken, match=f"cannot listen on 127.0.0.1:{listener.port}: Address already in use"):
        Listener("127.0.0.1", listener.port)
    await listener.close()


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "of the library")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionAbortedError(), "the TLS handshake took longer than 10 s"),
        (ConnectionResetError(), "the client left during the TLS handshake"),
        (EOFError(), "the client left during the TLS handshake"),
        (tls_error("HTTP_REQUEST"), "does not speak TLS"),
        (tls_error("TLSV1_ALERT_UNKNOWN_CA"), "does not trust our certificate (TLSV1_ALERT_UNKNOWN_CA); give it"),
        (tls_error("UNSUPPORTED_PROTOCOL"), "the TLS handshake failed: UNSUPPORTED_PROTOCOL"),
    ],
)
def test_a_handshake_that_fails_is_explained(error: OSError | EOFError, words: str) -> None:
    assert words in explain_handshake(error)
