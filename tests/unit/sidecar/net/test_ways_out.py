"""Every connection ends: if its broker cannot be had, if a peer stands still, if a limit is reached. And says why."""

import asyncio
import logging
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse

from codec import encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header
from sidecar.net import client as client_module
from sidecar.net import home as home_module
from sidecar.net.patience import BACKOFF_S_MIN
from tests.support.fake_broker import Ask, FakeCluster
from tests.support.raw_client import API_VERSIONS, RawClientError, RawConnection
from tests.support.sidecar_app import ServingSidecar, serving

PATIENCE_S: Final = 20.0
ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
FAST: Final = {"probe": {"idle_interval_ms": 20, "min_interval_ms": 1, "timeout_ms": 100}}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for lies in this very loop
            await asyncio.sleep(0.001)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(1) as found:
        yield found


async def expect_close(client: RawConnection) -> float:
    """Returns how long it took."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    with pytest.raises(RawClientError, match="closed"):
        await client.receive_frame()
    return loop.time() - start_s


def closed(sidecar: ServingSidecar, side: str, cause: str) -> int:
    return sidecar.app.driver.counters.closed[side, cause]


async def never(ask: Ask) -> None:
    await asyncio.Event().wait()


# Brokers that cannot be had


@pytest.mark.row("6.4")
async def test_the_close_for_a_broker_out_of_reach_is_put_off_ever_longer(cluster: FakeCluster) -> None:
    broker = cluster.brokers[1]
    async with serving(str(broker.address), cluster=FAST) as sidecar:
        await broker.stop()
        for factor in (1, 2, 4):
            async with await RawConnection.open(sidecar.nodes[1]) as client:
                await client.send(API_VERSIONS)
                assert await expect_close(client) >= factor * BACKOFF_S_MIN * 0.9
        await until(lambda: closed(sidecar, "client", "broker_unreachable") == 3)
        await broker.start()
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            assert await client.api_versions()
        assert not sidecar.app.driver.backoff._failures


@pytest.mark.row("6.4")
async def test_a_client_that_no_broker_can_serve_is_not_closed_at_once(cluster: FakeCluster) -> None:
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        sidecar.app.driver.core.open_client = lambda node_id, who: None  # type: ignore[method-assign,misc,assignment]
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.send(API_VERSIONS)
            assert await expect_close(client) >= BACKOFF_S_MIN * 0.9
        assert closed(sidecar, "client", "no_broker") == 1


@pytest.mark.row("6.5")
async def test_a_broker_that_never_accepts_ends_its_clients(cluster: FakeCluster) -> None:
    async with serving(str(cluster.brokers[1].address), cluster=FAST) as sidecar:
        sidecar.app.driver.endpoint = lambda node_id: asyncio.Event().wait()  # type: ignore[assignment,method-assign,return-value]
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.send(API_VERSIONS)
            await expect_close(client)
        assert closed(sidecar, "client", "broker_unreachable") == 1


# Peers that stand still


@pytest.mark.row("3.5")
@pytest.mark.row("6.5")
async def test_a_client_that_sends_no_more_gets_what_is_due_and_does_not_stay_for_ever(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "LINGER_S", 0.05)
    cluster.brokers[1].handlers[ApiKey.LIST_GROUPS] = never
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.send(API_VERSIONS)
            await client.send_bytes(request(ApiKey.LIST_GROUPS, 3))
            client._writer.write_eof()
            assert await client.receive(ApiVersionsResponse)
            await expect_close(client)
        assert closed(sidecar, "client", "client_closed") == 1


@pytest.mark.row("6.5")
async def test_a_broker_that_takes_nothing_does_not_keep_its_connection(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_module, "CLOSE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(home_module, "STALLED_S", 0.05)
    cluster.brokers[1].handlers[ApiKey.PRODUCE] = never
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        own = sidecar.app.driver.counters.broker_connections
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.api_versions()
            before = own[1]
            records = {"topic_data": [{"partition_data": [{"records": bytes(900_000)}]}], "acks": 1}
            sending = asyncio.create_task(client.send_bytes(request(ApiKey.PRODUCE, 9, records) * 30))
            await until(lambda: sidecar.app.driver.clients[0].home._full)  # type: ignore[attr-defined]
            # The sidecar does not read, so it cannot see this.
            sending.cancel()
            client._writer.transport.abort()
            await until(lambda: own[1] < before)
        assert closed(sidecar, "client", "broker_stalled") == 1


@pytest.mark.row("3.6")
async def test_a_client_with_much_in_flight_is_read_no_further(cluster: FakeCluster) -> None:
    go = asyncio.Event()

    async def later(ask: Ask) -> dict[str, Any]:
        await go.wait()
        return {}

    broker = cluster.brokers[1]
    broker.handlers[ApiKey.LIST_GROUPS] = later
    async with serving(str(broker.address), limits={"in_flight_per_connection": 2}) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.send_bytes(request(ApiKey.LIST_GROUPS, 3) * 5)
            await until(lambda: bool(broker.asked_for(ApiKey.LIST_GROUPS)))
            (inside,) = sidecar.app.driver.clients
            assert inside.connection.in_flight == 2
            assert not inside._reading  # type: ignore[attr-defined]
            go.set()
            for _ in range(5):
                assert await client.receive_frame()
                assert inside.connection.in_flight <= 2
            assert inside._reading  # type: ignore[attr-defined]
        assert len(broker.asked_for(ApiKey.LIST_GROUPS)) == 5


# Limits


async def test_clients_above_the_limit_are_refused(cluster: FakeCluster, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(str(cluster.brokers[1].address), limits={"connections": 1, "drain_timeout_ms": 0}) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            assert await client.api_versions()
            for _ in range(3):
                async with await RawConnection.open(sidecar.nodes[1]) as another:
                    await expect_close(another)
            assert await client.api_versions()
        assert closed(sidecar, "client", "too_many_connections") == 3
    lines = [record.message for record in caplog.records if "refused" in record.message]
    assert len(lines) == 1, "the same of the same host within a minute is only counted"
    assert lines[0].endswith("refused: limits.connections (1) is reached")


@pytest.mark.parametrize("limits", [{"held_requests": 1}, {"held_bytes": 1024}])
async def test_reads_above_the_limits_of_what_is_held_end_their_connection(
    cluster: FakeCluster, limits: dict[str, int]
) -> None:
    async with serving(str(cluster.brokers[1].address), limits=limits) as sidecar:
        async with (
            await RawConnection.open(sidecar.nodes[1], client_id="x" * 600) as first,
            await RawConnection.open(sidecar.nodes[1], client_id="x" * 600) as second,
        ):
            await first.ask(ALL_TOPICS, MetadataResponse)
            (session,) = sidecar.app.driver.core.sessions
            offset = cluster.commit(seen_by=())
            await until(lambda: not session.bound.brokers)
            session.bound.visible = offset
            await first.send(ALL_TOPICS)
            await until(lambda: len(sidecar.app.driver.core.gate.held) == 1)
            await second.send(ALL_TOPICS)
            await expect_close(second)
            assert closed(sidecar, "client", "too_many_held") == 1
            cluster.brokers[1].position = offset
            assert await first.receive(MetadataResponse)
        assert sidecar.app.driver.core.gate.held_bytes == 0


# Explained failures


@pytest.mark.row("5.6")
@pytest.mark.parametrize(
    ("said", "cause", "words"),
    [
        (bytes.fromhex("15030300020246"), "tls_alert", "set cluster.security.protocol to SSL or SASL_SSL"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "http", "name the port of a Kafka broker"),
        (b"\x7f\xff\xff\xff" + bytes(8), "protocol", "the limit is 104857600"),
        (struct.pack(">ii", 4, 999), "protocol", "an answer to no request"),
    ],
    ids=["tls", "http", "oversized", "stranger"],
)
async def test_a_broker_that_speaks_something_else_is_named(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture, said: bytes, cause: str, words: str
) -> None:
    async def answer(ask: Ask) -> None:
        await ask.send(said)

    cluster.brokers[1].handlers[ApiKey.LIST_GROUPS] = answer
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.send_bytes(request(ApiKey.LIST_GROUPS, 3))
            await expect_close(client)
        assert (closed(sidecar, "client", "broker_malformed"), closed(sidecar, "broker", cause)) == (1, 1)
    (line,) = [record for record in caplog.records if "cannot be read" in record.message]
    assert line.levelno == logging.WARNING
    assert words in line.message


def request(api_key: ApiKey, version: int, body: dict[str, Any] | None = None) -> bytes:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=7, client_id="raw-client")
    payload = encode_request_header(header) + encode_request(api_key, version, body or {})
    return struct.pack(">i", len(payload)) + payload
