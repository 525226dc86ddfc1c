"""CreatePartitions (37): more partitions for topics that exist. Errors and messages are Kafka 4.4's."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from backend.metadata.authorizer import Operation, Resource
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.partition_records import new_partition, place, validate_assignment
from backend.metadata.records import PartitionRecord
from backend.metadata.topics import Topic
from backend.metadata.writes import RECORDS_PER_WRITE_MAX, Body, Outcome, WriteContext, WriteRequest, error_fields
from codec.error_codes import ErrorCode


def create_partitions(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """CreatePartitions (37); of a topic that is named twice, Kafka refuses both."""
    topics: list[Mapping[str, Any]] = request.body["topics"]
    counts = Counter(topic["name"] for topic in topics)
    duplicate = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name, count in counts.items() if count > 1]
    access = context.access(request.client, image)
    records: list[PartitionRecord] = []
    for wanted in topics:
        if counts[wanted["name"]] > 1:
            continue
        try:
            if not access.allows(Operation.ALTER, Resource.TOPIC, wanted["name"]):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
            records += _added(image, wanted, RECORDS_PER_WRITE_MAX - len(records))
            results.append(_result(wanted["name"], None))
        except ApiError as error:
            results.append(_result(wanted["name"], error))
    return Outcome(
        records=() if request.body["validate_only"] else tuple(records),
        response={"throttle_time_ms": 0, "results": results},
    )


def _added(image: Image, wanted: Mapping[str, Any], records_max: int) -> list[PartitionRecord]:
    topic = image.topics.by_name.get(wanted["name"])
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    additional = _additional(topic, wanted["count"])
    if additional > records_max:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of additional partitions per request.")
    first, factor = len(topic.partitions), len(topic.partitions[0].replicas)
    assignments = wanted["assignments"]
    if assignments is None:
        return place(image.cluster, topic.topic_id, first=first, count=additional, replication_factor=factor)
    if len(assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified.",
        )
    added = []
    for partition_id, assignment in enumerate(assignments, first):
        replicas = tuple(assignment["broker_ids"])
        validate_assignment(image.cluster, replicas, factor)
        added.append(new_partition(image.cluster, topic.topic_id, partition_id, replicas, manual=True))
    return added


def _additional(topic: Topic, count: int) -> int:
    present = len(topic.partitions)
    if count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase.",
        )
    return count - present


def _result(name: str, error: ApiError | None) -> Body:
    return {"name": name, **error_fields(error)}
