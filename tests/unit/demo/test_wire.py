"""The demo's client against servers that answer well, badly, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from codec import encode_response
from codec.api_keys import ApiKey
from codec.frames import frame
from tidegate.demo import wire
from tidegate.demo.wire import Connection, Unanswered

QUESTION: dict[str, object] = {
    "include_cluster_authorized_operations": False,
    "endpoint_type": 1,
    "include_fenced_brokers": False,
}
ANSWER: dict[str, object] = {
    "throttle_time_ms": 0,
    "error_code": 0,
    "error_message": None,
    "endpoint_type": 1,
    "cluster_id": "c",
    "controller_id": 1,
    "brokers": [],
    "cluster_authorized_operations": 0,
}
Serve = Callable[[bytes, int], bytes]


@asynccontextmanager
async def server(answer: Serve) -> AsyncIterator[Connection]:
    """A server that calls `answer` with each request and the number of its connection; an empty answer closes."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number = connections
        try:
            while size := await reader.read(4):
                sent = answer(await reader.readexactly(int.from_bytes(size)), number)
                if not sent:
                    break
                writer.write(sent)
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        connection = Connection(*listening.sockets[0].getsockname())
        try:
            yield connection
        finally:
            connection.close()


def ask(connection: Connection) -> Awaitable[dict[str, object]]:
    return connection.ask(ApiKey.DESCRIBE_CLUSTER, 2, QUESTION)


def good(request: bytes, _connection: int = 1) -> bytes:
    return frame(request[4:8] + b"\0" + encode_response(ApiKey.DESCRIBE_CLUSTER, 2, ANSWER))


async def test_questions_are_answered_one_after_the_other_on_one_connection() -> None:
    numbers = []

    def answer(request: bytes, connection: int) -> bytes:
        numbers.append(connection)
        return good(request)

    async with server(answer) as connection:
        assert (await ask(connection))["cluster_id"] == "c"
        assert (await ask(connection))["cluster_id"] == "c"
    assert numbers == [1, 1]


BAD: dict[str, tuple[Serve, str]] = {
    "closed": (lambda request, n: b"", "DESCRIBE_CLUSTER to 127.0.0.1:.*the connection was closed"),
    "another answer": (lambda request, n: good(b"\0\0\0\0\x7f\xff\xff\xff"), "belongs to another request"),
    "a byte too many": (lambda request, n: frame(good(request)[4:] + b"\0"), "1 bytes left over"),
    "no frame": (lambda request, n: b"HTTP", "frame.size"),
}


@pytest.mark.parametrize(("answer", "text"), BAD.values(), ids=BAD)
async def test_what_is_no_answer_ends_the_connection_and_the_next_question_opens_another(
    answer: Serve, text: str
) -> None:
    async with server(lambda request, n: answer(request, n) if n == 1 else good(request)) as connection:
        with pytest.raises(Unanswered, match=text):
            await ask(connection)
        assert (await ask(connection))["cluster_id"] == "c"


async def test_nobody_listening_is_no_answer() -> None:
    async with server(good) as connection:
        await ask(connection)
        address = connection.address
    with pytest.raises(Unanswered, match="Connect"):
        await ask(Connection(*address))


async def test_an_answer_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "TIMEOUT_S", 0.05)
    async with server(lambda request, n: good(request)[:6] if n == 1 else good(request)) as connection:
        with pytest.raises(Unanswered, match="TimeoutError"):
            await ask(connection)
        monkeypatch.undo()
        assert (await ask(connection))["cluster_id"] == "c"
