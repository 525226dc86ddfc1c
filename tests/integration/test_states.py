"""The sidecar in front of brokers that implement the proposal: what clients see of it, and what brokers see of us."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest

from backend.app import EMBEDDED_CLUSTER_ID, Backend, embedded
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ConsistencyState
from codec.registry import first_flexible_version
from sidecar.core.states import STALE_METADATA
from tests.support.fake_broker import Ask, FakeCluster
from tests.support.sidecar_app import ServingSidecar, serving
from tests.support.state_client import State, StateClient

PATIENCE_S: Final = 20.0
READS: Final = 1000
LAG_MS: Final = 40
NO_TOPICS: Final[Mapping[str, Any]] = {"topics": [], "allow_auto_topic_creation": False}
FAST: Final[dict[str, Any]] = {"cluster": {"probe": {"idle_interval_ms": 50, "min_interval_ms": 1, "timeout_ms": 1000}}}
EXPOSED: Final[dict[str, Any]] = {**FAST, "consistency": {"expose_state": True}}

PLAIN: Final[Mapping[int, tuple[int, Mapping[str, Any]]]] = {
    ApiKey.DESCRIBE_QUORUM: (
        2,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    ),
    ApiKey.LIST_GROUPS: (5, {"states_filter": [], "types_filter": []}),
    ApiKey.FIND_COORDINATOR: (6, {"key_type": 0, "coordinator_keys": ["group"]}),
}
GATED: Final[Mapping[int, tuple[int, Mapping[str, Any]]]] = {
    ApiKey.METADATA: (13, NO_TOPICS),
    ApiKey.DESCRIBE_CLUSTER: (2, {}),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (1, {"components": [], "strict": False}),
}


async def carrying(sidecar: ServingSidecar) -> None:
    """Waits until every broker is known to implement the proposal."""
    view = sidecar.app.driver.core.cluster
    async with asyncio.timeout(PATIENCE_S):
        while not all(broker.carries_state for broker in view.view.brokers.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture
async def cluster() -> AsyncIterator[Backend]:
    """Three brokers without NoOps."""
    async with Backend(embedded(noop_interval_ms=0)) as backend:
        yield backend


async def create(client: StateClient, name: str, version: int) -> None:
    """Creates a topic."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    answer = await client.ask(ApiKey.CREATE_TOPICS, version, {"topics": [topic], "timeout_ms": 5000})
    assert answer.errors() == {0}


async def stale_reads(nodes: Mapping[int, tuple[str, int]], *, flexible: bool, reads: int, prefix: str) -> int:
    """Creates topics through one broker and reads each back at once through all; how many reads miss theirs."""
    clients = {node_id: await StateClient.open(address) for node_id, address in nodes.items()}
    write_version, read_version = (7, 12) if flexible else (4, 5)
    stale = done = 0
    for number, writer in zip(itertools.count(), itertools.cycle(sorted(clients)), strict=False):
        name = f"{prefix}-{number}"
        await create(clients[writer], name, write_version)
        for node_id in sorted(clients):
            answer = await clients[node_id].ask(
                ApiKey.METADATA, read_version, {"topics": [{"name": name}], "allow_auto_topic_creation": False}
            )
            assert answer.errors() <= {0, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
            stale += answer.errors() != {0}
            done += 1
        if done >= reads:
            break
    for client in clients.values():
        await client.close()
    return stale


@pytest.mark.parametrize("flexible", [True, False], ids=["flexible", "inflexible"])
async def test_a_legacy_client_reads_nothing_stale_from_lagging_brokers(cluster: Backend, flexible: bool) -> None:
    cluster.broker(2).replay_delay_ms = (0, LAG_MS)
    cluster.broker(3).replay_delay_ms = LAG_MS
    direct = {node_id: broker.address for node_id, broker in cluster.brokers.items()}
    assert await stale_reads(direct, flexible=flexible, reads=30, prefix="direct") > 0, "else this proves nothing"
    async with serving(cluster.bootstrap_servers, **FAST) as sidecar:
        await carrying(sidecar)
        assert await stale_reads(dict(sidecar.nodes), flexible=flexible, reads=READS, prefix="sidecar") == 0


async def test_no_answer_to_a_client_carries_a_state(cluster: Backend) -> None:
    async with serving(cluster.bootstrap_servers, **FAST) as sidecar:
        for wait_for_detection in (False, True):
            if wait_for_detection:
                await carrying(sidecar)
            async with await StateClient.open(sidecar.nodes[1]) as client:
                for api_key, (version, body) in {**PLAIN, **GATED}.items():
                    answer = await client.ask(api_key, version, body)
                    assert answer.tagged
                    assert answer.state is None, ApiKey(api_key)


async def test_with_expose_state_every_answer_carries_it(cluster: Backend) -> None:
    serve = serving(cluster.bootstrap_servers, **EXPOSED)
    async with serve as sidecar, await StateClient.open(sidecar.nodes[1]) as client:
        for api_key, (version, body) in {**PLAIN, **GATED}.items():
            answer = await client.ask(api_key, version, body)
            assert answer.tags().cluster_id == EMBEDDED_CLUSTER_ID, ApiKey(api_key)
            assert answer.tags().token >= 0


# Clients that implement the proposal


async def test_a_client_with_a_state_of_its_own_gets_what_it_asks_for(cluster: Backend) -> None:
    async with serving(cluster.bootstrap_servers, **EXPOSED) as sidecar:
        await carrying(sidecar)
        cluster.broker(3).replay_delay_ms = LAG_MS
        async with await StateClient.open(cluster.broker(1).address) as elsewhere:
            await create(elsewhere, "orders", 7)
        written = State(cluster_id=EMBEDDED_CLUSTER_ID, token=cluster.head_offset)
        async with await StateClient.open(sidecar.nodes[3]) as client:
            asked = {"topics": [{"name": "orders"}], "allow_auto_topic_creation": False}
            answer = await client.ask(ApiKey.METADATA, 12, asked, written)
            assert answer.errors() == {0}, "that write went past the sidecar, which had no other way to know"
            assert answer.tags().token >= written.token


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (State(cluster_id=EMBEDDED_CLUSTER_ID, token=1 << 40), STALE_METADATA),
        (State(token=1 << 40), STALE_METADATA),
        (State(cluster_id="another", token=1), int(ErrorCode.INCONSISTENT_CLUSTER_ID)),
        (State(cluster_id="another"), int(ErrorCode.INCONSISTENT_CLUSTER_ID)),
        (State(), 0),
        (State(cluster_id=EMBEDDED_CLUSTER_ID, token=0), 0),
    ],
    ids=str,
)
async def test_a_state_that_nobody_can_meet_is_refused_as_the_server_does(
    cluster: Backend, state: State, error: int
) -> None:
    async with serving(cluster.bootstrap_servers, **FAST) as sidecar:
        await carrying(sidecar)
        async with await StateClient.open(sidecar.nodes[2]) as client:
            for api_key, (version, body) in GATED.items():
                assert (await client.ask(api_key, version, body, state)).errors() == {error}


# What brokers see, and what clients never do


async def ask_metadata(sidecar: ServingSidecar, version: int = 12) -> set[int]:
    """One legacy read through the port of broker 1; the error codes in its answer."""
    async with await StateClient.open(sidecar.nodes[1]) as client:
        answer = await client.ask(ApiKey.METADATA, version, {"topics": [{"name": "orders"}]})
    return answer.errors()


def known_topic(cluster: FakeCluster) -> dict[str, Any]:
    """A Metadata answer that knows the topic."""
    return {**cluster.metadata(), "topics": [{"name": "orders", "error_code": 0, "partitions": []}]}


async def test_a_broker_without_the_proposal_sees_one_stamp_and_never_another() -> None:
    async with FakeCluster(1) as cluster:
        broker = cluster.brokers[1]
        broker.handlers[ApiKey.METADATA] = lambda ask: known_topic(cluster)
        async with serving(str(broker.address), **FAST) as sidecar:
            for _ in range(3):
                assert await ask_metadata(sidecar) == {0}
        assert [ask.state for ask in broker.asked if ask.state is not None] == [ConsistencyState()]


async def test_reads_carry_their_bound_in_flexible_versions_only() -> None:
    async with FakeCluster(1) as cluster:
        broker = cluster.brokers[1]
        broker.carries_state = True
        broker.handlers[ApiKey.METADATA] = lambda ask: known_topic(cluster)
        async with serving(str(broker.address), **FAST) as sidecar:
            await carrying(sidecar)
            assert await ask_metadata(sidecar) == {0}
            assert await ask_metadata(sidecar, first_flexible_version(ApiKey.METADATA) - 1) == {0}
        stamps = [ask.state for ask in broker.asked_for(ApiKey.METADATA) if ask.client_id == "me"]
        assert stamps == [ConsistencyState(cluster_id="fake", consistency_token=100), None]


async def test_a_refusal_as_stale_never_reaches_a_legacy_client() -> None:
    async with FakeCluster(1) as cluster:
        broker = cluster.brokers[1]
        broker.carries_state = True
        refused = 0

        def refuse_twice(ask: Ask) -> Mapping[str, Any]:
            nonlocal refused
            if ask.state is not None and ask.state.consistency_token >= 0 and refused < 2:
                refused += 1
                return {**cluster.metadata(), "topics": [{"name": "orders", "error_code": STALE_METADATA}]}
            return known_topic(cluster)

        broker.handlers[ApiKey.METADATA] = refuse_twice
        async with serving(str(broker.address), **FAST) as sidecar:
            await carrying(sidecar)
            assert await ask_metadata(sidecar) == {0}
        assert refused == 2


@pytest.mark.parametrize(("on_timeout", "closes"), [("error", True), ("close", True), ("stale", False)])
async def test_a_broker_that_always_refuses_ends_as_on_timeout_says(on_timeout: str, closes: bool) -> None:
    async with FakeCluster(1) as cluster:
        broker = cluster.brokers[1]
        broker.carries_state = True

        def refuse(ask: Ask) -> Mapping[str, Any]:
            stamped = ask.state is not None and ask.state.consistency_token >= 0
            topic = {"name": "orders", "error_code": STALE_METADATA if stamped else 0}
            return {**cluster.metadata(), "topics": [topic]}

        broker.handlers[ApiKey.METADATA] = refuse
        settings = {**FAST, "consistency": {"wait_timeout_ms": 300, "on_timeout": on_timeout}}
        async with serving(str(broker.address), **settings) as sidecar:
            await carrying(sidecar)
            if closes:
                with pytest.raises(asyncio.IncompleteReadError):
                    await ask_metadata(sidecar)
            else:
                assert await ask_metadata(sidecar) == {0}


async def test_a_refusal_because_of_the_cluster_is_asked_again_without_a_stamp() -> None:
    async with FakeCluster(1) as cluster:
        broker = cluster.brokers[1]
        broker.carries_state = True

        def refuse(ask: Ask) -> Mapping[str, Any]:
            if ask.state is not None and ask.state.cluster_id is not None:
                code = int(ErrorCode.INCONSISTENT_CLUSTER_ID)
                return {**cluster.metadata(), "topics": [{"name": "orders", "error_code": code}]}
            return known_topic(cluster)

        broker.handlers[ApiKey.METADATA] = refuse
        async with serving(str(broker.address), **FAST) as sidecar:
            await carrying(sidecar)
            rounds = sidecar.app.discovery.rounds
            assert await ask_metadata(sidecar) == {0}
            async with asyncio.timeout(PATIENCE_S):
                while sidecar.app.discovery.rounds == rounds:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            stamps = [ask.state for ask in broker.asked_for(ApiKey.METADATA) if ask.client_id == "me"]
            assert stamps == [ConsistencyState(cluster_id="fake", consistency_token=100), None]
