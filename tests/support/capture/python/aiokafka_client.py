"""Speaks to a Kafka with aiokafka: `python -m ... BOOTSTRAP TOPIC`."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.support.capture.python.calls import call, client

TIMEOUT_S = 30


async def main() -> None:
    """Make every call once."""
    bootstrap, topic = client("aiokafka", aiokafka.__version__)
    call("start")
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, client_id="capture")
    await admin.start()
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7200000"})
    call("list_topics")
    await admin.list_topics()
    call("create_topics")
    await admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "3600000"})])
    call("describe_configs")
    await admin.describe_configs([resource])
    call("alter_configs")
    await admin.alter_configs([changed])
    call("create_partitions")
    await admin.create_partitions({topic: NewPartitions(3)})
    call("describe_cluster")
    await admin.describe_cluster()
    call("send_and_wait")
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="capture")
    await producer.start()
    await producer.send_and_wait(topic, b"v", key=b"k", headers=[("h", b"x")])
    await producer.stop()
    call("getone")
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, client_id="capture", group_id=topic, auto_offset_reset="earliest"
    )
    await consumer.start()
    await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
    await consumer.stop()
    call("delete_topics")
    await admin.delete_topics([topic])
    await admin.close()


if __name__ == "__main__":
    asyncio.run(main())
