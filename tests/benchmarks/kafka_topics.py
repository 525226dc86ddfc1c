"""Real Kafka for the proxy's benchmark: one broker, a topic with one megabyte to fetch, another to produce to."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from tests.benchmarks.exchanges import FETCH_VERSION, MEGABYTE, PRODUCE_VERSION
from tests.support.address import Address
from tests.support.kafka.cluster import KafkaCluster
from tests.support.raw_client import TIMEOUT_S, ask_once, encode_request
from tests.support.raw_records import batch, fetch_request, produce_request, response_type
from tests.support.raw_topics import Partition, create, partition

NODE: Final = 1
FETCHED: Final = "fetched"
PRODUCED: Final = "produced"
KEPT: Final = {"retention_bytes": str(64 * MEGABYTE), "segment_bytes": str(32 * MEGABYTE), "file_delete_delay_ms": "0"}
"""So that what is produced in a benchmark does not fill the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """A broker, and the frames that fetch and produce a megabyte."""

    port: int
    fetch: bytes
    produce: bytes


@contextmanager
def prepared_kafka(version: str) -> Iterator[Kafka]:
    """One controller, one broker."""
    overrides = {"log.retention.check.interval.ms": 1000}
    with KafkaCluster(version=version, controllers=1, brokers=1, overrides=overrides) as cluster:
        broker = cluster.brokers[NODE]
        records = batch([bytes(MEGABYTE)])
        # The timestamps of the batch are of 1970: by age it would be deleted in the middle of the benchmark.
        create(broker, FETCHED, [NODE], retention_ms="-1")
        create(broker, PRODUCED, [NODE], **KEPT)
        fetched = _found(broker, FETCHED)
        produced = _found(broker, PRODUCED)
        for topic, found in ((FETCHED, fetched), (PRODUCED, produced)):
            to_produce = produce_request(PRODUCE_VERSION, topic, found.topic_id, records, acks=1)
            answer = ask_once(broker, to_produce, response_type("produce", PRODUCE_VERSION))
            assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none, answer
        yield Kafka(
            port=broker.port,
            fetch=encode_request(fetch_request(FETCH_VERSION, FETCHED, fetched.topic_id), 0),
            produce=encode_request(to_produce, 0),
        )


def _found(broker: Address, topic: str) -> Partition:
    """The topic's partition, as soon as the broker has it and leads it."""
    deadline = time.monotonic() + TIMEOUT_S
    while (found := partition(broker, topic)) is None or found.leader_id != NODE:
        assert time.monotonic() < deadline, f"{topic} has not appeared"
        time.sleep(0.05)
    return found
