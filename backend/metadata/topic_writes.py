"""CreateTopics and DeleteTopics: what they change and what they answer.

Errors and messages are Kafka 4.4's. All topics of a request are committed together; each is refused by itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from backend.metadata.authorizer import Access, Operation, Resource
from backend.metadata.config_changes import alter_configs, changes_of_new_topic
from backend.metadata.configs import ResourceType
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.partition_records import new_partition, place, validate_assignment
from backend.metadata.records import UUID_ZERO, PartitionRecord, Record, RemoveTopicRecord, TopicRecord, Uuid
from backend.metadata.topic_configs import effective_configs
from backend.metadata.topic_names import validate_topic_name
from backend.metadata.writes import (
    EXCESSIVE,
    RECORDS_PER_WRITE_MAX,
    Body,
    Outcome,
    WriteContext,
    WriteRequest,
    error_fields,
)
from codec.error_codes import ErrorCode

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
NO_COUNT: Final = -1


def create_topics(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """CreateTopics (19)."""
    topics: list[Mapping[str, Any]] = request.body["topics"]
    if _partitions_asked_for(topics, context) > RECORDS_PER_WRITE_MAX:
        return _all_refused(topics, "Excessively large number of partitions per request.")
    creation = _Creation(image, context, context.access(request.client, image))
    counts = Counter(topic["name"] for topic in topics)
    results: list[Body] = []
    for topic in topics:
        name = topic["name"]
        if counts[name] > 1:
            continue
        try:
            if name == CLUSTER_METADATA_TOPIC:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
                )
            creation.check_access(name)
            results.append(creation.create(topic))
        except ApiError as error:
            results.append(_refused(name, error))
    duplicate = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_refused(name, duplicate) for name, count in counts.items() if count > 1]
    if len(creation.records) > RECORDS_PER_WRITE_MAX:
        return _all_refused(topics, EXCESSIVE[1])
    records = () if request.body.get("validate_only") else tuple(creation.records)
    return Outcome(records=records, response={"throttle_time_ms": 0, "topics": results})


def delete_topics(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """DeleteTopics (20), by name up to v5, by name or id from v6."""
    if request.api_version >= 6:
        asked = [(topic["name"], topic["topic_id"]) for topic in request.body["topics"]]
    else:
        asked = [(name, UUID_ZERO) for name in request.body["topic_names"]]
    deletion = _Deletion(image, context.access(request.client, image))
    deletion.take(asked)
    return Outcome(
        records=tuple(RemoveTopicRecord(topic_id=topic_id) for topic_id in deletion.doomed),
        response={"throttle_time_ms": 0, "responses": deletion.results},
    )


@final
class _Creation:
    """The topics of one request, one after the other."""

    def __init__(self, image: Image, context: WriteContext, access: Access) -> None:
        self.records: list[Record] = []
        self._access = access
        self._image = image
        self._context = context

    def check_access(self, name: str) -> None:
        """A client may create a topic if it may create any, or that one.

        Raises:
            ApiError: It may not.
        """
        may = self._access.allows_on_cluster(Operation.CREATE)
        if not (may or self._access.allows(Operation.CREATE, Resource.TOPIC, name)):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")

    def create(self, topic: Mapping[str, Any]) -> Body:
        """Create one topic, and return its result.

        Raises:
            ApiError: It cannot be created.
        """
        name: str = topic["name"]
        self._check_name(name)
        own, config_records = self._configs(name, topic["configs"])
        topic_id = self._context.new_uuid()
        partitions = self._partitions(topic, topic_id)
        self.records += [TopicRecord(name=name, topic_id=topic_id), *config_records, *partitions]
        created = {"name": name, "topic_id": topic_id, **error_fields(None)}
        if not self._access.allows(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name):
            return {**created, "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED.value, "configs": None}
        return {
            **created,
            "topic_config_error_code": ErrorCode.NONE.value,
            "num_partitions": len(partitions),
            "replication_factor": len(partitions[0].replicas),
            "configs": self._reported(own),
        }

    def _check_name(self, name: str) -> None:
        topics = self._image.topics
        if name in topics.by_name:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        validate_topic_name(name)
        colliding = topics.colliding(name)
        if colliding is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {colliding}"
            )

    def _configs(self, name: str, configs: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], list[Record]]:
        own, changes = changes_of_new_topic(configs)
        records = alter_configs(self._image, ResourceType.TOPIC, name, changes, newly_created=True)
        return own, list(records)

    def _partitions(self, topic: Mapping[str, Any], topic_id: Uuid) -> list[PartitionRecord]:
        if topic["assignments"]:
            return self._assigned(topic, topic_id)
        count, factor = topic["num_partitions"], topic["replication_factor"]
        if factor < NO_COUNT or factor == 0:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < NO_COUNT or count == 0:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        count = self._context.num_partitions if count == NO_COUNT else count
        factor = self._context.replication_factor if factor == NO_COUNT else factor
        return place(self._image.cluster, topic_id, first=0, count=count, replication_factor=factor)

    def _assigned(self, topic: Mapping[str, Any], topic_id: Uuid) -> list[PartitionRecord]:
        for field, words in (("replication_factor", "replication factor"), ("num_partitions", "numPartitions")):
            if topic[field] != NO_COUNT:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {words} was not set to -1.",
                )
        cluster = self._image.cluster
        found: dict[int, PartitionRecord] = {}
        factor = None
        for assignment in topic["assignments"]:
            index, replicas = assignment["partition_index"], tuple(assignment["broker_ids"])
            if index in found:
                raise ApiError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Found multiple manual partition assignments for partition {index}",
                )
            validate_assignment(cluster, replicas, factor)
            factor = len(replicas)
            found[index] = new_partition(cluster, topic_id, index, replicas, manual=True)
        if sorted(found) != list(range(len(found))):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
            )
        return [found[index] for index in range(len(found))]

    def _reported(self, own: Mapping[str, str]) -> list[Body]:
        configs = effective_configs(own, self._image.configs, NO_COUNT, self._context.static_configs)
        return [
            {
                "name": config.key.name,
                "value": config.value,
                "read_only": False,
                "config_source": config.source.value,
                "is_sensitive": False,
            }
            for config in configs
        ]


@final
class _Deletion:
    """The topics that one request names, sorted into those that go and those that cannot."""

    def __init__(self, image: Image, access: Access) -> None:
        self.doomed: list[Uuid] = []
        self.results: list[Body] = []
        self._image = image
        self._access = access
        self._may_delete_any = access.allows_on_cluster(Operation.DELETE)

    def take(self, asked: list[tuple[str | None, Uuid]]) -> None:
        """Decide about all; fills `doomed` and `results`."""
        counts = Counter(asked)
        found: dict[Uuid, str] = {}
        by_both: list[tuple[str, Uuid]] = []
        for (name, topic_id), count in counts.items():
            if name is None and topic_id == UUID_ZERO:
                for _ in range(count):
                    self._refuse(
                        None, UUID_ZERO, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
                    )
            elif name is not None and topic_id != UUID_ZERO:
                for _ in range(count):
                    self._refuse(
                        name, topic_id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
                    )
            elif count > 1:
                what = "name" if name is not None else "id"
                self._refuse(name, topic_id, ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
            elif name is None:
                self._find_name(topic_id, found)
            else:
                by_both.append((name, topic_id))
        for name, _ in by_both:
            self._find_id(name, found, counts)
        for topic_id, name in found.items():
            self.doomed.append(topic_id)
            self.results.append({"name": name, "topic_id": topic_id, **error_fields(None)})

    def _find_name(self, topic_id: Uuid, found: dict[Uuid, str]) -> None:
        topic = self._image.topics.by_id(topic_id)
        if topic is None:
            self._refuse(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_ID)
        elif not self._may(Operation.DELETE, topic.name):
            name = topic.name if self._may(Operation.DESCRIBE, topic.name) else None
            self._refuse(name, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED)
        else:
            found[topic_id] = topic.name

    def _find_id(self, name: str, found: dict[Uuid, str], counts: Mapping[tuple[str | None, Uuid], int]) -> None:
        topic = self._image.topics.by_name.get(name)
        if not self._may(Operation.DESCRIBE, name):
            self._refuse(name, UUID_ZERO, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED)
        elif topic is None:
            self._refuse(name, UUID_ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC)
        elif not self._may(Operation.DELETE, name):
            self._refuse(name, UUID_ZERO, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED)
        elif topic.topic_id in found or (None, topic.topic_id) in counts:
            found.pop(topic.topic_id, None)
            self._refuse(
                name,
                topic.topic_id,
                ErrorCode.INVALID_REQUEST,
                "The provided topic name maps to an ID that was already supplied.",
            )
        else:
            found[topic.topic_id] = name

    def _may(self, operation: Operation, name: str) -> bool:
        return self._may_delete_any or self._access.allows(operation, Resource.TOPIC, name)

    def _refuse(self, name: str | None, topic_id: Uuid, code: ErrorCode, message: str) -> None:
        self.results.append({"name": name, "topic_id": topic_id, **error_fields(ApiError(code, message))})


TOPIC_AUTHORIZATION_FAILED: Final = "Topic authorization failed."
UNKNOWN_TOPIC: Final = "This server does not host this topic-partition."
UNKNOWN_TOPIC_ID: Final = "This server does not host this topic ID."


def _refused(name: str, error: ApiError) -> Body:
    return {"name": name, "topic_id": UUID_ZERO, **error_fields(error), "configs": []}


def _all_refused(topics: Iterable[Mapping[str, Any]], message: str) -> Outcome:
    error = ApiError(ErrorCode.POLICY_VIOLATION, message)
    results = [_refused(topic["name"], error) for topic in topics]
    return Outcome(records=(), response={"throttle_time_ms": 0, "topics": results})


def _partitions_asked_for(topics: Iterable[Mapping[str, Any]], context: WriteContext) -> int:
    total = 0
    for topic in topics:
        count = len(topic["assignments"]) or topic["num_partitions"]
        total += context.num_partitions if count == NO_COUNT else max(count, 0)
    return total
