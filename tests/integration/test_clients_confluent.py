"""confluent-kafka (librdkafka), straight and through the sidecar: the same script, the same results."""

import time
import uuid
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.ways import PARTITIONS, RECORDS, Way, assignment, partition_of, value_of

pytestmark = pytest.mark.kafka

TIMEOUT_S = 60.0

T = TypeVar("T")


def only(futures: dict[Any, "Future[T]"]) -> T:
    """The result of the one future that an admin call returned."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def described(admin: AdminClient, way: Way, topic: str) -> list[Any]:
    """Partition, leader and replicas as `describe_topics` shows them."""
    answer = only(admin.describe_topics(TopicCollection([topic])))
    return [
        [
            partition.id,
            way.place(partition.leader.id, partition.leader.host, partition.leader.port),
            [way.place(node.id, node.host, node.port) for node in partition.replicas],
        ]
        for partition in answer.partitions
    ]


def listed(admin: AdminClient, way: Way, topic: str) -> dict[str, Any]:
    """The same and the brokers by the older `list_topics`, which is what every client of librdkafka starts from."""
    metadata = admin.list_topics(topic, timeout=TIMEOUT_S)
    return {
        "brokers": sorted(way.place(broker.id, broker.host, broker.port) for broker in metadata.brokers.values()),
        "leaders": {number: partition.leader for number, partition in metadata.topics[topic].partitions.items()},
    }


def config(admin: AdminClient, topic: str) -> dict[str, str]:
    """What was set for this topic itself."""
    entries = only(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
    return {name: entry.value for name, entry in entries.items() if not entry.is_default and "retention" in name}


def produce(way: Way, topic: str, **settings: object) -> dict[int, int]:
    """Produce all records; the number delivered for each partition."""
    delivered: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
    failed: list[str] = []

    def on_delivery(error: Any, message: Any) -> None:
        if error is None:
            delivered[message.partition()] += 1
        else:
            failed.append(str(error))

    with KafkaProducer({"bootstrap.servers": way.bootstrap, **settings}) as producer:
        for index in range(RECORDS):
            producer.produce(topic, value_of(index), partition=partition_of(index), on_delivery=on_delivery)
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0
    assert failed == []
    return delivered


def consume(way: Way, topic: str, group: str, count: int, **settings: object) -> list[list[bytes]]:
    """Consume `count` records as a member of a group and commit; the values of each partition in order."""
    seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    consumer = KafkaConsumer(
        {
            "bootstrap.servers": way.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    try:
        consumer.subscribe([topic])
        deadline_s = time.monotonic() + TIMEOUT_S
        while sum(map(len, seen)) < count and time.monotonic() < deadline_s:
            for message in consumer.consume(1000, 1.0):
                assert message.error() is None, message.error()
                seen[message.partition()].append(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return seen


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    """The offsets that a group has committed."""
    found = only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], require_stable=True))
    return {each.partition: each.offset for each in found.topic_partitions}


def administer_and_exchange(way: Way, topic: str) -> dict[str, Any]:
    """Everything that an application and its operator do with a topic, from its creation to its end."""
    admin = AdminClient({"bootstrap.servers": way.bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    seen: dict[str, Any] = {}

    replicas = list(assignment().values())
    only(
        admin.create_topics(
            [NewTopic(topic, PARTITIONS, replica_assignment=replicas, config={"retention.ms": "3600000"})]
        )
    )
    way.settle()
    seen["listed"] = listed(admin, way, topic)
    seen["described"] = described(admin, way, topic)
    seen["config"] = config(admin, topic)
    cluster = admin.describe_cluster().result(TIMEOUT_S)
    seen["cluster"] = [cluster.cluster_id, sorted(way.place(n.id, n.host, n.port) for n in cluster.nodes)]

    seen["delivered"] = produce(way, topic)
    group = f"{topic}-group"
    seen["consumed"] = consume(way, topic, group, RECORDS)
    seen["committed"] = committed(admin, group)
    state = only(admin.describe_consumer_groups([group]))
    seen["group"] = [
        state.state.name,
        way.nodes[state.coordinator.id] == (state.coordinator.host, state.coordinator.port),
    ]
    only(admin.delete_consumer_groups([group]))
    # The group protocol of KIP-848, where the broker assigns the partitions.
    seen["consumed 848"] = consume(way, topic, f"{topic}-848", RECORDS, **{"group.protocol": "consumer"})
    seen["committed 848"] = committed(admin, f"{topic}-848")

    change = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(change)
    only(admin.incremental_alter_configs([resource]))
    way.settle()
    seen["altered"] = config(admin, topic)

    only(admin.create_partitions([NewPartitions(topic, 5, [[1, 2], [2, 3]])]))
    way.settle()
    seen["widened"] = described(admin, way, topic)

    seen["acls"] = acls(admin, way, topic)
    seen["scram"] = scram(admin, way, topic)

    only(admin.delete_topics([topic]))
    way.settle()
    seen["still there"] = topic in admin.list_topics(timeout=TIMEOUT_S).topics
    return seen


def acls(admin: AdminClient, way: Way, topic: str) -> list[list[str]]:
    """Grant, read back, revoke, read back."""
    common = (ResourcePatternType.LITERAL, "User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW)
    wanted = AclBindingFilter(ResourceType.TOPIC, topic, *common)

    def read() -> list[str]:
        way.settle_access()
        found = admin.describe_acls(wanted).result(TIMEOUT_S)
        return [f"{acl.principal} {acl.operation.name} {acl.name == topic}" for acl in found]

    only(admin.create_acls([AclBinding(ResourceType.TOPIC, topic, *common)]))
    granted = read()
    only(admin.delete_acls([wanted]))
    return [granted, read()]


def scram(admin: AdminClient, way: Way, user: str) -> list[Any]:
    """Set a credential and read it back."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    only(admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, b"secret")]))
    way.settle()
    found = only(admin.describe_user_scram_credentials([user]))
    return [(each.mechanism.name, each.iterations) for each in found.scram_credential_infos]


def transactions(way: Way, topic: str) -> dict[str, Any]:
    """One transaction committed, one aborted, one more committed; what a reader of committed records sees of them."""
    admin = AdminClient({"bootstrap.servers": way.bootstrap})
    only(admin.create_topics([NewTopic(topic, PARTITIONS, replica_assignment=list(assignment().values()))]))
    way.settle()
    with KafkaProducer({"bootstrap.servers": way.bootstrap, "transactional.id": topic}) as producer:
        producer.init_transactions(TIMEOUT_S)
        for word, ends in (
            ("first", producer.commit_transaction),
            ("second", producer.abort_transaction),
            ("third", producer.commit_transaction),
        ):
            producer.begin_transaction()
            for index in range(100):
                producer.produce(topic, f"{word}-{index}", partition=partition_of(index))
            assert producer.flush(TIMEOUT_S) == 0
            ends(TIMEOUT_S)
        seen = {"committed": consume(way, topic, f"{topic}-c", 200, **{"isolation.level": "read_committed"})}
        seen["everything"] = consume(way, topic, f"{topic}-u", 300, **{"isolation.level": "read_uncommitted"})

        # Consume, transform, produce: the offsets of the group are part of the transaction.
        producer.begin_transaction()
        producer.produce(topic, "fourth", partition=0)
        consumer = KafkaConsumer({"bootstrap.servers": way.bootstrap, "group.id": f"{topic}-t"})
        offsets = [TopicPartition(topic, 0, 7)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)
        consumer.close()
    # The transaction has ended once its markers are written, a moment after the producer is told so.
    deadline_s = time.monotonic() + TIMEOUT_S
    while not (offsets_seen := committed(admin, f"{topic}-t")) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return seen | {"offsets": [offsets_seen]}


def fenced(way: Way, topic: str) -> str:
    """What a transactional producer is told once another one has taken its id."""
    admin = AdminClient({"bootstrap.servers": way.bootstrap})
    only(admin.create_topics([NewTopic(topic, 1)]))
    way.settle()
    settings = {"bootstrap.servers": way.bootstrap, "transactional.id": topic}
    # A fenced producer cannot be closed in good order; it ends when nothing refers to it any more.
    first = KafkaProducer(settings)
    first.init_transactions(TIMEOUT_S)
    with KafkaProducer(settings) as second:
        second.init_transactions(TIMEOUT_S)
        first.begin_transaction()
        first.produce(topic, "late")
        try:
            first.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            return str(error.args[0].name())
    return "committed"


def test_from_create_to_delete(ways: Iterable[Way], topic_name: str) -> None:
    direct, through = (administer_and_exchange(way, f"{topic_name}-{way.name}") for way in ways)
    assert through == direct
    expected = [[value_of(i) for i in range(p, RECORDS, PARTITIONS)] for p in range(PARTITIONS)]
    assert through["consumed"] == through["consumed 848"] == expected
    assert through["listed"]["brokers"] == ["node 1", "node 2", "node 3"]
    assert (through["config"], through["altered"]) == ({"retention.ms": "3600000"}, {"retention.ms": "7200000"})
    assert through["acls"] == [["User:carol READ True"], []]
    assert not through["still there"]


def test_transactions(ways: Iterable[Way], topic_name: str) -> None:
    direct, through = (transactions(way, f"{topic_name}-{way.name}") for way in ways)
    assert through == direct
    words = [[value.partition(b"-")[0] for value in values] for values in through["committed"]]
    assert {word for values in words for word in values} == {b"first", b"third"}
    assert sum(map(len, words)) == 200
    assert through["offsets"] == [{0: 7}]


def test_a_producer_whose_id_was_taken_is_fenced(ways: Iterable[Way]) -> None:
    direct, through = (fenced(way, f"fenced-{uuid.uuid4().hex[:8]}") for way in ways)
    assert through == direct == "_FENCED"
