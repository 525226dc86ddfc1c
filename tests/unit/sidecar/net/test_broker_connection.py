"""The sidecar's own connections, against a fake broker and against peers that are none."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from codec import encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.frames import frame
from codec.headers import (
    RequestHeader,
    encode_request_header,
    peek_correlation_id,
    read_request_header,
    response_body_offset,
)
from sidecar.net import broker_connection
from sidecar.net.broker_connection import BrokerConnection, BrokerUnavailable, connect
from sidecar.net.counters import CAUSES
from sidecar.net.sasl import Credentials
from tests.support.address import Address
from tests.support.fake_broker import Ask, FakeBroker, FakeCluster, HangUp
from tests.support.fake_login import FakeSasl

TIMEOUT_MS = 10_000
FRAME_BYTES_MAX = 1 << 16
METADATA_VERSION = 12
NO_TOPICS = {"topics": [], "allow_auto_topic_creation": False}

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    async with FakeCluster() as cluster:
        yield cluster.brokers[1]


async def open_to(
    address: Address,
    *,
    on_lost: Callable[[str], None] | None = None,
    credentials: Credentials | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> BrokerConnection:
    return await connect(
        *address,
        credentials=credentials,
        timeout_ms=timeout_ms,
        frame_bytes_max=FRAME_BYTES_MAX,
        on_lost=on_lost,
    )


@contextlib.asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[Address]:
    """A server that is no broker; it closes each connection when ``peer`` returns."""

    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "start_server runs this in a task"
        tasks.add(task)
        with contextlib.suppress(ConnectionError):
            await peer(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address(*server.sockets[0].getsockname())
    finally:
        server.close()
        # Every connection to it has been ended by now: that is what the tests are about.
        async with asyncio.timeout(5):
            await asyncio.gather(*tasks)


async def refused(address: Address, *, timeout_ms: int = TIMEOUT_MS) -> BrokerUnavailable:
    with pytest.raises(BrokerUnavailable) as caught:
        await open_to(address, timeout_ms=timeout_ms)
    return caught.value


def saying(data: bytes) -> Peer:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(data)
        await writer.drain()
        await reader.read()

    return peer


async def test_it_learns_versions_and_position(broker: FakeBroker) -> None:
    connection = await open_to(broker.address)
    assert connection.position == 100
    assert connection.versions == broker.versions
    broker.position = 107
    assert (await connection.ask_offer()).position == 107
    assert connection.position == 100
    connection.close()


@pytest.mark.parametrize(
    ("offered", "expected"), [((0, 99), 13), ((0, 12), 12), ((99, 120), None), (None, None)], ids=str
)
async def test_the_version_is_the_newest_that_both_speak(
    broker: FakeBroker, offered: tuple[int, int] | None, expected: int | None
) -> None:
    del broker.versions[ApiKey.METADATA]
    if offered is not None:
        broker.versions[ApiKey.METADATA] = offered
    connection = await open_to(broker.address)
    assert connection.version(ApiKey.METADATA) == expected
    assert connection.version(ApiKey.HEARTBEAT) is None, "the codec has no table for it"
    connection.close()


async def test_answers_find_who_asked(broker: FakeBroker) -> None:
    connection = await open_to(broker.address)
    metadata, offer = await asyncio.gather(
        connection.call(ApiKey.METADATA, METADATA_VERSION, NO_TOPICS), connection.ask_offer()
    )
    assert metadata["cluster_id"] == "fake"
    assert offer.position == 100
    assert connection.in_flight == 0
    connection.close()


async def test_a_relayed_request_keeps_all_but_its_correlation_id(broker: FakeBroker) -> None:
    connection = await open_to(broker.address)
    header = RequestHeader(api_key=ApiKey.API_VERSIONS, api_version=0, correlation_id=-5, client_id="an app")
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection.relay(encode_request_header(header), answer.set_result)
    payload = await answer
    sent, _ = read_request_header(broker.asked[-1].payload)
    assert (sent.client_id, sent.api_version) == ("an app", 0)
    assert sent.correlation_id == peek_correlation_id(payload) != -5
    assert response_body_offset(payload, ApiKey.API_VERSIONS, 0) == 4
    connection.close()


async def test_a_cancelled_question_does_not_disturb_the_next(broker: FakeBroker) -> None:
    connection = await open_to(broker.address)
    go = asyncio.Event()
    original = broker.handlers[ApiKey.METADATA]

    async def slow(ask: object) -> dict[str, object]:
        await go.wait()
        return {"brokers": [], "cluster_id": "late", "controller_id": -1, "topics": []}

    broker.handlers[ApiKey.METADATA] = slow
    first = asyncio.ensure_future(connection.call(ApiKey.METADATA, METADATA_VERSION, NO_TOPICS))
    second = asyncio.ensure_future(connection.ask_offer())
    await asyncio.sleep(0)
    first.cancel()
    broker.handlers[ApiKey.METADATA] = original
    go.set()
    assert (await second).position == 100
    connection.close()


async def test_an_end_by_the_broker_fails_what_waits_and_is_told_once(broker: FakeBroker) -> None:
    lost: list[str] = []
    connection = await open_to(broker.address, on_lost=lost.append)
    await connection.ask_offer()
    del broker.handlers[ApiKey.METADATA]
    with pytest.raises(BrokerUnavailable, match="closed before the answer came") as caught:
        await connection.call(ApiKey.METADATA, METADATA_VERSION, NO_TOPICS)
    assert caught.value.cause == "closed"
    assert not connection.is_open
    assert lost == ["closed"]
    with pytest.raises(BrokerUnavailable):
        await connection.ask_offer()
    connection.close("timeout")
    assert lost == ["closed"]


async def test_an_end_by_us_fails_what_waits_with_our_cause(broker: FakeBroker) -> None:
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    connection = await open_to(broker.address, on_lost=lost.set_result)
    broker.handlers[ApiKey.METADATA] = lambda ask: None
    waiting = asyncio.ensure_future(connection.call(ApiKey.METADATA, METADATA_VERSION, NO_TOPICS))
    await asyncio.sleep(0)
    connection.close("timeout")
    with pytest.raises(BrokerUnavailable) as caught:
        await waiting
    assert caught.value.cause == await lost == "timeout"


async def test_a_listener_that_wants_a_login_is_recognised(broker: FakeBroker) -> None:
    def hang_up(ask: object) -> None:
        raise HangUp

    broker.handlers[ApiKey.METADATA] = hang_up
    connection = await open_to(broker.address)
    with pytest.raises(BrokerUnavailable, match=r"demands a SASL login; give credentials in cluster\.security"):
        await connection.call(ApiKey.METADATA, METADATA_VERSION, NO_TOPICS)


def answering(answer: Callable[[bytes], bytes]) -> Peer:
    """Sends for each request the payload that ``answer`` makes of its correlation id."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                writer.write(frame(answer(request[4:8])))

    return peer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda correlation_id: correlation_id + b"\0\0\xff", "the answer cannot be read"),
        (lambda correlation_id: b"\x7f\0\0\0", "does not speak Kafka's protocol"),
        (lambda correlation_id: b"\0", "does not speak Kafka's protocol"),
    ],
    ids=["garbage", "an answer to no question", "no correlation id"],
)
async def test_an_answer_without_sense_ends_the_connection(answer: Callable[[bytes], bytes], words: str) -> None:
    async with listening(answering(answer)) as address:
        error = await refused(address)
    assert error.cause == "protocol"
    assert words in str(error)


@pytest.mark.parametrize(
    ("data", "cause", "words"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x50", "tls_alert", "TLS answers there; set cluster.security.protocol to SSL"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "http", "an HTTP server answers there"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "protocol", "does not speak Kafka's protocol"),
        (b"\xff\xff\xff\xff", "protocol", "does not speak Kafka's protocol"),
        ((FRAME_BYTES_MAX + 1).to_bytes(4, "big"), "protocol", "does not speak Kafka's protocol"),
    ],
    ids=["TLS", "HTTP", "SSH", "negative size", "too large"],
)
async def test_a_peer_that_is_no_broker_is_named(data: bytes, cause: str, words: str) -> None:
    async with listening(saying(data)) as address:
        error = await refused(address)
    assert error.cause == cause
    assert words in str(error)


async def test_a_short_tls_alert_is_recognised_when_the_peer_closes() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x03")
        await writer.drain()

    async with listening(peer) as address:
        assert (await refused(address)).cause == "tls_alert"


async def test_a_port_where_nobody_listens() -> None:
    async with listening(saying(b"")) as address:
        pass
    error = await refused(address)
    assert error.cause == "connect"
    assert str(error) == "cannot connect: Connection refused"


async def test_a_name_that_does_not_resolve() -> None:
    error = await refused(Address("nobody.invalid", 9092))
    assert error.cause == "resolve"


async def test_a_peer_that_hangs_up_at_once() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)

    async with listening(peer) as address:
        error = await refused(address)
    assert error.cause == "closed"
    assert "before ApiVersions was answered" in str(error)


async def test_silence_ends_with_the_timeout() -> None:
    hung_up = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass
        hung_up.set()

    async with listening(peer) as address:
        error = await refused(address, timeout_ms=50)
        await asyncio.wait_for(hung_up.wait(), 5)
    assert (error.cause, str(error)) == ("timeout", "no answer within 50 ms")


async def test_cancelling_leaves_no_connection_behind() -> None:
    asked, hung_up = asyncio.Event(), asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        asked.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass
        hung_up.set()

    async with listening(peer) as address:
        opening = asyncio.ensure_future(open_to(address))
        await asked.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.wait_for(hung_up.wait(), 5)


async def test_a_broker_that_refuses_the_question_is_too_old() -> None:
    body = encode_response(ApiKey.API_VERSIONS, 0, {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": []})
    async with listening(answering(lambda correlation_id: correlation_id + body)) as address:
        error = await refused(address)
    assert error.cause == "versions"
    assert str(error) == "ApiVersions v3 was answered with UNSUPPORTED_VERSION"


async def test_a_refused_login_ends_the_connection(broker: FakeBroker) -> None:
    broker.handlers[ApiKey.SASL_HANDSHAKE] = lambda ask: {
        "error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "mechanisms": ["GSSAPI"],
    }
    credentials = Credentials(mechanism="PLAIN", username="alice", password="do not show")
    with pytest.raises(BrokerUnavailable, match="does not offer SASL PLAIN; it offers: GSSAPI") as caught:
        await open_to(broker.address, credentials=credentials)
    assert caught.value.cause == "login"


@pytest.mark.row("5.3")
@pytest.mark.row("5.4")
async def test_a_login_is_renewed_before_it_ends_and_questions_wait_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_connection, "_RENEW_AT_LEAST_S", 0.05)
    sasl = FakeSasl(passwords={"alice": "old"}, lifetime_ms=50)
    async with FakeCluster(sasl=sasl) as cluster:
        broker = cluster.brokers[1]
        who = Credentials(mechanism="PLAIN", username="alice", password="old")
        connection = await open_to(broker.address, credentials=who)
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(ask: Ask) -> Mapping[str, Any]:
            begun.set()
            await go.wait()
            return {"error_code": ErrorCode.NONE, "mechanisms": ["PLAIN"]}

        broker.handlers[ApiKey.SASL_HANDSHAKE] = slow
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            await begun.wait()
        question = asyncio.ensure_future(connection.call(ApiKey.METADATA, METADATA_VERSION, NO_TOPICS))
        await asyncio.sleep(0)
        sasl.lifetime_ms = 0
        go.set()
        assert (await question)["cluster_id"] == "fake"
        asked = [ask.api_key for ask in broker.asked]
        login = [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE]
        assert asked == [ApiKey.API_VERSIONS, *login, *login, ApiKey.METADATA]
        assert {ask.connection for ask in broker.asked} == {1}
        connection.close()


@pytest.mark.row("5.4")
async def test_a_login_that_cannot_be_renewed_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_connection, "_RENEW_AT_LEAST_S", 0.05)
    sasl = FakeSasl(passwords={"alice": "old"}, lifetime_ms=50)
    async with FakeCluster(sasl=sasl) as cluster:
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        who = Credentials(mechanism="PLAIN", username="alice", password="old")
        await open_to(cluster.brokers[1].address, credentials=who, on_lost=lost.set_result)
        sasl.passwords["alice"] = "new"
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            assert await lost == "login"
    assert "a login could not be renewed, its connection is closed: SASL PLAIN login as 'alice' failed" in caplog.text


@pytest.mark.parametrize("cause", ["tls", "tls_alert", "tls_hello", "http", "protocol", "closed", "timeout", "connect"])
def test_every_cause_has_its_metric(cause: str) -> None:
    assert cause in CAUSES
