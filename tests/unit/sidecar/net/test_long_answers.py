"""Large answers on loopback: they pass with next to nothing kept, in order, and their addresses become ours."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse

from codec import decode_response, encode_request, encode_response
from codec.api_keys import ApiKey
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    encode_request_header,
    encode_response_header,
    response_body_offset,
    response_state,
)
from codec.primitives import write_unsigned_varint
from sidecar.core.ids import NodeId
from sidecar.net.client import Client
from tests.support.address import Address
from tests.support.fake_broker import Ask, FakeCluster
from tests.support.raw_client import RawConnection
from tests.support.sidecar_app import ServingSidecar, serving

VERSION: Final = 17
HUGE: Final = 100_000_000
KEPT_BYTES_MAX: Final = 400_000
"""A read of asyncio's on each side, and what it writes before it pauses."""
CHUNK_BYTES: Final = 250_000
PATIENCE_S: Final = 20.0
ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def fetch_request(correlation_id: int, version: int = VERSION) -> bytes:
    header = RequestHeader(
        api_key=ApiKey.FETCH, api_version=version, correlation_id=correlation_id, client_id="raw-client"
    )
    body: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, "topics": [], "forgotten_topics_data": []}
    return framed(encode_request_header(header) + encode_request(ApiKey.FETCH, version, body))


def fetch_answer(
    correlation_id: int,
    records_bytes: int,
    *,
    moved: bool = False,
    state: ConsistencyState | None = None,
    hosts: dict[int, str] | None = None,
    version: int = VERSION,
) -> tuple[bytes, bytes]:
    """What stands before the records, and what comes after them; the size is in front."""
    partition = {"error_code": 6 if moved else 0, "records": b"!"}
    endpoints = [{"node_id": n, "host": host, "port": 9092, "rack": None} for n, host in (hosts or {}).items()]
    body = {"responses": [{"partitions": [partition]}], "node_endpoints": endpoints}
    header = encode_response_header(
        ResponseHeader(correlation_id=correlation_id, consistency_state=state), ApiKey.FETCH, version
    )
    flexible = version >= 12
    before, after = encode_response(ApiKey.FETCH, version, body).split(b"\x02!" if flexible else b"\0\0\0\1!")
    length = write_unsigned_varint(records_bytes + 1) if flexible else struct.pack(">i", records_bytes)
    front = header + before + length
    return struct.pack(">i", len(front) + records_bytes + len(after)) + front, after


def streamed(records_bytes: int, **fields: Any) -> Callable[[Ask], Awaitable[None]]:
    """A handler that answers Fetch with so many bytes of records, as fast as they are taken."""

    async def answer(ask: Ask) -> None:
        correlation_id = struct.unpack_from(">i", ask.payload, 4)[0]
        front, after = fetch_answer(correlation_id, records_bytes, **fields)
        await ask.send(front)
        for start in range(0, records_bytes, CHUNK_BYTES):
            await ask.send(bytes(min(CHUNK_BYTES, records_bytes - start)))
        await ask.send(after)

    return answer


def kept_bytes(client: Client) -> int:
    """What lies in the buffers of one client's connections."""
    home = client.home
    kept = len(client._pending) + len(home._pending) + len(home._unsent) + client._transport.get_write_buffer_size()
    if home._streaming is not None:
        kept += home._streaming.held_bytes
    return kept + sum(len(e.answer or b"") for e in client.connection._exchanges)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(1) as found:
        yield found


async def only_client(sidecar: ServingSidecar) -> Client:
    async with asyncio.timeout(PATIENCE_S):
        while not sidecar.app.driver.clients:  # noqa: ASYNC110 - it comes up in this very loop
            await asyncio.sleep(0)
    (client,) = sidecar.app.driver.clients
    assert isinstance(client, Client)
    return client


async def receive_slowly(address: Address, request: bytes, sample: Callable[[], None]) -> tuple[bytes, int, bytes]:
    """The size, how many bytes came, and the last of them."""
    reader, writer = await asyncio.open_connection(*address, limit=65536)
    writer.write(request)
    (size,) = struct.unpack(">i", head := await reader.readexactly(4))
    count, last = 0, b""
    while count < size:
        data = await reader.read(min(65536, size - count))
        assert data, "the sidecar hung up"
        count += len(data)
        last = (last + data)[-200:]
        sample()
    writer.close()
    await writer.wait_closed()
    return head, count, last


@pytest.mark.row("1")
@pytest.mark.parametrize("moved", [False, True])
async def test_a_hundred_megabytes_pass_a_slow_reader_with_next_to_nothing_kept(
    cluster: FakeCluster, moved: bool
) -> None:
    hosts = {1: "kafka-1.internal.example"} if moved else {}
    cluster.brokers[1].handlers[ApiKey.FETCH] = streamed(HUGE, moved=moved, hosts=hosts)
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        most, paused = 0, False

        def sample() -> None:
            nonlocal most, paused
            for client in sidecar.app.driver.clients:
                assert isinstance(client, Client)
                most = max(most, kept_bytes(client))
                paused |= client.home.paused

        _, count, last = await receive_slowly(sidecar.nodes[1], fetch_request(1), sample)
    front, after = fetch_answer(1, HUGE, moved=moved, hosts=hosts)
    assert count == len(front) - 4 + HUGE + len(after)
    assert most < KEPT_BYTES_MAX
    assert paused
    assert (b"kafka-1" in last, b"127.0.0.1" in last) == (False, moved)


async def ask_fetch(client: RawConnection, version: int = VERSION) -> dict[str, Any]:
    payload = await client.receive_frame()
    return decode_response(ApiKey.FETCH, version, payload, response_body_offset(payload, ApiKey.FETCH, version))


@pytest.mark.row("1")
@pytest.mark.parametrize("version", [4, 12, 16, 17])
async def test_what_a_large_answer_says_of_leaders_reaches_session_and_client(
    cluster: FakeCluster, version: int
) -> None:
    hosts = {1: "kafka-1.internal.example", 77: "kafka-77.internal.example"} if version >= 16 else {}
    cluster.brokers[1].handlers[ApiKey.FETCH] = streamed(300_000, moved=True, hosts=hosts, version=version)
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await client.send_bytes(fetch_request(7, version))
            body = await ask_fetch(client, version)
            (session,) = sidecar.app.driver.core.sessions
        assert session.bound.brokers or session.bound.visible > 0
        ports = sidecar.app.driver.listeners[0].ports
        expected = [(n, *(ports.advertised(NodeId(n)) or ("", 0))) for n in hosts]
        assert [(e["node_id"], e["host"], e["port"]) for e in body.get("node_endpoints", ())] == expected
        assert [p["records"] for t in body["responses"] for p in t["partitions"]] == [bytes(300_000)]


async def test_a_state_in_the_header_of_a_large_answer_is_taken_out(cluster: FakeCluster) -> None:
    state = ConsistencyState(cluster_id="fake", consistency_token=100)
    cluster.brokers[1].handlers[ApiKey.FETCH] = streamed(300_000, state=state)
    for exposed in (False, True):
        async with (
            serving(str(cluster.brokers[1].address), consistency={"expose_state": exposed}) as sidecar,
            await RawConnection.open(sidecar.nodes[1]) as client,
        ):
            for correlation_id in (1, 2):
                await client.send_bytes(fetch_request(correlation_id))
                payload = await client.receive_frame()
                assert response_state(payload, ApiKey.FETCH, VERSION) == (state if exposed else None)
                assert payload.endswith(bytes(1000) + b"\0\0\0")


async def test_answers_after_a_large_one_are_read_as_ever(cluster: FakeCluster) -> None:
    cluster.brokers[1].handlers[ApiKey.FETCH] = streamed(300_000)
    async with (
        serving(str(cluster.brokers[1].address)) as sidecar,
        await RawConnection.open(sidecar.nodes[1]) as client,
    ):
        for _ in range(2):
            await client.send_bytes(fetch_request(5) + fetch_request(6))
            await client.send(ALL_TOPICS)
            for correlation_id in (5, 6):
                payload = await client.receive_frame()
                assert struct.unpack_from(">i", payload)[0] == correlation_id
                assert len(payload) > 300_000
            answer = await client.receive(MetadataResponse)
            assert [(b.host, b.port) for b in answer.brokers] == [sidecar.nodes[1]]


@pytest.mark.row("3.7")
async def test_a_large_answer_behind_a_held_read_stays_with_the_broker(cluster: FakeCluster) -> None:
    sent = asyncio.Event()
    flood = streamed(20_000_000)

    async def answer(ask: Ask) -> None:
        await flood(ask)
        sent.set()

    cluster.brokers[1].handlers[ApiKey.FETCH] = answer
    async with (
        serving(str(cluster.brokers[1].address)) as sidecar,
        await RawConnection.open(sidecar.nodes[1]) as client,
    ):
        await client.ask(ALL_TOPICS, MetadataResponse)
        (session,) = sidecar.app.driver.core.sessions
        offset = cluster.commit(seen_by=())
        async with asyncio.timeout(PATIENCE_S):
            while session.bound.brokers:  # noqa: ASYNC110 - a probe of the sidecar's own redeems it
                await asyncio.sleep(0.001)
        session.bound.visible = offset
        await client.send(ALL_TOPICS)
        await client.send_bytes(fetch_request(9))
        inside = await only_client(sidecar)
        async with asyncio.timeout(PATIENCE_S):
            while not inside.home._left_with_broker:  # noqa: ASYNC110 - it happens in this very loop
                await asyncio.sleep(0)
        assert kept_bytes(inside) < KEPT_BYTES_MAX
        assert not sent.is_set()
        cluster.brokers[1].position = offset
        assert await client.receive(MetadataResponse)
        assert len(await client.receive_frame()) > 20_000_000


async def test_a_large_answer_that_cannot_be_read_ends_its_connection(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(ask: Ask) -> None:
        front, _ = fetch_answer(3, 300_000)
        await ask.send(front + bytes(300_000) + b"\xff\xff\xff")

    cluster.brokers[1].handlers[ApiKey.FETCH] = broken
    async with serving(str(cluster.brokers[1].address)) as sidecar:
        reader, writer = await asyncio.open_connection(*sidecar.nodes[1])
        writer.write(fetch_request(3))
        assert len(await asyncio.wait_for(reader.read(), PATIENCE_S)) < 300_100
        writer.close()
        await writer.wait_closed()
        assert sidecar.app.driver.counters.closed["client", "broker_malformed"] == 1
    assert len([r for r in caplog.records if "cannot be read" in r.message]) == 1
