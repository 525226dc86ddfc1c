"""Speaks to a Kafka with librdkafka, through confluent-kafka: `python -m ... BOOTSTRAP TOPIC`."""

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, Producer
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
)

from tests.support.capture.python.calls import call, client

TIMEOUT_S = 30


def main() -> None:
    """Make every call once."""
    versions = f"{confluent_kafka.libversion()[0]} (confluent-kafka {confluent_kafka.__version__})"
    bootstrap, topic = client("librdkafka", versions)
    settings = {"bootstrap.servers": bootstrap, "client.id": "capture", "enable.metrics.push": False}
    call("list_topics")
    admin = AdminClient(settings)
    admin.list_topics(timeout=TIMEOUT_S)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    change = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:carol", "*")
    acl = AclBinding(*place, AclOperation.READ, AclPermissionType.ALLOW)
    wanted = AclBindingFilter(*place, AclOperation.READ, AclPermissionType.ALLOW)
    calls: dict[str, Callable[[], Any]] = {
        "create_topics": lambda: admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "3600000"})]),
        "describe_configs": lambda: admin.describe_configs([resource]),
        "incremental_alter_configs": lambda: admin.incremental_alter_configs([changed]),
        "create_partitions": lambda: admin.create_partitions([NewPartitions(topic, 3)]),
        "describe_cluster": lambda: {"": admin.describe_cluster()},
        "create_acls": lambda: admin.create_acls([acl]),
        "describe_acls": lambda: {"": admin.describe_acls(wanted)},
        "delete_acls": lambda: admin.delete_acls([wanted]),
        "describe_user_scram_credentials": lambda: {"": admin.describe_user_scram_credentials()},
    }
    for name, start in calls.items():
        call(name)
        for future in start().values():
            future.result(TIMEOUT_S)
    call("produce")
    producer = Producer(settings)
    producer.produce(topic, key=b"k", value=b"v", headers={"h": b"x"})
    assert producer.flush(TIMEOUT_S) == 0
    call("poll")
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert consumer.poll(TIMEOUT_S) is not None
    consumer.close()
    call("delete_topics")
    for future in admin.delete_topics([topic]).values():
        future.result(TIMEOUT_S)


if __name__ == "__main__":
    main()
