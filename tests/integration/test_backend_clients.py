"""The Python clients against the embedded cluster, straight and through the sidecar: same answers, good and bad input.

One broker lags by 150 ms. Straight at it the scripts wait for all brokers between a write and its read; through the
sidecar they wait for nothing.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import aiokafka.admin
import confluent_kafka
import kafka.admin
import pytest
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka import admin as confluent
from kafka.errors import KafkaError

from backend.app import embedded
from tests.support.backend import BackendThread
from tests.support.sidecar import SidecarProcess
from tests.support.ways import PARTITIONS, Way, assignment

TIMEOUT_S: Final = 30.0
LAG_MS: Final = 150
REPLICAS: Final = {partition: sorted(replicas) for partition, replicas in assignment().items()}

T = TypeVar("T")


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Way, Way]]:
    """Straight to a cluster, and to it through a sidecar."""
    with BackendThread(embedded()) as cluster:
        cluster.lag(3, LAG_MS)
        with SidecarProcess(cluster.bootstrap, settings={"limits": {"drain_timeout_ms": 1000}}) as sidecar:
            through = Way(
                name="sidecar",
                bootstrap=str(sidecar.bootstrap),
                nodes=sidecar.nodes,
                settle=lambda: None,
                settle_access=lambda: None,
            )
            yield cluster.way(), through


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"orders-{secrets.token_hex(4)}"


def both(ways: tuple[Way, Way], script: Callable[[Way, str], dict[str, Any]], topic: str) -> dict[str, Any]:
    """What the script saw, which must be the same on both ways."""
    direct, through = (script(way, f"{topic}-{way.name}") for way in ways)
    assert through == direct
    return direct


def masked(text: object, topic: str) -> str:
    """What was said, without the topic's name."""
    return str(text).replace(topic, "TOPIC")


# confluent-kafka


def only(futures: dict[Any, "Future[T]"]) -> T:
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def refusal(call: Callable[[], object], topic: str) -> tuple[str, str]:
    """The error that a call of confluent-kafka ends with."""
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        call()
    error = caught.value.args[0]
    return error.name(), masked(error.str(), topic)


def with_confluent_kafka(way: Way, topic: str) -> dict[str, Any]:
    admin = confluent.AdminClient({"bootstrap.servers": way.bootstrap})
    resource = confluent.ConfigResource(confluent.ConfigResource.Type.TOPIC, topic)
    seen: dict[str, Any] = {}

    replicas = list(assignment().values())
    new = confluent.NewTopic(topic, PARTITIONS, replica_assignment=replicas, config={"retention.ms": "3600000"})
    only(admin.create_topics([new]))
    way.settle()
    listed = admin.list_topics(topic, timeout=TIMEOUT_S)
    seen["brokers"] = sorted(way.place(broker.id, broker.host, broker.port) for broker in listed.brokers.values())
    seen["leaders"] = {number: partition.leader for number, partition in listed.topics[topic].partitions.items()}
    described = only(admin.describe_topics(confluent_kafka.TopicCollection([topic])))
    seen["described"] = {p.id: sorted(node.id for node in p.replicas) for p in described.partitions}
    cluster = admin.describe_cluster().result(TIMEOUT_S)
    seen["cluster"] = [cluster.cluster_id, sorted(way.place(n.id, n.host, n.port) for n in cluster.nodes)]
    seen["config"] = only(admin.describe_configs([resource]))["retention.ms"].value
    change = confluent.AlterConfigOpType.SET
    resource.add_incremental_config(confluent.ConfigEntry("retention.ms", "7200000", incremental_operation=change))
    only(admin.incremental_alter_configs([resource]))
    way.settle()
    seen["altered"] = only(admin.describe_configs([resource]))["retention.ms"].value
    only(admin.create_partitions([confluent.NewPartitions(topic, 5)]))
    way.settle()
    seen["partitions"] = len(only(admin.describe_topics(confluent_kafka.TopicCollection([topic]))).partitions)
    seen["acls"] = confluent_acls(admin, way, topic)
    info = confluent.ScramCredentialInfo(confluent.ScramMechanism.SCRAM_SHA_256, 4096)
    only(admin.alter_user_scram_credentials([confluent.UserScramCredentialUpsertion(topic, info, b"secret")]))
    way.settle()
    scram = only(admin.describe_user_scram_credentials([topic])).scram_credential_infos
    seen["scram"] = [(each.mechanism.name, each.iterations) for each in scram]
    seen["groups"] = admin.list_consumer_groups().result(TIMEOUT_S).valid

    seen["exists"] = refusal(lambda: only(admin.create_topics([new])), topic)
    wide = confluent.NewTopic(f"{topic}-wide", 1, 9)
    seen["too wide"] = refusal(lambda: only(admin.create_topics([wide])), topic)
    odd = confluent.NewTopic(f"{topic}-odd", 1, config={"retention.mss": "5"})
    seen["unknown config"] = refusal(lambda: only(admin.create_topics([odd])), topic)
    seen["bad name"] = refusal(lambda: only(admin.create_topics([confluent.NewTopic("a/b", 1)])), topic)
    seen["fewer"] = refusal(lambda: only(admin.create_partitions([confluent.NewPartitions(topic, 2)])), topic)
    absent = confluent.ConfigResource(confluent.ConfigResource.Type.TOPIC, f"{topic}-absent")
    seen["absent config"] = refusal(lambda: only(admin.describe_configs([absent])), topic)
    seen["absent"] = refusal(lambda: only(admin.delete_topics([f"{topic}-absent"])), topic)

    only(admin.delete_topics([topic]))
    way.settle()
    seen["still there"] = topic in admin.list_topics(timeout=TIMEOUT_S).topics
    return seen


def confluent_acls(admin: confluent.AdminClient, way: Way, topic: str) -> list[list[str]]:
    """Grant, read back, revoke, read back."""
    allow = (confluent.AclOperation.READ, confluent.AclPermissionType.ALLOW)
    common = (confluent.ResourceType.TOPIC, topic, confluent.ResourcePatternType.LITERAL, "User:carol", "*", *allow)

    def read() -> list[str]:
        way.settle_access()
        found = admin.describe_acls(confluent.AclBindingFilter(*common)).result(TIMEOUT_S)
        return [f"{acl.principal} {acl.operation.name} {acl.name == topic}" for acl in found]

    only(admin.create_acls([confluent.AclBinding(*common)]))
    granted = read()
    only(admin.delete_acls([confluent.AclBindingFilter(*common)]))
    return [granted, read()]


def test_confluent_kafka(ways: tuple[Way, Way], topic: str) -> None:
    seen = both(ways, with_confluent_kafka, topic)
    assert seen["brokers"] == ["node 1", "node 2", "node 3"]
    assert seen["cluster"] == ["tidegate-embedded", ["node 1", "node 2", "node 3"]]
    assert (seen["leaders"], seen["described"]) == ({0: 1, 1: 2, 2: 3}, REPLICAS)
    assert (seen["config"], seen["altered"], seen["partitions"]) == ("3600000", "7200000", 5)
    assert seen["acls"] == [["User:carol READ True"], []]
    assert (seen["scram"], seen["groups"], seen["still there"]) == ([("SCRAM_SHA_256", 4096)], [], False)
    assert {name: seen[name][0] for name in ("exists", "too wide", "unknown config", "bad name", "fewer")} == {
        "exists": "TOPIC_ALREADY_EXISTS",
        "too wide": "INVALID_REPLICATION_FACTOR",
        "unknown config": "INVALID_CONFIG",
        "bad name": "TOPIC_EXCEPTION",
        "fewer": "INVALID_PARTITIONS",
    }
    assert seen["exists"][1] == "Topic 'TOPIC' already exists."
    assert seen["absent"][0] == seen["absent config"][0] == "UNKNOWN_TOPIC_OR_PART"


# kafka-python


def kafka_python_refusal(call: Callable[[], object], topic: str) -> tuple[str, str]:
    """The error that a call of kafka-python ends with."""
    with pytest.raises(KafkaError) as caught:
        call()
    return type(caught.value).__name__, masked(caught.value, topic)


def with_kafka_python(way: Way, topic: str) -> dict[str, Any]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=way.bootstrap)
    try:
        seen: dict[str, Any] = {}
        new = {topic: {"assignments": assignment(), "configs": {"retention.ms": "3600000"}}}
        admin.create_topics(new)
        way.settle()
        (described,) = admin.describe_topics([topic])
        seen["described"] = {p["partition_index"]: sorted(p["replica_nodes"]) for p in described["partitions"]}
        cluster = admin.describe_cluster()
        places = sorted(way.place(b["broker_id"], b["host"], b["port"]) for b in cluster["brokers"])
        seen["cluster"] = [cluster["cluster_id"], places]
        seen["config"] = kafka_python_config(admin, topic)
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic, {"retention.ms": "7200000"})
        admin.alter_configs([resource])
        way.settle()
        seen["altered"] = kafka_python_config(admin, topic)
        admin.create_partitions({topic: {"count": 5, "assignments": [[1, 2], [2, 3]]}})
        way.settle()
        seen["partitions"] = len(admin.describe_topics([topic])[0]["partitions"])
        seen["acls"] = kafka_python_acls(admin, way, topic)
        sha = kafka.admin.ScramMechanism.SCRAM_SHA_256
        upsertion = kafka.admin.UserScramCredentialUpsertion(topic, sha, "secret", iterations=4096)
        admin.alter_user_scram_credentials([upsertion])
        way.settle()
        seen["scram"] = admin.describe_user_scram_credentials([topic])[topic]
        seen["groups"] = admin.list_groups()

        seen["exists"] = kafka_python_refusal(lambda: admin.create_topics(new), topic)
        seen["too wide"] = kafka_python_refusal(
            lambda: admin.create_topics({f"{topic}-wide": {"num_partitions": 1, "replication_factor": 9}}), topic
        )
        seen["absent"] = kafka_python_refusal(lambda: admin.delete_topics([f"{topic}-absent"]), topic)

        admin.delete_topics([topic])
        way.settle()
        seen["still there"] = topic in admin.list_topics()
        return seen
    finally:
        admin.close()


def kafka_python_config(admin: Any, topic: str) -> str:
    resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
    value: str = admin.describe_configs([resource])["topic"][topic]["retention.ms"]["value"]
    return value


def kafka_python_acls(admin: Any, way: Way, topic: str) -> list[list[str]]:
    """Grant, read back, revoke, read back."""
    pattern = kafka.admin.ResourcePattern(kafka.admin.ResourceType.TOPIC, topic)
    allow = (kafka.admin.ACLOperation.READ, kafka.admin.ACLPermissionType.ALLOW)
    common = ("User:carol", "*", *allow, pattern)

    def read() -> list[str]:
        way.settle_access()
        found, _ = admin.describe_acls(kafka.admin.ACLFilter(*common))
        return [f"{acl.principal} {acl.operation.name} {acl.resource_pattern.resource_name == topic}" for acl in found]

    assert admin.create_acls([kafka.admin.ACL(*common)])["failed"] == []
    granted = read()
    admin.delete_acls([kafka.admin.ACLFilter(*common)])
    return [granted, read()]


def test_kafka_python(ways: tuple[Way, Way], topic: str) -> None:
    seen = both(ways, with_kafka_python, topic)
    assert seen["described"] == REPLICAS
    assert seen["cluster"] == ["tidegate-embedded", ["node 1", "node 2", "node 3"]]
    assert (seen["config"], seen["altered"], seen["partitions"]) == ("3600000", "7200000", 5)
    assert seen["acls"] == [["User:carol READ True"], []]
    assert (seen["groups"], seen["still there"]) == ([], False)
    assert "4096" in str(seen["scram"])
    assert [seen[name][0] for name in ("exists", "too wide", "absent")] == [
        "TopicAlreadyExistsError",
        "InvalidReplicationFactorError",
        "UnknownTopicOrPartitionError",
    ]


# aiokafka


async def with_aiokafka(way: Way, topic: str) -> dict[str, Any]:
    admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=way.bootstrap)
    await admin.start()
    try:
        seen: dict[str, Any] = {}
        new = aiokafka.admin.NewTopic(topic, -1, -1, assignment(), {"retention.ms": "3600000"})
        seen["created"] = aiokafka_errors(await admin.create_topics([new]))
        await asyncio.to_thread(way.settle)
        (described,) = await admin.describe_topics([topic])
        seen["described"] = {p["partition"]: sorted(p["replicas"]) for p in described["partitions"]}
        cluster = await admin.describe_cluster()
        places = sorted(way.place(b["node_id"], b["host"], b["port"]) for b in cluster["brokers"])
        seen["cluster"] = [cluster["cluster_id"], places]
        seen["config"] = await aiokafka_config(admin, topic)
        change = AioConfigResource(AioConfigResourceType.TOPIC, topic, {"retention.ms": "7200000"})
        await admin.alter_configs([change])
        await asyncio.to_thread(way.settle)
        seen["altered"] = await aiokafka_config(admin, topic)
        await admin.create_partitions({topic: aiokafka.admin.NewPartitions(5, [[1, 2], [2, 3]])})
        await asyncio.to_thread(way.settle)
        seen["partitions"] = len((await admin.describe_topics([topic]))[0]["partitions"])
        seen["groups"] = await admin.list_consumer_groups()
        seen["exists"] = aiokafka_errors(await admin.create_topics([new]))
        wide = aiokafka.admin.NewTopic(f"{topic}-wide", 1, 9)
        seen["too wide"] = aiokafka_errors(await admin.create_topics([wide]))
        seen["deleted"] = aiokafka_errors(await admin.delete_topics([topic]))
        await asyncio.to_thread(way.settle)
        seen["still there"] = topic in await admin.list_topics()
        seen["absent"] = aiokafka_errors(await admin.delete_topics([topic]))
        return seen
    finally:
        await admin.close()


def aiokafka_errors(answer: Any) -> list[int]:
    """The error codes of an answer about topics; aiokafka leaves them to the caller."""
    (rows,) = [rows for name, rows in answer.to_object().items() if name.startswith("topic")]
    return [row["error_code"] for row in rows]


async def aiokafka_config(admin: Any, topic: str) -> str:
    (answer,) = await admin.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, topic)])
    (resource,) = answer.to_object()["resources"]
    (value,) = [e["config_value"] for e in resource["config_entries"] if e["config_names"] == "retention.ms"]
    return str(value)


def test_aiokafka(ways: tuple[Way, Way], topic: str) -> None:
    seen = both(ways, lambda way, name: asyncio.run(with_aiokafka(way, name)), topic)
    assert seen["described"] == REPLICAS
    assert seen["cluster"] == ["tidegate-embedded", ["node 1", "node 2", "node 3"]]
    assert (seen["config"], seen["altered"], seen["partitions"]) == ("3600000", "7200000", 5)
    assert (seen["created"], seen["deleted"], seen["groups"], seen["still there"]) == ([0], [0], [], False)
    assert (seen["exists"], seen["too wide"], seen["absent"]) == ([36], [38], [3])
