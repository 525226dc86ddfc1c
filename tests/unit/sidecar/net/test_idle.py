"""A broker closes connections that are idle: the client's stays, and it goes on as if nothing had happened.

Unless the broker kept something on it, or was not done with it: then the client must know.
"""

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Final

import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse

from codec import encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header
from sidecar.net import home
from tests.support.fake_broker import Ask, FakeBroker, FakeCluster
from tests.support.fake_login import FakeSasl
from tests.support.raw_client import API_VERSIONS, PlainLogin, RawClientError, RawConnection
from tests.support.raw_client import encode_request as framed
from tests.support.sidecar_app import ServingSidecar, serving

PATIENCE_S: Final = 20.0
ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


def last_connection(broker: FakeBroker) -> int:
    """Where the client's own broker met the client last."""
    return [ask for ask in broker.asked if ask.client_id == "raw-client"][-1].connection


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for lies in this very loop
            await asyncio.sleep(0.001)


async def hang_up(sidecar: ServingSidecar, broker: FakeBroker) -> None:
    """The broker ends the client's home connection; returns when the sidecar has noticed."""
    closed = sidecar.app.driver.counters.closed
    before = closed["broker", "broker_closed"]
    broker.hang_up(last_connection(broker))
    await until(lambda: closed["broker", "broker_closed"] > before)


async def expect_close(client: RawConnection) -> None:
    with pytest.raises(RawClientError, match="closed"):
        await client.receive_frame()


def request(api_key: ApiKey, version: int, body: dict[str, Any]) -> bytes:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=7, client_id="raw-client")
    payload = encode_request_header(header) + encode_request(api_key, version, body)
    return struct.pack(">i", len(payload)) + payload


@pytest.mark.row("6.3")
async def test_an_idle_connection_is_opened_again_behind_the_client() -> None:
    async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address)) as sidecar:
        broker = cluster.brokers[1]
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.api_versions()
            connections = {last_connection(broker)}
            for _ in range(3):
                await hang_up(sidecar, broker)
                assert (await client.ask(ALL_TOPICS, MetadataResponse)).brokers
                assert await client.api_versions()
                connections.add(last_connection(broker))
            assert len(connections) == 4
            assert sidecar.app.driver.counters.client_connections == 1
        await until(lambda: sidecar.app.driver.counters.client_connections == 0)
        assert sidecar.app.driver.counters.closed["client", "client_closed"] == 1


@pytest.mark.row("6.3")
async def test_requests_that_come_while_it_opens_are_answered_in_order() -> None:
    async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address)) as sidecar:
        broker = cluster.brokers[1]
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.ask(ALL_TOPICS, MetadataResponse)
            closed = sidecar.app.driver.counters.closed
            broker.hang_up(last_connection(broker))
            await until(lambda: closed["broker", "broker_closed"] > 0)
            await client.send_bytes(framed(API_VERSIONS, 21) + framed(ALL_TOPICS, 22) + framed(API_VERSIONS, 23))
            found = [struct.unpack_from(">i", await client.receive_frame())[0] for _ in range(3)]
            assert found == [21, 22, 23]


@pytest.mark.row("6.3")
async def test_a_broker_that_is_gone_ends_the_client() -> None:
    async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address)) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.api_versions()
            await cluster.brokers[1].stop()
            await expect_close(client)
        assert sidecar.app.driver.counters.closed["client", "broker_unreachable"] == 1


async def in_flight(client: RawConnection, broker: FakeBroker) -> None:
    async def never(ask: Ask) -> None:
        await asyncio.Event().wait()

    broker.handlers[ApiKey.METADATA] = never
    await client.send(ALL_TOPICS)
    await until(lambda: bool(broker.asked_for(ApiKey.METADATA)) and broker.asked[-1].api_key == ApiKey.METADATA)


async def half_sent(client: RawConnection, broker: FakeBroker) -> None:
    await client.send_bytes(framed(ALL_TOPICS, 9)[:20])


async def sent_without_answer(client: RawConnection, broker: FakeBroker) -> None:
    broker.handlers[ApiKey.PRODUCE] = lambda ask: None
    await client.send_bytes(request(ApiKey.PRODUCE, 9, {"acks": 0}))
    await until(lambda: bool(broker.asked_for(ApiKey.PRODUCE)))


async def in_a_share_session(client: RawConnection, broker: FakeBroker) -> None:
    broker.handlers[ApiKey.SHARE_FETCH] = lambda ask: {}
    await client.send_bytes(request(ApiKey.SHARE_FETCH, 2, {}))
    await client.receive_frame()


@pytest.mark.row("6.3")
@pytest.mark.parametrize("state", [in_flight, half_sent, sent_without_answer, in_a_share_session])
async def test_a_client_that_something_was_kept_of_must_know(state: Callable[..., Any]) -> None:
    async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address)) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.api_versions()
            await state(client, cluster.brokers[1])
            inside = sidecar.app.driver.clients[0]
            if state is half_sent:
                await until(lambda: inside.half_read)
            cluster.brokers[1].hang_up(last_connection(cluster.brokers[1]))
            await expect_close(client)
        assert sidecar.app.driver.counters.closed["client", "broker_closed"] == 1


@pytest.mark.row("6.3")
async def test_a_client_that_has_logged_in_must_know(tmp_path: Any) -> None:
    (tmp_path / "password").write_text("its-own")
    sasl = {"mechanism": "PLAIN", "username": "tidegate", "password_file": str(tmp_path / "password")}
    cluster = FakeCluster(1)
    cluster.sasl = FakeSasl(passwords={"tidegate": "its-own", "alice": "alice-secret"})
    security = {"security": {"protocol": "SASL_PLAINTEXT", "sasl": sasl}}
    async with (
        cluster,
        serving(str(cluster.brokers[1].address), cluster=security) as sidecar,
        await RawConnection.open(sidecar.nodes[1], login=PlainLogin.of("alice")) as client,
    ):
        cluster.brokers[1].hang_up(last_connection(cluster.brokers[1]))
        await expect_close(client)


@pytest.mark.row("6.4")
async def test_a_broker_that_accepts_and_closes_is_not_tried_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address)) as sidecar:
        broker = cluster.brokers[1]
        accepted = broker.accepted
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await until(lambda: broker.accepted > accepted)
            broker.hang_up(broker.accepted)
            await expect_close(client)
        assert broker.accepted == accepted + 1
        # One that had lasted would have been.
        monkeypatch.setattr(home, "LASTED_S", 0.0)
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await until(lambda: broker.accepted > accepted + 1)
            broker.hang_up(broker.accepted)
            await until(lambda: broker.accepted > accepted + 2)
            assert await client.ask(API_VERSIONS, ApiVersionsResponse)
        assert broker.accepted == accepted + 3
