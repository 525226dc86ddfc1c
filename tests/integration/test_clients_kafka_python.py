"""kafka-python, straight and through the sidecar: the same script, the same results."""

import time
from collections.abc import Iterable
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.ways import PARTITIONS, RECORDS, Way, assignment, partition_of, value_of

pytestmark = pytest.mark.kafka

TIMEOUT_S = 60.0


def described(admin: Any, topic: str) -> list[Any]:
    """Partition, leader and replicas."""
    (found,) = admin.describe_topics([topic])
    return [[p["partition_index"], p["leader_id"], p["replica_nodes"]] for p in found["partitions"]]


def brokers(admin: Any, way: Way) -> list[Any]:
    """The cluster's id and its brokers."""
    cluster = admin.describe_cluster()
    return [
        cluster["cluster_id"],
        sorted(way.place(broker["broker_id"], broker["host"], broker["port"]) for broker in cluster["brokers"]),
    ]


def config(admin: Any, topic: str) -> dict[str, str]:
    """What was set for this topic itself."""
    found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    entries = found["topic"][topic]
    return {name: entry["value"] for name, entry in entries.items() if "retention" in name}


def produce(way: Way, topic: str, **settings: Any) -> dict[int, int]:
    """Produce all records; the number delivered for each partition."""
    producer = KafkaProducer(bootstrap_servers=way.bootstrap, **settings)
    try:
        sent = [producer.send(topic, value_of(i), partition=partition_of(i)) for i in range(RECORDS)]
        producer.flush(TIMEOUT_S)
        partitions = [future.get(TIMEOUT_S).partition for future in sent]
    finally:
        producer.close()
    return {partition: partitions.count(partition) for partition in range(PARTITIONS)}


def consume(way: Way, topic: str, group: str, count: int, **settings: Any) -> list[list[bytes]]:
    """Consume `count` records as a member of a group and commit; the values of each partition in order."""
    seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=way.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    try:
        deadline_s = time.monotonic() + TIMEOUT_S
        while sum(map(len, seen)) < count and time.monotonic() < deadline_s:
            for records in consumer.poll(1000).values():
                for record in records:
                    seen[record.partition].append(record.value)
        consumer.commit()
    finally:
        consumer.close()
    return seen


def acls(admin: Any, way: Way, topic: str) -> list[list[str]]:
    """Grant, read back, revoke, read back."""
    common = ("User:carol", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, topic))

    def read() -> list[str]:
        way.settle_access()
        found, _ = admin.describe_acls(ACLFilter(*common))
        return [f"{acl.principal} {acl.operation.name} {acl.resource_pattern.resource_name == topic}" for acl in found]

    assert admin.create_acls([ACL(*common)])["failed"] == []
    granted = read()
    admin.delete_acls([ACLFilter(*common)])
    return [granted, read()]


def administer_and_exchange(way: Way, topic: str) -> dict[str, Any]:
    """Everything that an application and its operator do with a topic, from its creation to its end."""
    admin = KafkaAdminClient(bootstrap_servers=way.bootstrap)
    try:
        seen: dict[str, Any] = {}
        admin.create_topics({topic: {"assignments": assignment(), "configs": {"retention.ms": "3600000"}}})
        way.settle()
        seen["described"] = described(admin, topic)
        seen["config"] = config(admin, topic)
        seen["cluster"] = brokers(admin, way)

        seen["delivered"] = produce(way, topic)
        group = f"{topic}-group"
        seen["consumed"] = consume(way, topic, group, RECORDS)
        offsets = admin.list_group_offsets({group: None})[group]
        seen["committed"] = {partition.partition: each.offset for partition, each in offsets.items()}
        seen["group"] = admin.describe_groups([group])[group]["group_state"]
        seen["group deleted"] = [str(each) for each in admin.delete_groups([group]).values()]

        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "7200000"})
        admin.alter_configs([resource])
        way.settle()
        seen["altered"] = config(admin, topic)

        admin.create_partitions({topic: {"count": 5, "assignments": [[1, 2], [2, 3]]}})
        way.settle()
        seen["widened"] = described(admin, topic)

        seen["acls"] = acls(admin, way, topic)
        credential = UserScramCredentialUpsertion(topic, ScramMechanism.SCRAM_SHA_256, "secret", iterations=4096)
        admin.alter_user_scram_credentials([credential])
        way.settle()
        seen["scram"] = admin.describe_user_scram_credentials([topic])[topic]

        admin.delete_topics([topic])
        way.settle()
        seen["still there"] = topic in admin.list_topics()
        return seen
    finally:
        admin.close()


def transactions(way: Way, topic: str) -> dict[str, Any]:
    """One transaction committed, one aborted, one more committed; what a reader of committed records sees of them."""
    admin = KafkaAdminClient(bootstrap_servers=way.bootstrap)
    admin.create_topics({topic: {"assignments": assignment()}})
    way.settle()
    producer = KafkaProducer(bootstrap_servers=way.bootstrap, transactional_id=topic)
    try:
        producer.init_transactions()
        for word, ends in (
            ("first", producer.commit_transaction),
            ("second", producer.abort_transaction),
            ("third", producer.commit_transaction),
        ):
            producer.begin_transaction()
            sent = [producer.send(topic, f"{word}-{i}".encode(), partition=partition_of(i)) for i in range(100)]
            for future in sent:
                future.get(TIMEOUT_S)
            ends()
    finally:
        producer.close()
    seen = {"committed": consume(way, topic, f"{topic}-c", 200, isolation_level="read_committed")}
    seen["everything"] = consume(way, topic, f"{topic}-u", 300, isolation_level="read_uncommitted")
    ends_at = KafkaConsumer(bootstrap_servers=way.bootstrap, group_id=None)
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    try:
        found = ends_at.end_offsets(parts)
    finally:
        ends_at.close()
        admin.close()
    return {"read": seen, "ends": {part.partition: offset for part, offset in found.items()}}


def test_from_create_to_delete(ways: Iterable[Way], topic_name: str) -> None:
    direct, through = (administer_and_exchange(way, f"{topic_name}-{way.name}") for way in ways)
    assert through == direct
    expected = [[value_of(i) for i in range(p, RECORDS, PARTITIONS)] for p in range(PARTITIONS)]
    assert through["consumed"] == expected
    assert through["cluster"][1] == ["node 1", "node 2", "node 3"]
    assert (through["config"], through["altered"]) == ({"retention.ms": "3600000"}, {"retention.ms": "7200000"})
    assert through["acls"] == [["User:carol READ True"], []]
    assert not through["still there"]


def test_transactions(ways: Iterable[Way], topic_name: str) -> None:
    direct, through = (transactions(way, f"{topic_name}-{way.name}") for way in ways)
    assert through == direct
    values = [value for partition in through["read"]["committed"] for value in partition]
    assert {value.partition(b"-")[0] for value in values} == {b"first", b"third"}
    assert len(values) == 200
