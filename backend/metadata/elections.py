"""ElectLeaders (43): the preferred replica leads again, or any one does at the price of data (KIP-460).

Errors and messages are Kafka 4.4's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.partition_changes import Election, PartitionChange, settled
from backend.metadata.records import PartitionChangeRecord, Uuid
from backend.metadata.refusals import refuse
from backend.metadata.topics import Partition
from backend.metadata.writes import EXCESSIVE, RECORDS_PER_WRITE_MAX, Body, Outcome, WriteRequest, error_fields
from codec.error_codes import ErrorCode

_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}
_NOT_NEEDED: Final = ApiError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
_FAILED: Final = {
    Election.PREFERRED: ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
    Election.UNCLEAN: ApiError(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    ),
}


def elect_leaders(request: WriteRequest, image: Image) -> Outcome:
    """ElectLeaders (43); null means all partitions, of which those are left out that need no election."""
    election = _ELECTIONS.get(request.body.get("election_type", 0))
    if election is None:
        return _refused(request)
    records: list[PartitionChangeRecord] = []
    results: dict[str, list[Body]] = {}
    for name, index in _asked(request.body["topic_partitions"], image, results):
        error = None
        try:
            at, partition = _partition(image, name, index)
            change = _elected(at, partition, election, image)
            records += settled(at, partition, change, image.cluster.is_active)
        except ApiError as refusal:
            error = refusal
        if error is _NOT_NEEDED and request.body["topic_partitions"] is None:
            continue
        results[name].append({"partition_id": index, **error_fields(error)})
    if len(records) > RECORDS_PER_WRITE_MAX:
        refused = refuse(request.api_key, request.api_version, request.body, *EXCESSIVE)
        return Outcome(records=(), response=refused)
    found = [{"topic": name, "partition_result": partitions} for name, partitions in results.items()]
    response = {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "replica_election_results": found}
    return Outcome(records=tuple(records), response=response)


def _asked(
    wanted: list[Mapping[str, Any]] | None, image: Image, results: dict[str, list[Body]]
) -> Iterator[tuple[str, int]]:
    """The partitions that are asked for; each topic gets its place in `results` first."""
    if wanted is None:
        for name in sorted(image.topics.by_name):
            results[name] = []
            yield from ((name, index) for index in range(len(image.topics.by_name[name].partitions)))
        return
    for topic in wanted:
        results.setdefault(topic["topic"], [])
        yield from ((topic["topic"], index) for index in topic["partitions"])


def _partition(image: Image, name: str, index: int) -> tuple[tuple[Uuid, int], Partition]:
    topic = image.topics.by_name.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return (topic.topic_id, index), topic.partitions[index]


def _elected(
    at: tuple[Uuid, int], partition: Partition, election: Election, image: Image
) -> PartitionChangeRecord | None:
    has_wanted = partition.leader == partition.replicas[0] if election is Election.PREFERRED else partition.has_leader
    if has_wanted:
        raise _NOT_NEEDED
    change = PartitionChange(at, partition, image.cluster.is_active).record(election)
    if change is None:
        raise _FAILED[election]
    return change


def _refused(request: WriteRequest) -> Outcome:
    """For an election of another type, Kafka puts the error beside every partition."""
    error = error_fields(ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.body['election_type']}"))
    found = [
        {"topic": topic["topic"], "partition_result": [{"partition_id": i, **error} for i in topic["partitions"]]}
        for topic in request.body["topic_partitions"] or ()
    ]
    code = ErrorCode.INVALID_REQUEST.value
    return Outcome(records=(), response={"throttle_time_ms": 0, "error_code": code, "replica_election_results": found})
