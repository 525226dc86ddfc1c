"""The proposal's server side, tested from outside on the raw wire: an embedded cluster, sockets, a hand-made client."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest

from backend.app import EMBEDDED_CLUSTER_ID, Backend, embedded
from backend.metadata.records import NoOpRecord
from backend.net.offers import OFFERS
from backend.net.state_check import GATED_APIS, STALE_METADATA
from codec.api_keys import ApiKey
from codec.registry import first_flexible_version
from tests.support.state_client import State, StateClient

TIMEOUT_S: Final = 20
NEVER_MS: Final = 3_600_000
LAGGING: Final = 3
FETCH_EVERY_MS: Final = 2000
"""Four times as long as the leader holds a Fetch."""
INCONSISTENT_CLUSTER_ID: Final = 104

ANY_RULE: Final = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
READS: Final[Mapping[int, Mapping[str, Any]]] = {
    ApiKey.METADATA: {"topics": [{"name": "orders"}]},
    ApiKey.DESCRIBE_ACLS: ANY_RULE,
    ApiKey.DESCRIBE_CONFIGS: {
        "resources": [{"resource_type": 2, "resource_name": "orders", "configuration_keys": ["retention.ms"]}]
    },
    ApiKey.DESCRIBE_LOG_DIRS: {"topics": None},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {"owners": None},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": [], "strict": False},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": None},
    ApiKey.DESCRIBE_CLUSTER: {},
    ApiKey.LIST_CONFIG_RESOURCES: {"resource_types": [2]},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": [{"name": "orders"}]},
}
FLEXIBLE: Final = [
    (api_key, version)
    for api_key in sorted(READS)
    for version in range(max(OFFERS[api_key].first, first_flexible_version(api_key)), OFFERS[api_key].last + 1)
]
INFLEXIBLE: Final = [
    (api_key, version)
    for api_key in sorted(READS)
    for version in range(OFFERS[api_key].first, first_flexible_version(api_key))
]
every_flexible_read = pytest.mark.parametrize(
    ("api_key", "version"), FLEXIBLE, ids=[f"{ApiKey(key).name}-v{version}" for key, version in FLEXIBLE]
)


@pytest.fixture
async def cluster() -> AsyncIterator[Backend]:
    """Three brokers that wait a minute for a token, no NoOps, one topic; broker 3 can be made to lag."""
    async with Backend(embedded(noop_interval_ms=0, state_wait_ms=60_000)) as backend:
        await create(backend, 1, "orders")
        await level(backend)
        yield backend


@pytest.fixture
async def hasty() -> AsyncIterator[Backend]:
    """The same with brokers that wait 50 ms."""
    async with Backend(embedded(noop_interval_ms=0, state_wait_ms=50)) as backend:
        await create(backend, 1, "orders")
        await level(backend)
        yield backend


async def level(cluster: Backend) -> None:
    """Every broker has everything."""
    async with asyncio.timeout(TIMEOUT_S):
        for broker in cluster.brokers.values():
            await broker.publication.reach_effect(cluster.head_offset)


async def create(cluster: Backend, node_id: int, name: str) -> State:
    """Create a topic through a broker; the state in its answer."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    async with await connect(cluster, node_id) as client:
        answer = await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 1000})
    assert answer.errors() == {0}
    return answer.tags()


async def commit(cluster: Backend) -> None:
    await cluster.controller.append([NoOpRecord()])


async def connect(cluster: Backend, node_id: int) -> StateClient:
    return await StateClient.open(cluster.broker(node_id).address)


def position(cluster: Backend, node_id: int) -> State:
    """What a broker should put into its headers."""
    return State(cluster_id=EMBEDDED_CLUSTER_ID, token=cluster.broker(node_id).publication.offset)


def token(offset: int) -> State:
    return State(cluster_id=EMBEDDED_CLUSTER_ID, token=offset)


def test_every_one_of_the_ten_apis_is_here() -> None:
    assert READS.keys() == GATED_APIS
    assert {api_key for api_key, _ in FLEXIBLE} == GATED_APIS


@every_flexible_read
async def test_a_read_without_a_state_is_not_checked_and_its_answer_carries_the_position(
    cluster: Backend, api_key: int, version: int
) -> None:
    cluster.broker(LAGGING).paused = True
    await commit(cluster)
    async with await connect(cluster, LAGGING) as client:
        answer = await client.ask(api_key, version, READS[api_key])
        assert STALE_METADATA not in answer.errors()
        assert answer.state == position(cluster, LAGGING) == token(cluster.head_offset - 1)


@every_flexible_read
async def test_a_token_at_or_below_the_image_is_answered(cluster: Backend, api_key: int, version: int) -> None:
    at = cluster.head_offset
    async with await connect(cluster, 1) as client:
        for state in (token(at), token(at - 1), token(0), token(-1), State(token=at), State()):
            answer = await client.ask(api_key, version, READS[api_key], state)
            assert STALE_METADATA not in answer.errors()
            assert answer.state == token(at)


@every_flexible_read
async def test_a_token_above_the_image_is_waited_for(cluster: Backend, api_key: int, version: int) -> None:
    lagging = cluster.broker(LAGGING)
    lagging.replay_delay_ms = NEVER_MS
    await commit(cluster)
    async with await connect(cluster, LAGGING) as client:
        asking = asyncio.create_task(client.ask(api_key, version, READS[api_key], token(cluster.head_offset)))
        async with await connect(cluster, LAGGING) as other:
            # The broker has had the question when it answers one that was asked later.
            await other.ask(ApiKey.DESCRIBE_CLUSTER, 2)
        assert not asking.done()
        lagging.replay_delay_ms = 0
        answer = await asking
        assert STALE_METADATA not in answer.errors()
        assert answer.state == token(cluster.head_offset)


@every_flexible_read
async def test_a_token_that_is_not_reached_in_time_is_stale_metadata(
    hasty: Backend, api_key: int, version: int
) -> None:
    hasty.broker(LAGGING).paused = True
    await commit(hasty)
    async with await connect(hasty, LAGGING) as client:
        answer = await client.ask(api_key, version, READS[api_key], token(hasty.head_offset))
        assert answer.errors() == {STALE_METADATA}
        assert answer.state == position(hasty, LAGGING)


@every_flexible_read
async def test_a_token_above_the_head_is_stale_metadata_at_once(cluster: Backend, api_key: int, version: int) -> None:
    async with await connect(cluster, 2) as client:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await client.ask(api_key, version, READS[api_key], token(cluster.head_offset + 1))
        assert loop.time() - began < TIMEOUT_S
        assert answer.errors() == {STALE_METADATA}
        assert answer.state == position(cluster, 2)


@every_flexible_read
async def test_another_clusters_id_is_refused(cluster: Backend, api_key: int, version: int) -> None:
    async with await connect(cluster, 1) as client:
        for state in (State(cluster_id="another"), State(cluster_id="another", token=cluster.head_offset + 9)):
            answer = await client.ask(api_key, version, READS[api_key], state)
            assert answer.errors() == {INCONSISTENT_CLUSTER_ID}
            assert answer.state == position(cluster, 1)


@pytest.mark.parametrize(
    ("api_key", "version"), INFLEXIBLE, ids=[f"{ApiKey(key).name}-v{version}" for key, version in INFLEXIBLE]
)
async def test_versions_without_tagged_headers_are_served_as_ever(cluster: Backend, api_key: int, version: int) -> None:
    async with await connect(cluster, 1) as client:
        answer = await client.ask(api_key, version, READS[api_key])
        assert not answer.tagged
        assert answer.errors() <= {0, 64}


@pytest.mark.parametrize("version", range(5))
async def test_api_versions_never_carries_a_state_and_tells_the_position_in_its_body(
    cluster: Backend, version: int
) -> None:
    software = {"client_software_name": "test", "client_software_version": "1"}
    async with await connect(cluster, 1) as client:
        states = [None] if version < 3 else [None, token(0), token(cluster.head_offset + 1)]
        for state in states:
            answer = await client.ask(ApiKey.API_VERSIONS, version, software, state)
            assert (answer.tagged, answer.body["error_code"]) == (False, 0)
            assert answer.body.get("finalized_features_epoch", cluster.head_offset) == cluster.head_offset


@pytest.mark.parametrize("version", [3, 4])
async def test_api_versions_too_refuses_another_cluster(cluster: Backend, version: int) -> None:
    software = {"client_software_name": "test", "client_software_version": "1"}
    async with await connect(cluster, 1) as client:
        answer = await client.ask(ApiKey.API_VERSIONS, version, software, State(cluster_id="another"))
        assert answer.body["error_code"] == INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("version", range(5, 8))
async def test_the_answer_to_a_write_covers_it_though_the_broker_lags(cluster: Backend, version: int) -> None:
    lagging = cluster.broker(LAGGING)
    lagging.replay_delay_ms = NEVER_MS
    topic = {"name": "bills", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    async with await connect(cluster, LAGGING) as client:
        written = await client.ask(ApiKey.CREATE_TOPICS, version, {"topics": [topic], "timeout_ms": 1000})
        assert written.errors() == {0}
        assert written.state == token(cluster.head_offset) != position(cluster, LAGGING)
        stale = await client.ask(ApiKey.METADATA, 12, {"topics": [{"name": "bills"}]})
        assert stale.errors() == {3}
        reading = asyncio.create_task(client.ask(ApiKey.METADATA, 12, {"topics": [{"name": "bills"}]}, written.state))
        lagging.replay_delay_ms = 1
        fresh = await reading
        assert fresh.errors() == {0}
        assert fresh.tags().token >= written.tags().token


async def test_a_failed_write_is_covered_too(cluster: Backend) -> None:
    cluster.broker(LAGGING).replay_delay_ms = NEVER_MS
    await create(cluster, 1, "bills")
    topic = {"name": "bills", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    async with await connect(cluster, LAGGING) as client:
        refused = await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 1000})
        assert refused.errors() == {36}
        assert refused.state == token(cluster.head_offset)


WRITES: Final[Mapping[int, Mapping[str, Any]]] = {
    ApiKey.CREATE_TOPICS: {"topics": [{"name": "x", "num_partitions": 1, "replication_factor": 1}]},
    ApiKey.DELETE_TOPICS: {"topics": [{"name": "orders"}], "topic_names": ["orders"]},
    ApiKey.CREATE_PARTITIONS: {"topics": [{"name": "orders", "count": 2, "assignments": None}]},
    ApiKey.ALTER_CONFIGS: {"resources": [{"resource_type": 2, "resource_name": "orders", "configs": []}]},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"resources": [{"resource_type": 2, "resource_name": "orders", "configs": []}]},
    ApiKey.CREATE_ACLS: {
        "creations": [
            {
                "resource_type": 2,
                "resource_name": "orders",
                "resource_pattern_type": 3,
                "principal": "User:a",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
        ]
    },
    ApiKey.DELETE_ACLS: {"filters": [ANY_RULE]},
    ApiKey.ALTER_CLIENT_QUOTAS: {
        "entries": [
            {
                "entity": [{"entity_type": "user", "entity_name": "a"}],
                "ops": [{"key": "consumer_byte_rate", "value": 5.0, "remove": False}],
            }
        ]
    },
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {"deletions": [{"name": "a", "mechanism": 1}]},
    ApiKey.CREATE_DELEGATION_TOKEN: {"max_lifetime_ms": -1},
    ApiKey.RENEW_DELEGATION_TOKEN: {"hmac": b"x", "renew_period_ms": -1},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {"hmac": b"x", "expiry_time_period_ms": -1},
    ApiKey.ELECT_LEADERS: {"topic_partitions": [{"topic": "orders", "partitions": [0]}]},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "replicas": [2]}]}]
    },
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {},
    ApiKey.UPDATE_FEATURES: {"feature_updates": [{"feature": "metadata.version", "max_version_level": 33}]},
    ApiKey.UNREGISTER_BROKER: {"broker_id": 9},
}
"""What the controller answers: writes, and what it reads itself."""


@pytest.mark.parametrize("api_key", sorted(WRITES), ids=lambda key: ApiKey(key).name)
async def test_a_write_to_another_cluster_changes_nothing(cluster: Backend, api_key: int) -> None:
    before = cluster.head_offset
    async with await connect(cluster, 1) as client:
        answer = await client.ask(api_key, OFFERS[api_key].last, WRITES[api_key], State(cluster_id="another"))
        assert answer.errors() == {INCONSISTENT_CLUSTER_ID}
    assert cluster.head_offset == before


@pytest.mark.parametrize("api_key", sorted(WRITES), ids=lambda key: ApiKey(key).name)
async def test_a_write_never_waits_for_a_token(cluster: Backend, api_key: int) -> None:
    cluster.broker(LAGGING).paused = True
    await commit(cluster)
    async with await connect(cluster, LAGGING) as client:
        answer = await client.ask(api_key, OFFERS[api_key].last, WRITES[api_key], token(cluster.head_offset + 100))
        assert STALE_METADATA not in answer.errors()
        assert answer.tags().token == cluster.head_offset


async def test_every_offered_write_is_here() -> None:
    assert WRITES.keys() | READS.keys() | {10, 16, 17, 18, 36, 55} == OFFERS.keys()


async def test_what_comes_behind_a_waiting_read_on_its_connection_waits_too(cluster: Backend) -> None:
    lagging = cluster.broker(LAGGING)
    lagging.paused = True
    await commit(cluster)
    async with await connect(cluster, LAGGING) as client:
        await client.send(ApiKey.METADATA, 13, READS[ApiKey.METADATA], token(cluster.head_offset))
        await client.send(ApiKey.API_VERSIONS, 0)
        behind = asyncio.create_task(client.receive())
        async with await connect(cluster, LAGGING) as other:
            await other.ask(ApiKey.API_VERSIONS, 0)
        assert not behind.done()
        lagging.paused = False
        assert (await behind).tags().token == cluster.head_offset
        assert {row["api_key"] for row in (await client.receive()).body["api_keys"]} == set(OFFERS)


async def test_the_quorum_is_described_by_its_leader_with_fresh_voters(cluster: Backend) -> None:
    cluster.broker(LAGGING).paused = True
    await commit(cluster)
    asked = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
    async with await connect(cluster, LAGGING) as client:
        for version in range(3):
            answer = await client.ask(ApiKey.DESCRIBE_QUORUM, version, asked)
            partition = answer.body["topics"][0]["partitions"][0]
            assert partition["leader_id"] == 3001
            assert partition["high_watermark"] == cluster.head_offset + 1
            assert [voter["replica_id"] for voter in partition["current_voters"]] == [3001, 3002, 3003]
            assert [observer["replica_id"] for observer in partition["observers"]] == [1, 2, 3]
            assert answer.state == token(cluster.head_offset)
            if version:
                leader, *others = partition["current_voters"]
                for voter in others:
                    assert leader["last_fetch_timestamp"] - voter["last_fetch_timestamp"] < FETCH_EVERY_MS


async def test_rules_are_read_when_they_are_in_effect(cluster: Backend) -> None:
    lagging = cluster.broker(LAGGING)
    lagging.publish_delay_ms = NEVER_MS
    async with await connect(cluster, 1) as client:
        written = await client.ask(ApiKey.CREATE_ACLS, 3, WRITES[ApiKey.CREATE_ACLS])
    async with asyncio.timeout(TIMEOUT_S):
        await lagging.publication.reach(written.tags().token)
    async with await connect(cluster, LAGGING) as client:
        visible = await client.ask(ApiKey.DESCRIBE_CLUSTER, 2, {}, written.state)
        assert visible.tags().token >= written.tags().token
        assert (await client.ask(ApiKey.DESCRIBE_ACLS, 3, READS[ApiKey.DESCRIBE_ACLS])).body["resources"] == []
        await client.send(ApiKey.DESCRIBE_ACLS, 3, READS[ApiKey.DESCRIBE_ACLS], written.state)
        lagging.publish_delay_ms = 0
        assert len((await client.receive()).body["resources"]) == 1
