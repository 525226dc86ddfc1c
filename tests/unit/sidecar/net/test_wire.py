"""The wire as clients meet it: order, ids, versions, nodes that move. A scripted cluster stands behind, on loopback."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse

from codec import encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header
from codec.registry import known_versions
from config.sidecar import ClusterSecurity
from sidecar.core.addresses import NodePorts
from sidecar.core.ids import NodeId
from sidecar.net.access import Access
from sidecar.net.listener import Listener, PortTaken
from tests.support.address import Address
from tests.support.fake_broker import Ask, FakeCluster
from tests.support.kafka.ports import free_ports
from tests.support.raw_client import API_VERSIONS, RawClientError, RawConnection, decode_response
from tests.support.raw_client import encode_request as framed
from tests.support.sidecar_app import ServingSidecar, serving

PATIENCE_S: Final = 20.0
ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
FAST: Final = {"probe": {"idle_interval_ms": 20, "min_interval_ms": 1, "timeout_ms": 500}}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for lies in this very loop
            await asyncio.sleep(0.001)


def request(
    key: int, version: int, body: dict[str, Any] | None = None, *, correlation_id: int = 7, **header: Any
) -> bytes:
    head = RequestHeader(
        api_key=key, api_version=version, correlation_id=correlation_id, client_id="raw-client", **header
    )
    payload = encode_request_header(head) + (encode_request(key, version, body) if body is not None else b"")
    return struct.pack(">i", len(payload)) + payload


def mine(cluster: FakeCluster, node_id: int = 1) -> list[Ask]:
    return [ask for ask in cluster.brokers[node_id].asked if ask.client_id == "raw-client"]


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(2) as found:
        yield found


@pytest.fixture
async def sidecar(cluster: FakeCluster) -> AsyncIterator[ServingSidecar]:
    async with serving(str(cluster.brokers[1].address), cluster=FAST) as found:
        yield found


@pytest.fixture
async def client(sidecar: ServingSidecar) -> AsyncIterator[RawConnection]:
    async with await RawConnection.open(sidecar.nodes[1]) as found:
        yield found


async def held_read(sidecar: ServingSidecar, cluster: FakeCluster, client: RawConnection) -> int:
    """Leaves a Metadata request waiting; returns the offset that some broker must reach."""
    await client.ask(ALL_TOPICS, MetadataResponse)
    (session,) = sidecar.app.driver.core.sessions
    offset = cluster.commit(seen_by=())
    await until(lambda: not session.bound.brokers)
    session.bound.visible = offset
    await client.send(ALL_TOPICS)
    await until(lambda: bool(sidecar.app.driver.core.gate.held))
    return offset


# Ports


@pytest.mark.row("2.4")
async def test_a_node_that_comes_back_elsewhere_keeps_its_port(sidecar: ServingSidecar, cluster: FakeCluster) -> None:
    moved = cluster.brokers[2]
    async with await RawConnection.open(sidecar.nodes[2]) as client:
        assert await client.api_versions()
        await moved.stop()
        moved.address = Address("127.0.0.1", 0)
        await moved.start()
        with pytest.raises(RawClientError, match="closed"):
            await client.receive_frame()
    known = sidecar.app.driver.core.cluster.addresses
    sidecar.app.discovery.hasten()
    await until(lambda: known[NodeId(2)].port == moved.address.port)
    before = len(mine(cluster, 2))
    async with await RawConnection.open(sidecar.nodes[2]) as client:
        answer = await client.ask(ALL_TOPICS, MetadataResponse)
        assert {b.node_id: (b.host, b.port) for b in answer.brokers} == sidecar.nodes
        assert await client.api_versions()
    assert len(mine(cluster, 2)) > before


@pytest.mark.row("2.4")
async def test_the_clients_of_a_node_that_left_are_closed_and_its_port_stays_its_own(
    sidecar: ServingSidecar, cluster: FakeCluster
) -> None:
    left = cluster.brokers[2]
    async with await RawConnection.open(sidecar.nodes[2]) as client:
        assert await client.api_versions()
        del cluster.brokers[2]
        await left.stop()
        with pytest.raises(RawClientError, match="closed"):
            await client.receive_frame()
    sidecar.app.discovery.hasten()
    await until(lambda: NodeId(2) not in sidecar.app.driver.core.cluster.addresses)
    ports = sidecar.app.driver.listeners[0].ports
    assert ports.port(NodeId(2)) == sidecar.nodes[2].port
    ports.assign([NodeId(3)])
    assert ports.port(NodeId(3)) != sidecar.nodes[2].port
    async with await RawConnection.open(sidecar.nodes[1]) as client:
        answer = await client.ask(ALL_TOPICS, MetadataResponse)
        assert [b.node_id for b in answer.brokers] == [1]


@pytest.mark.row("2.5")
async def test_a_listener_binds_to_an_ipv6_address_without_brackets(sidecar: ServingSidecar) -> None:
    (port,) = free_ports(1)
    ports = NodePorts(port + 1, port + 2, advertised_host="::1")
    access = Access(ClusterSecurity())
    listener = Listener(sidecar.app.driver, "six", "::1", port, ports, lambda: None, access=access)
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        with pytest.raises(PortTaken, match=rf"^cannot listen on \[::1\]:{port}"):
            listener.open()
        return
    listener.open()
    try:
        async with await RawConnection.open(Address("::1", port)) as client:
            assert await client.api_versions()
    finally:
        listener.close()


# Order and ids


@pytest.mark.row("3.1")
async def test_answers_of_broker_other_broker_and_sidecar_leave_in_the_order_of_the_requests(
    sidecar: ServingSidecar, cluster: FakeCluster, client: RawConnection
) -> None:
    offset = await held_read(sidecar, cluster, client)
    await client.send(API_VERSIONS)
    await client.send_bytes(request(ApiKey.API_VERSIONS, 99, correlation_id=50))
    await client.send(ALL_TOPICS)
    await until(lambda: any(c.waiting_bytes for c in sidecar.app.driver.core.connections.values()))
    cluster.brokers[2].position = offset
    assert await client.receive(MetadataResponse)
    assert await client.receive(ApiVersionsResponse)
    assert struct.unpack_from(">i", await client.receive_frame())[0] == 50
    cluster.brokers[1].position = offset
    assert await client.receive(MetadataResponse)


@pytest.mark.row("3.2")
async def test_a_correlation_id_may_come_again_and_again(
    sidecar: ServingSidecar, cluster: FakeCluster, client: RawConnection
) -> None:
    await client.send_bytes(b"".join(framed(each, 7) for each in (API_VERSIONS, ALL_TOPICS, ALL_TOPICS, API_VERSIONS)))
    kinds = (ApiVersionsResponse, MetadataResponse, MetadataResponse, ApiVersionsResponse)
    for kind in kinds:
        assert decode_response(await client.receive_frame(), kind, 7)
    offset = cluster.commit(seen_by=(2,))
    (session,) = sidecar.app.driver.core.sessions
    await until(lambda: not session.bound.brokers)
    session.bound.visible = offset
    await client.send_bytes(framed(ALL_TOPICS, 7) * 3)
    for _ in range(3):
        assert decode_response(await client.receive_frame(), MetadataResponse, 7)
    assert len([ask for ask in mine(cluster, 2) if ask.api_key == ApiKey.METADATA]) == 3, "the other broker answered"


@pytest.mark.row("3.3")
@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
async def test_produce_without_acknowledgement_is_not_waited_for(
    cluster: FakeCluster, client: RawConnection, version: int
) -> None:
    async def answer(ask: Ask) -> dict[str, Any] | None:
        return {"responses": []} if ask.body and ask.body["acks"] else None

    cluster.brokers[1].handlers[ApiKey.PRODUCE] = answer
    silent, loud = (request(ApiKey.PRODUCE, version, {"acks": acks}, correlation_id=60 + acks) for acks in (0, 1))
    await client.send_bytes(silent + framed(API_VERSIONS, 11) + silent * 2 + loud + silent + framed(API_VERSIONS, 12))
    found = [struct.unpack_from(">i", await client.receive_frame())[0] for _ in range(3)]
    assert found == [11, 61, 12]
    assert len([ask for ask in mine(cluster) if ask.api_key == ApiKey.PRODUCE]) == 5


@pytest.mark.row("3.4")
async def test_requests_may_come_before_the_connection_to_the_broker_is_open(
    sidecar: ServingSidecar, cluster: FakeCluster
) -> None:
    driver, go = sidecar.app.driver, asyncio.Event()
    endpoint = driver.endpoint

    async def later(node_id: NodeId) -> Any:
        await go.wait()
        return await endpoint(node_id)

    driver.endpoint = later  # type: ignore[method-assign]
    async with await RawConnection.open(sidecar.nodes[1]) as client:
        await client.send_bytes(framed(API_VERSIONS, 1) + framed(API_VERSIONS, 2) + framed(ALL_TOPICS, 3))
        await until(lambda: bool(driver.clients) and driver.clients[0].connection.in_flight == 3)
        go.set()
        assert [struct.unpack_from(">i", await client.receive_frame())[0] for _ in range(3)] == [1, 2, 3]


@pytest.mark.row("3.5")
async def test_what_a_client_sent_before_it_left_still_reaches_its_broker(
    sidecar: ServingSidecar, cluster: FakeCluster
) -> None:
    cluster.brokers[1].handlers[ApiKey.PRODUCE] = lambda ask: None
    driver, go = sidecar.app.driver, asyncio.Event()
    endpoint = driver.endpoint

    async def later(node_id: NodeId) -> Any:
        await go.wait()
        return await endpoint(node_id)

    driver.endpoint = later  # type: ignore[method-assign]
    async with await RawConnection.open(sidecar.nodes[1]) as client:
        await client.send_bytes(request(ApiKey.PRODUCE, 9, {"acks": 0}) * 3)
        await until(lambda: driver.counters.requests[ApiKey.PRODUCE, "silent"] == 3)
    await until(lambda: driver.counters.client_connections == 0)
    go.set()
    await until(lambda: len(mine(cluster)) == 3)


@pytest.mark.row("3.7")
async def test_a_write_does_not_overtake_a_held_read_and_what_is_none_does(
    sidecar: ServingSidecar, cluster: FakeCluster, client: RawConnection
) -> None:
    offset = await held_read(sidecar, cluster, client)
    broker = cluster.brokers[1]
    broker.handlers[ApiKey.CREATE_TOPICS] = lambda ask: {"topics": []}
    before = len(mine(cluster))
    await client.send(API_VERSIONS)
    await client.send_bytes(request(ApiKey.CREATE_TOPICS, 7, {"topics": []}, correlation_id=70))
    await until(lambda: len(mine(cluster)) > before)
    assert [ask.api_key for ask in mine(cluster)[before:]] == [ApiKey.API_VERSIONS]
    broker.position = offset
    assert await client.receive(MetadataResponse)
    assert await client.receive(ApiVersionsResponse)
    assert struct.unpack_from(">i", await client.receive_frame())[0] == 70
    came = [ask.api_key for ask in mine(cluster)[before:]]
    assert came == [ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.CREATE_TOPICS]


# Versions


@pytest.mark.row("4.3")
async def test_two_downgrades_in_a_row(cluster: FakeCluster, client: RawConnection) -> None:
    broker = cluster.brokers[1]
    plain = broker.handlers[ApiKey.API_VERSIONS]

    async def answer(ask: Ask) -> Any:
        if ask.api_version <= 3:
            return plain(ask)
        refusal = struct.pack(">ihihhh", 7, 35, 1, ApiKey.API_VERSIONS, 0, 3)
        await ask.send(struct.pack(">i", len(refusal)) + refusal)
        return None

    broker.handlers[ApiKey.API_VERSIONS] = answer
    newest = list(known_versions(ApiKey.API_VERSIONS) or ())[-1]
    software = {"client_software_name": "new", "client_software_version": "9"}
    for version, body, told in ((99, None, newest), (newest, software, 3)):
        await client.send_bytes(request(ApiKey.API_VERSIONS, version, body))
        said = struct.unpack_from(">ihihhh", await client.receive_frame())
        assert said == (7, 35, 1, ApiKey.API_VERSIONS, 0, told)
    assert await client.api_versions()


@pytest.mark.row("4.4")
async def test_the_clients_own_api_versions_reaches_its_broker_byte_by_byte(
    cluster: FakeCluster, client: RawConnection
) -> None:
    await client.api_versions()
    (ask,) = mine(cluster)
    assert ask.payload == framed(API_VERSIONS, 1)[4:]
    assert ask.body is not None
    assert ask.body["client_software_name"] == "raw-client"


@pytest.mark.row("4.5")
@pytest.mark.parametrize(("key", "version"), [(999, 3), (ApiKey.HEARTBEAT, 99)])
async def test_what_nobody_knows_passes_as_it_is(
    cluster: FakeCluster, client: RawConnection, key: int, version: int
) -> None:
    said = b"\0\0\0\7" + bytes(range(200))

    async def answer(ask: Ask) -> None:
        await ask.send(struct.pack(">i", len(said)) + said)

    cluster.brokers[1].handlers[key] = answer
    head = struct.pack(">hhih", key, version, 7, 10) + b"raw-client" + b"\0" + bytes(range(100))
    await client.send_bytes(struct.pack(">i", len(head)) + head)
    assert await client.receive_frame() == said
    assert mine(cluster)[-1].payload == head


@pytest.mark.row("4.6")
async def test_own_questions_are_in_the_brokers_versions_and_create_nothing(cluster: FakeCluster) -> None:
    for node_id, newest in ((1, 9), (2, 12)):
        cluster.brokers[node_id].versions |= {int(ApiKey.METADATA): (4, newest), int(ApiKey.DESCRIBE_QUORUM): (0, 1)}
    bootstrap = ",".join(str(broker.address) for broker in cluster.brokers.values())
    async with serving(bootstrap, cluster=FAST) as sidecar, await RawConnection.open(sidecar.nodes[1]) as client:
        await client.ask(ALL_TOPICS, MetadataResponse)
        await until(lambda: sidecar.app.driver.core.cluster.view.head is not None)
    for broker in cluster.brokers.values():
        own = [ask for ask in broker.asked if ask.client_id == "tidegate"]
        assert own
        for ask in own:
            low, high = broker.versions[ask.api_key]
            assert low <= ask.api_version <= high, ask
            if ask.api_key == ApiKey.METADATA:
                assert ask.body is not None
                assert (ask.body["topics"], ask.body["allow_auto_topic_creation"]) == ([], False)


@pytest.mark.row("4.7")
async def test_tagged_fields_that_nobody_knows_survive_both_ways(cluster: FakeCluster, client: RawConnection) -> None:
    cluster.brokers[1].handlers[ApiKey.METADATA] = lambda ask: cluster.metadata() | {"unknown_tags": {77: b"from afar"}}
    body = {"topics": None, "allow_auto_topic_creation": False, "unknown_tags": {88: b"to afar"}}
    sent = request(ApiKey.METADATA, 12, body, unknown_tags={99: b"in the header"})
    await client.send_bytes(sent)
    assert (await client.receive_frame()).endswith(b"\x01\x4d\x09from afar")
    assert mine(cluster)[-1].payload == sent[4:]
