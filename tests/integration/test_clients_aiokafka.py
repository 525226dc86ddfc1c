"""aiokafka, straight and through the sidecar: the same script, the same results."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.support.ways import PARTITIONS, RECORDS, Way, assignment, partition_of, value_of

pytestmark = pytest.mark.kafka

TIMEOUT_S = 60.0


def error_codes(answer: Any) -> list[int]:
    """The error codes of an answer about topics; aiokafka leaves them to the caller."""
    body = answer.to_object()
    (rows,) = [rows for name, rows in body.items() if name.startswith("topic")]
    return [row["error_code"] for row in rows]


async def described(admin: Any, topic: str) -> list[Any]:
    """Partition, leader and replicas."""
    (found,) = await admin.describe_topics([topic])
    return sorted([p["partition"], p["leader"], p["replicas"]] for p in found["partitions"])


async def config(admin: Any, topic: str) -> dict[str, str]:
    """The retention of this topic."""
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    (resource,) = answer.to_object()["resources"]
    return {
        e["config_names"]: e["config_value"] for e in resource["config_entries"] if e["config_names"] == "retention.ms"
    }


async def produce(way: Way, topic: str, **settings: Any) -> dict[int, int]:
    """Produce all records; the number delivered for each partition."""
    async with AIOKafkaProducer(bootstrap_servers=way.bootstrap, linger_ms=5, **settings) as producer:
        sent = [await producer.send(topic, value_of(i), partition=partition_of(i)) for i in range(RECORDS)]
        partitions = [record.partition for record in await asyncio.gather(*sent)]
    return {partition: partitions.count(partition) for partition in range(PARTITIONS)}


async def consume(way: Way, topic: str, group: str, count: int, **settings: Any) -> list[list[bytes]]:
    """Consume `count` records as a member of a group and commit; the values of each partition in order."""
    seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=way.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    async with consumer, asyncio.timeout(TIMEOUT_S):
        while sum(map(len, seen)) < count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    seen[record.partition].append(record.value)
        await consumer.commit()
    return seen


async def administer_and_exchange(way: Way, topic: str) -> dict[str, Any]:
    """Everything that aiokafka can do with a topic, from its creation to its end."""
    admin = AIOKafkaAdminClient(bootstrap_servers=way.bootstrap)
    await admin.start()
    try:
        seen: dict[str, Any] = {}
        topic_with_config = NewTopic(topic, -1, -1, assignment(), {"retention.ms": "3600000"})
        seen["created"] = error_codes(await admin.create_topics([topic_with_config]))
        await asyncio.to_thread(way.settle)
        seen["described"] = await described(admin, topic)
        seen["config"] = await config(admin, topic)
        cluster = await admin.describe_cluster()
        seen["cluster"] = [
            cluster["cluster_id"],
            sorted(way.place(broker["node_id"], broker["host"], broker["port"]) for broker in cluster["brokers"]),
        ]

        seen["delivered"] = await produce(way, topic)
        group = f"{topic}-group"
        seen["consumed"] = await consume(way, topic, group, RECORDS)
        offsets = await admin.list_consumer_group_offsets(group)
        seen["committed"] = {partition.partition: each.offset for partition, each in offsets.items()}

        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "7200000"})])
        await asyncio.to_thread(way.settle)
        seen["altered"] = await config(admin, topic)

        await admin.create_partitions({topic: NewPartitions(5, [[1, 2], [2, 3]])})
        await asyncio.to_thread(way.settle)
        seen["widened"] = await described(admin, topic)

        seen["deleted"] = error_codes(await admin.delete_topics([topic]))
        await asyncio.to_thread(way.settle)
        seen["still there"] = topic in await admin.list_topics()
        return seen
    finally:
        await admin.close()


async def transactions(way: Way, topic: str) -> dict[str, Any]:
    """One transaction committed, one aborted, one more committed; what a reader of committed records sees of them."""
    admin = AIOKafkaAdminClient(bootstrap_servers=way.bootstrap)
    await admin.start()
    try:
        assert error_codes(await admin.create_topics([NewTopic(topic, -1, -1, assignment())])) == [0]
    finally:
        await admin.close()
    await asyncio.to_thread(way.settle)
    async with AIOKafkaProducer(bootstrap_servers=way.bootstrap, transactional_id=topic) as producer:
        for word, commits in (("first", True), ("second", False), ("third", True)):
            await producer.begin_transaction()
            sent = [await producer.send(topic, f"{word}-{i}".encode(), partition=partition_of(i)) for i in range(100)]
            await asyncio.gather(*sent)
            await (producer.commit_transaction() if commits else producer.abort_transaction())
    return {
        "committed": await consume(way, topic, f"{topic}-c", 200, isolation_level="read_committed"),
        "everything": await consume(way, topic, f"{topic}-u", 300, isolation_level="read_uncommitted"),
    }


async def test_from_create_to_delete(ways: Iterable[Way], topic_name: str) -> None:
    direct, through = [await administer_and_exchange(way, f"{topic_name}-{way.name}") for way in ways]
    assert through == direct
    expected = [[value_of(i) for i in range(p, RECORDS, PARTITIONS)] for p in range(PARTITIONS)]
    assert through["consumed"] == expected
    assert (through["created"], through["deleted"]) == ([0], [0])
    assert through["cluster"][1] == ["node 1", "node 2", "node 3"]
    assert (through["config"], through["altered"]) == ({"retention.ms": "3600000"}, {"retention.ms": "7200000"})
    assert not through["still there"]


async def test_transactions(ways: Iterable[Way], topic_name: str) -> None:
    direct, through = [await transactions(way, f"{topic_name}-{way.name}") for way in ways]
    assert through == direct
    values = [value for partition in through["committed"] for value in partition]
    assert {value.partition(b"-")[0] for value in values} == {b"first", b"third"}
    assert len(values) == 200
