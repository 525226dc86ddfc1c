"""AlterPartitionReassignments (45) and ListPartitionReassignments (46): partitions move to other brokers (KIP-455).

Errors and messages are Kafka 4.4's. What a move comes to where replicas hold no data is said in `partition_changes`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, final

from backend.metadata.configs import ResourceType
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.partition_changes import Election, PartitionChange, is_reassigning, settled
from backend.metadata.partition_records import validate_assignment
from backend.metadata.records import PartitionChangeRecord, Uuid
from backend.metadata.refusals import refuse
from backend.metadata.topics import Partition, Topic
from backend.metadata.writes import EXCESSIVE, RECORDS_PER_WRITE_MAX, Body, Outcome, WriteRequest, error_fields
from codec.error_codes import ErrorCode

UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"
_NOTHING_ASKED: Final = {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "responses": []}


def alter_partition_reassignments(request: WriteRequest, image: Image) -> Outcome:
    """AlterPartitionReassignments (45); null replicas stop a move. Each partition is refused or moved by itself."""
    if not request.body["topics"]:
        return Outcome(records=(), response={**_NOTHING_ASKED, "error_message": ""})
    factor_may_change: bool = request.body.get("allow_replication_factor_change", True)
    state = _Moves(image)
    responses: list[Body] = []
    asked = sum(len(topic["partitions"]) for topic in request.body["topics"])
    if asked > RECORDS_PER_WRITE_MAX:
        refused = refuse(request.api_key, request.api_version, request.body, *EXCESSIVE)
        return Outcome(records=(), response={"allow_replication_factor_change": factor_may_change, **refused})
    for topic in request.body["topics"]:
        results: list[Body] = []
        for wanted in topic["partitions"]:
            error = None
            try:
                state.alter(topic["name"], wanted, factor_may_change=factor_may_change)
            except ApiError as refusal:
                error = refusal
            results.append({"partition_index": wanted["partition_index"], **error_fields(error)})
        responses.append({"name": topic["name"], "partitions": results})
    response = {
        "throttle_time_ms": 0,
        "allow_replication_factor_change": factor_may_change,
        **error_fields(None),
        "responses": responses,
    }
    return Outcome(records=tuple(state.records), response=response)


def list_partition_reassignments(request: WriteRequest, image: Image) -> Outcome:
    """ListPartitionReassignments (46): the moves that are not done; null means every topic.

    A read, but the controller's, as in Kafka: it shows what is committed.
    """
    by_name = image.topics.by_name
    asked = request.body["topics"]
    if asked is None:
        wanted = [(name, range(len(by_name[name].partitions))) for name in sorted(by_name)]
    else:
        wanted = [(topic["name"], topic["partition_indexes"]) for topic in asked]
    topics: list[Body] = []
    for name, indexes in wanted:
        topic = by_name.get(name)
        moving = [] if topic is None else _moving(topic, indexes)
        if moving:
            topics.append({"name": name, "partitions": moving})
    return Outcome(records=(), response={"throttle_time_ms": 0, **error_fields(None), "topics": topics})


@final
class _Moves:
    """The partitions of one request, each in the state that the moves before it have led to."""

    def __init__(self, image: Image) -> None:
        self.records: list[PartitionChangeRecord] = []
        self._image = image
        self._changed: dict[tuple[Uuid, int], Partition] = {}

    def alter(self, name: str, wanted: Mapping[str, Any], *, factor_may_change: bool) -> None:
        """Move one partition, or stop its move.

        Raises:
            ApiError: It cannot be done.
        """
        index = wanted["partition_index"]
        topic = self._image.topics.by_name.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
        if not 0 <= index < len(topic.partitions):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
        at = topic.topic_id, index
        partition = self._changed.get(at, topic.partitions[index])
        if wanted["replicas"] is None:
            change = self._cancelled(at, name, partition)
        else:
            change = self._moved(at, partition, tuple(wanted["replicas"]), factor_may_change=factor_may_change)
        for record in settled(at, partition, change, self._image.cluster.is_active):
            self.records.append(record)
            partition = partition.merge(record)
        self._changed[at] = partition

    def _moved(
        self, at: tuple[Uuid, int], partition: Partition, replicas: tuple[int, ...], *, factor_may_change: bool
    ) -> PartitionChangeRecord | None:
        validate_assignment(self._image.cluster, replicas, None)
        factor = len(partition.replicas) - len(partition.removing_replicas)
        if not factor_may_change and factor != len(replicas):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {factor} to {len(replicas)}",
            )
        removing = tuple(sorted(set(partition.replicas) - set(replicas)))
        adding = tuple(sorted(set(replicas) - set(partition.replicas)))
        change = PartitionChange(at, partition, self._image.cluster.is_active)
        change.target = replace(
            partition,
            replicas=(*replicas, *removing),
            removing_replicas=removing or partition.removing_replicas,
            adding_replicas=adding or partition.adding_replicas,
        )
        return change.record()

    def _cancelled(self, at: tuple[Uuid, int], name: str, partition: Partition) -> PartitionChangeRecord | None:
        if not is_reassigning(partition):
            raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
        unclean = self._image.configs.of(ResourceType.TOPIC, name).get(UNCLEAN_LEADER_ELECTION) == "true"
        replicas = tuple(i for i in partition.replicas if i not in partition.adding_replicas)
        isr = tuple(i for i in partition.isr if i not in partition.adding_replicas)
        if not isr and not unclean:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {name}:{at[1]} because it would require an unclean leader "
                "election.",
            )
        change = PartitionChange(at, partition, self._image.cluster.is_active)
        change.target = replace(
            partition, replicas=replicas, isr=isr or replicas[:1], removing_replicas=(), adding_replicas=()
        )
        return change.record(Election.UNCLEAN if unclean else Election.ONLINE)


def _moving(topic: Topic, indexes: Iterable[int]) -> list[Body]:
    return [
        {
            "partition_index": index,
            "replicas": list(partition.replicas),
            "adding_replicas": list(partition.adding_replicas),
            "removing_replicas": list(partition.removing_replicas),
        }
        for index in indexes
        if 0 <= index < len(topic.partitions) and is_reassigning(partition := topic.partitions[index])
    ]
