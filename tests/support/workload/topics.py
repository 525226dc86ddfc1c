"""Topics: creating, deleting, and judging what metadata says of them. Pure."""

import datetime as dt
import functools
from collections.abc import Sequence
from typing import Any

from kio.schema.create_topics import v7 as create_topics
from kio.schema.create_topics.v7 import request as create_topics_request
from kio.schema.delete_topics import v6 as delete_topics
from kio.schema.delete_topics.v6 import request as delete_topics_request
from kio.schema.describe_topic_partitions import v0 as describe_topic_partitions
from kio.schema.errors import ErrorCode
from kio.schema.metadata import v12 as metadata
from kio.schema.metadata.v12 import request as metadata_request
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from tests.support.workload.exchange import FRESH, MISSING, STALE, Judgement, Read, Write, failed

WRITE_TIMEOUT = i32Timedelta.parse(dt.timedelta(seconds=30))


def write_topics(names: Sequence[str]) -> Write[Any]:
    """Create topics of one partition on one replica."""
    topics = tuple(
        create_topics_request.CreatableTopic(
            name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        for name in names
    )
    return Write(
        request=create_topics.CreateTopicsRequest(topics=topics, timeout=WRITE_TIMEOUT),
        response_type=create_topics.CreateTopicsResponse,
        errors=lambda answer: [topic.error_code for topic in answer.topics],
    )


def read_topics(names: Sequence[str], partitions: int = 1) -> Read[Any]:
    """Metadata of topics: fresh when all exist with that many partitions."""
    return Read(
        request=metadata_of(names),
        response_type=metadata.MetadataResponse,
        judge=functools.partial(judge_topics, partitions=partitions),
    )


def judge_topics(
    answer: metadata.MetadataResponse | describe_topic_partitions.DescribeTopicPartitionsResponse, *, partitions: int
) -> Judgement:
    """Fresh when every topic of the answer exists with that many partitions."""
    for topic in answer.topics:
        if topic.error_code not in (ErrorCode.none, *MISSING):
            return failed(topic.error_code)
    complete = all(
        topic.error_code is ErrorCode.none and len(topic.partitions) == partitions for topic in answer.topics
    )
    return FRESH if complete else STALE


def metadata_of(names: Sequence[str] | None) -> metadata.MetadataRequest:
    """A request for the metadata of these topics, or of all; it creates none."""
    topics = None
    if names is not None:
        topics = tuple(metadata_request.MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names)
    return metadata.MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )


def erase_topics(names: Sequence[str]) -> Write[Any]:
    """Delete topics."""
    topics = tuple(delete_topics_request.DeleteTopicState(name=TopicName(name), topic_id=None) for name in names)
    return Write(
        request=delete_topics.DeleteTopicsRequest(topics=topics, timeout=WRITE_TIMEOUT),
        response_type=delete_topics.DeleteTopicsResponse,
        errors=lambda answer: [topic.error_code for topic in answer.responses],
    )
