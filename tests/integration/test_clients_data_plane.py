"""Produce and fetch beyond the ordinary, straight and through the sidecar: silent, large, idempotent, many at once."""

import asyncio
import hashlib
import random
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka import TopicPartition
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse

from tests.support import raw_topics
from tests.support.kafka import KafkaCluster
from tests.support.raw_client import API_VERSIONS, RawConnection, encode_request
from tests.support.raw_records import batch, fetch, fetch_request, produce_request, response_type, values_in
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin
from tests.support.ways import Way

pytestmark = pytest.mark.kafka

TIMEOUT_S = 60.0
RECORDS = 10_000
LARGE_BYTES = 5_000_000
LARGE_BYTES_MAX = 6_000_000
CONNECTIONS = 300
# One version of each layout in which `acks` has another place.
SILENT_VERSIONS = (3, 8, 9, 12, 13)
WHOLE_CLUSTER = MetadataRequest(topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False)


def new_topic(kafka: KafkaCluster, topic: str, **config: str) -> raw_topics.Partition:
    """A topic of one partition that broker 1 leads."""
    raw_topics.create(kafka.brokers[1], topic, [1, 2], **config)
    kafka.wait_caught_up()
    found = raw_topics.partition(kafka.brokers[1], topic)
    assert found is not None
    return found


def produce(way: Way, topic: str, values: Iterable[bytes], **settings: object) -> None:
    """Produce these records with librdkafka, which must report no failure."""
    failed: list[Any] = []

    def on_delivery(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    with KafkaProducer({"bootstrap.servers": way.bootstrap, **settings}) as producer:
        for value in values:
            producer.produce(topic, value, on_delivery=on_delivery)
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def read(way: Way, topic: str, count: int, **settings: object) -> list[bytes]:
    """The first `count` records, or as many as come within the timeout."""
    common = {"bootstrap.servers": way.bootstrap, "group.id": f"{topic}-unused", "enable.auto.commit": False}
    consumer = KafkaConsumer({**common, **settings})
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(found) < count and time.monotonic() < deadline_s:
            for message in consumer.consume(1000, 1.0):
                assert message.error() is None, message.error()
                found.append(message.value())
    finally:
        consumer.close()
    return found


@pytest.mark.row("3.3")
@pytest.mark.parametrize("version", SILENT_VERSIONS)
async def test_silent_produce_requests_among_others_on_one_connection(
    kafka: KafkaCluster, ways: Iterable[Way], topic_name: str, version: int
) -> None:
    for way in ways:
        topic = f"{topic_name}-{way.name}"
        partition = await asyncio.to_thread(new_topic, kafka, topic)

        def request(number: int, acks: int, topic: str = topic, at: raw_topics.Partition = partition) -> Any:
            return produce_request(version, topic, at.topic_id, batch([b"%d" % number]), acks=acks)

        def silent(number: int) -> bytes:
            return encode_request(request(number, 0), 0)

        async with await RawConnection.open(way.nodes[1]) as connection:
            await connection.send_bytes(silent(0) + silent(1))
            await connection.send(API_VERSIONS)
            await connection.send_bytes(silent(2))
            await connection.send(WHOLE_CLUSTER)
            await connection.send_bytes(silent(3))
            await connection.send(request(4, 1))
            await connection.send_bytes(silent(5))
            await connection.send(request(6, -1))
            offered = await connection.receive(ApiVersionsResponse)
            described = await connection.receive(MetadataResponse)
            offsets = [await connection.receive(response_type("produce", version)) for _ in range(2)]
            found = await fetch(connection, 17, fetch_request(17, topic, partition.topic_id))
        assert offered.api_keys
        assert places(way, described) == way.places
        assert [each.responses[0].partition_responses[0].base_offset for each in offsets] == [4, 6]
        assert values_in(found.responses[0].partitions[0].records) == [b"%d" % number for number in range(7)]


def test_a_producer_that_asks_for_no_acknowledgement(kafka: KafkaCluster, ways: Iterable[Way], topic_name: str) -> None:
    for way in ways:
        topic = f"{topic_name}-{way.name}"
        new_topic(kafka, topic)
        values = [b"value-%d" % number for number in range(RECORDS)]
        produce(way, topic, values, acks=0)
        assert read(way, topic, RECORDS) == values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_an_idempotent_producer(kafka: KafkaCluster, ways: Iterable[Way], topic_name: str, codec: str) -> None:
    for way in ways:
        topic = f"{topic_name}-{way.name}"
        new_topic(kafka, topic)
        values = [b"value-%d" % number for number in range(RECORDS)]
        produce(way, topic, values, **{"enable.idempotence": True, "compression.type": codec, "linger.ms": 1})
        assert read(way, topic, RECORDS) == values


def test_records_of_five_megabytes(kafka: KafkaCluster, ways: Iterable[Way], topic_name: str) -> None:
    source = random.Random(topic_name)
    values = [source.randbytes(LARGE_BYTES) for _ in range(6)]
    for way in ways:
        topic = f"{topic_name}-{way.name}"
        new_topic(kafka, topic, max_message_bytes=str(LARGE_BYTES_MAX))
        produce(way, topic, values, **{"message.max.bytes": LARGE_BYTES_MAX})
        found = read(way, topic, len(values), **{"fetch.message.max.bytes": LARGE_BYTES_MAX})
        assert digests(found) == digests(values)


def places(way: Way, answer: MetadataResponse) -> list[str]:
    """The brokers that an answer names."""
    return sorted(way.place(broker.node_id, broker.host, broker.port) for broker in answer.brokers)


def digests(values: Sequence[bytes]) -> list[str]:
    """What can be compared and printed in place of large values."""
    return [hashlib.sha256(value).hexdigest() for value in values]


async def test_many_connections_at_once(sidecar: SidecarProcess, ways: Iterable[Way]) -> None:
    _, through = ways
    admin = SidecarAdmin(sidecar.admin)
    addresses = [address for address in through.nodes.values() for _ in range(CONNECTIONS // len(through.nodes))]
    connections = await asyncio.gather(*(RawConnection.open(address) for address in addresses))
    try:
        asked = (connection.ask(WHOLE_CLUSTER, MetadataResponse) for connection in connections)
        for answer in await asyncio.gather(*asked):
            assert places(through, answer) == through.places
        open_now = await asyncio.to_thread(admin.metric, "tidegate_client_connections")
        assert open_now >= CONNECTIONS
    finally:
        for connection in connections:
            await connection.close()

    def all_are_gone() -> bool:
        return admin.metric("tidegate_client_connections") <= open_now - CONNECTIONS

    await asyncio.to_thread(admin.wait_until, all_are_gone, "connections are still open")
