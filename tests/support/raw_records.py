"""Produce and Fetch of any version that kio knows, for one partition of one topic.

An oracle: uses kio's entities, and the record batches of aiokafka.
"""

import datetime as dt
import importlib
import uuid
from collections.abc import Iterable
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta, i64

from tests.support.raw_client import RawConnection

TIMEOUT = i32Timedelta.parse(dt.timedelta(seconds=30))
MAX_WAIT = i32Timedelta.parse(dt.timedelta(milliseconds=500))
BYTES_MAX = i32(64 * 1024 * 1024)
TOPIC_IDS_SINCE = {"produce": 13, "fetch": 13}


def batch(values: Iterable[bytes]) -> bytes:
    """One uncompressed record batch, by no producer in particular."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1024 * 1024,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=1, key=None, value=value, headers=[])
    return bytes(builder.build())


def produce_request(version: int, topic: str, topic_id: uuid.UUID, records: bytes, *, acks: int = -1) -> Any:
    """A Produce request for partition 0."""
    api = importlib.import_module(f"kio.schema.produce.v{version}.request")
    data = api.PartitionProduceData(index=i32(0), records=Records(records))
    return api.ProduceRequest(
        acks=i16(acks),
        timeout=TIMEOUT,
        topic_data=(api.TopicProduceData(**_named("produce", version, topic, topic_id), partition_data=(data,)),),
    )


def fetch_request(version: int, topic: str, topic_id: uuid.UUID, offset: int = 0) -> Any:
    """A Fetch request for partition 0, outside any session."""
    api = importlib.import_module(f"kio.schema.fetch.v{version}.request")
    wanted = api.FetchPartition(partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=BYTES_MAX)
    return api.FetchRequest(
        max_wait=MAX_WAIT,
        min_bytes=i32(1),
        max_bytes=BYTES_MAX,
        topics=(api.FetchTopic(**_named("fetch", version, topic, topic_id), partitions=(wanted,)),),
        forgotten_topics_data=(),
    )


async def produce(connection: RawConnection, version: int, request: Any) -> Any:
    """Send a Produce request that has an answer; returns the answer."""
    return await connection.ask(request, response_type("produce", version))


async def fetch(connection: RawConnection, version: int, request: Any) -> Any:
    """Send a Fetch request; returns the answer."""
    return await connection.ask(request, response_type("fetch", version))


def response_type(api: str, version: int) -> Any:
    """kio's class for the answer: `produce` or `fetch`."""
    return getattr(importlib.import_module(f"kio.schema.{api}.v{version}.response"), f"{api.title()}Response")


def values_in(records: bytes) -> list[bytes]:
    """The values of one or more uncompressed record batches."""
    found: list[bytes] = []
    while len(records) >= 12:
        size = 12 + int.from_bytes(records[8:12], "big")
        found.extend(record.value for record in DefaultRecordBatch(bytearray(records[:size])))
        records = records[size:]
    return found


def _named(api: str, version: int, topic: str, topic_id: uuid.UUID) -> dict[str, Any]:
    if version >= TOPIC_IDS_SINCE[api]:
        return {"topic_id": topic_id}
    return {"name" if api == "produce" else "topic": TopicName(topic)}
