"""Topics by raw requests to one address: create one, see who leads it, move it. Blocking.

An oracle: uses kio's entities and none of Tidegate's own packages.
"""

import datetime as dt
import uuid
from dataclasses import dataclass

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from tests.support.address import Address
from tests.support.raw_client import ask_once

TIMEOUT = i32Timedelta.parse(dt.timedelta(seconds=30))


class RawTopicError(Exception):
    """The broker refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The only partition of a topic, as one broker sees it."""

    topic_id: uuid.UUID
    leader_id: int
    replicas: tuple[int, ...]


def create(address: Address, topic: str, replicas: list[int], **config: str) -> None:
    """Create a topic of one partition on these brokers; the first one leads it.

    Raises:
        RawTopicError: if the broker refuses.
    """
    wanted = CreatableTopic(
        name=TopicName(topic),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=(
            CreatableReplicaAssignment(partition_index=i32(0), broker_ids=tuple(BrokerId(each) for each in replicas)),
        ),
        configs=tuple(CreatableTopicConfig(name=name.replace("_", "."), value=v) for name, v in config.items()),
    )
    answer = ask_once(address, CreateTopicsRequest(topics=(wanted,), timeout=TIMEOUT), CreateTopicsResponse)
    for found in answer.topics:
        if found.error_code is not ErrorCode.none:
            raise RawTopicError(f"{topic} was not created: {found.error_code.name}: {found.error_message}")


def partition(address: Address, topic: str) -> Partition | None:
    """The partition of a topic as the broker at `address` sees it now; None if it does not."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    (found,) = ask_once(address, request, MetadataResponse).topics
    if found.error_code is not ErrorCode.none or found.topic_id is None:
        return None
    (only,) = found.partitions
    return Partition(topic_id=found.topic_id, leader_id=only.leader_id, replicas=tuple(only.replica_nodes))


def reassign(address: Address, topic: str, replicas: list[int]) -> None:
    """Ask for the partition to be moved to these brokers; returns before it is.

    Raises:
        RawTopicError: if the broker refuses.
    """
    wanted = ReassignablePartition(partition_index=i32(0), replicas=tuple(BrokerId(each) for each in replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout=TIMEOUT, topics=(ReassignableTopic(name=TopicName(topic), partitions=(wanted,)),)
    )
    answer = ask_once(address, request, AlterPartitionReassignmentsResponse)
    codes = [answer.error_code, *(each.error_code for found in answer.responses for each in found.partitions)]
    if any(code is not ErrorCode.none for code in codes):
        raise RawTopicError(f"{topic} is not moved: {[code.name for code in codes]}")
