"""What reads show of fenced brokers, partitions without a leader, other listeners: what the script does not reach."""

from dataclasses import replace
from typing import Any

import pytest

from backend.metadata.controller import WRITES
from backend.metadata.image import Image
from backend.metadata.reads import READS, Reader, answer
from backend.metadata.records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from codec.api_keys import ApiKey
from tests.support.memory_backend import LISTENER, MemoryBackend, broker

ALL_TOPICS = {"topics": None, "allow_auto_topic_creation": False}
GATED = {3, 29, 32, 35, 41, 48, 50, 60, 74, 75}


@pytest.fixture
def backend() -> MemoryBackend:
    """Three brokers, and topic t with one partition on 1, 2 and 3, led by 2."""
    cluster = MemoryBackend()
    assignments = [{"partition_index": 0, "broker_ids": [2, 1, 3]}]
    topic = {"name": "t", "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    cluster.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic]})
    return cluster


def reader(image: Image, **more: Any) -> Reader:
    return replace(Reader(image=image, acting=image, node_id=1, listener_name=LISTENER), **more)


def fence(backend: MemoryBackend, broker_id: int) -> None:
    backend.commit([BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id, fenced=1)])


def partition(version: int, by: Reader) -> dict[str, Any]:
    asked = {"topics": [{"name": "t", "topic_id": bytes(16)}], "allow_auto_topic_creation": False}
    found: dict[str, Any] = answer(ApiKey.METADATA, version, asked, by)["topics"][0]["partitions"][0]
    return found


def test_every_gated_read_is_here_and_no_read_is_a_write() -> None:
    assert GATED <= READS
    assert not READS & WRITES


@pytest.mark.parametrize(("version", "code"), [(1, 5), (5, 5), (6, 72), (13, 72)])
def test_a_fenced_leader_is_not_shown(backend: MemoryBackend, version: int, code: int) -> None:
    fence(backend, 2)
    found = partition(version, reader(backend.image))
    assert (found["error_code"], found["leader_id"], found["offline_replicas"]) == (code, -1, [2])
    assert found["replica_nodes"] == [2, 1, 3]


def test_a_partition_without_a_leader_has_none_available(backend: MemoryBackend) -> None:
    topic_id = backend.image.topics.by_name["t"].topic_id
    backend.commit([PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=-1)])
    found = partition(12, reader(backend.image))
    assert (found["error_code"], found["leader_id"], found["leader_epoch"]) == (5, -1, 1)


def test_v0_leaves_out_whom_clients_cannot_reach(backend: MemoryBackend) -> None:
    fence(backend, 3)
    found = partition(0, reader(backend.image))
    assert (found["error_code"], found["leader_id"]) == (9, 2)
    assert found["replica_nodes"] == found["isr_nodes"] == [2, 1]
    later = partition(1, reader(backend.image))
    assert (later["error_code"], later["replica_nodes"]) == (0, [2, 1, 3])


def test_each_listener_sees_its_own_endpoints(backend: MemoryBackend) -> None:
    point = BrokerEndpoint(name="SASL", host="inside", port=9093, security_protocol=2)
    backend.commit([replace(broker(1), end_points=(point, *broker(1).end_points))])
    sasl = answer(ApiKey.METADATA, 12, ALL_TOPICS, reader(backend.image, listener_name="SASL"))
    assert [(found["node_id"], found["host"]) for found in sasl["brokers"]] == [(1, "inside")]
    assert sasl["topics"][0]["partitions"][0]["error_code"] == 72
    plain = answer(ApiKey.METADATA, 12, ALL_TOPICS, reader(backend.image))
    assert [found["host"] for found in plain["brokers"]] == ["host-1", "host-2", "host-3"]


def test_the_controller_is_the_broker_that_is_asked_unless_it_is_fenced(backend: MemoryBackend) -> None:
    assert answer(ApiKey.METADATA, 12, ALL_TOPICS, reader(backend.image, node_id=3))["controller_id"] == 3
    fence(backend, 3)
    assert answer(ApiKey.METADATA, 12, ALL_TOPICS, reader(backend.image, node_id=3))["controller_id"] == 1
    empty = reader(Image.empty("cluster"))
    assert answer(ApiKey.METADATA, 12, ALL_TOPICS, empty)["controller_id"] == -1


def test_fenced_brokers_are_described_on_request(backend: MemoryBackend) -> None:
    fence(backend, 2)
    for wanted, found in ((False, [(1, False), (3, False)]), (True, [(1, False), (2, True), (3, False)])):
        asked = {"include_cluster_authorized_operations": False, "endpoint_type": 1, "include_fenced_brokers": wanted}
        described = answer(ApiKey.DESCRIBE_CLUSTER, 2, asked, reader(backend.image))
        assert [(row["broker_id"], row["is_fenced"]) for row in described["brokers"]] == found


def test_pages_join_to_the_whole(backend: MemoryBackend) -> None:
    topics = [{"name": name, "num_partitions": count, "replication_factor": 1} for name, count in (("a", 5), ("b", 3))]
    backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": topics})
    for limit in range(1, 11):
        cursor: dict[str, Any] | None = None
        seen: list[tuple[str, int]] = []
        for _ in range(20):
            asked = {"topics": [], "response_partition_limit": limit, "cursor": cursor}
            page = backend.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, asked)
            found = [(topic["name"], p["partition_index"]) for topic in page["topics"] for p in topic["partitions"]]
            assert len(found) <= limit
            seen += found
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == [*(("a", i) for i in range(5)), *(("b", i) for i in range(3)), ("t", 0)]


def test_a_page_has_2000_partitions_at_most(backend: MemoryBackend) -> None:
    backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "big", "num_partitions": 2001, "replication_factor": 1}]})
    asked = {"topics": [{"name": "big"}], "response_partition_limit": 5000, "cursor": None}
    page = backend.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, asked)
    assert len(page["topics"][0]["partitions"]) == 2000
    assert page["next_cursor"] == {"topic_name": "big", "partition_index": 2000}


def test_a_broker_reports_the_replicas_that_it_has(backend: MemoryBackend) -> None:
    backend.ask(
        ApiKey.CREATE_TOPICS,
        7,
        {
            "topics": [
                {
                    "name": "u",
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [
                        {"partition_index": 0, "broker_ids": [2]},
                        {"partition_index": 1, "broker_ids": [1]},
                    ],
                }
            ]
        },
    )
    described = backend.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None})["results"][0]
    found = {topic["name"]: [p["partition_index"] for p in topic["partitions"]] for topic in described["topics"]}
    assert found == {"t": [0], "u": [1]}


def test_a_secret_of_a_broker_stays_with_it(backend: MemoryBackend) -> None:
    configs = [{"name": "our.password", "config_operation": 0, "value": "SECRET"}]
    resources = [{"resource_type": 4, "resource_name": "", "configs": configs}]
    backend.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources, "validate_only": False})
    for name in ("", "1"):
        asked = {"resource_type": 4, "resource_name": name, "configuration_keys": None}
        body = {"resources": [asked], "include_synonyms": True, "include_documentation": False}
        described = backend.ask(ApiKey.DESCRIBE_CONFIGS, 4, body)
        assert "our.password" in str(described)
        assert "SECRET" not in str(described)
