"""Speaks to a Kafka with kafka-python: `python -m ... BOOTSTRAP TOPIC`."""

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ResourcePattern,
    ResourceType,
)

from tests.support.capture.python.calls import call, client

TIMEOUT_S = 30


def main() -> None:
    """Make every call once."""
    bootstrap, topic = client("kafka-python", kafka.__version__)
    call("KafkaAdminClient")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="capture")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7200000"})
    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    acl = ACL("User:carol", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
    wanted = ACLFilter("User:carol", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
    new = NewTopic(topic, 2, 1, topic_configs={"retention.ms": "3600000"})
    calls = {
        "list_topics": admin.list_topics,
        "create_topics": lambda: admin.create_topics([new]),
        "describe_topics": lambda: admin.describe_topics([topic]),
        "describe_configs": lambda: admin.describe_configs([resource]),
        "alter_configs": lambda: admin.alter_configs([changed]),
        "create_partitions": lambda: admin.create_partitions({topic: 3}),
        "describe_cluster": admin.describe_cluster,
        "create_acls": lambda: admin.create_acls([acl]),
        "describe_acls": lambda: admin.describe_acls(wanted),
        "delete_acls": lambda: admin.delete_acls([wanted]),
        "describe_user_scram_credentials": admin.describe_user_scram_credentials,
        "describe_log_dirs": admin.describe_log_dirs,
        "describe_metadata_quorum": admin.describe_metadata_quorum,
        "list_partition_reassignments": admin.list_partition_reassignments,
    }
    for name, run in calls.items():
        call(name)
        run()
    call("send")
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="capture")
    producer.send(topic, b"v", key=b"k").get(TIMEOUT_S)
    producer.close()
    call("poll")
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, client_id="capture", group_id=topic, auto_offset_reset="earliest"
    )
    assert next(consumer) is not None
    consumer.close()
    call("delete_topics")
    admin.delete_topics([topic])
    admin.close()


if __name__ == "__main__":
    main()
