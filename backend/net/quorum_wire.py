"""The quorum's messages as bodies of Kafka's tables, and back. Pure.

The quorum decides on a handful of fields (`backend.raft.messages`); on the wire stand a cluster id, which is checked
here, the one topic and partition that there is, and ids of directories and endpoints, which a quorum of static voters
(kraft.version 0) has no use for. Own requests go out in the versions of `SENT`; `ACCEPTED` says which are answered.

A request that is not for this cluster or this partition is answered with an error at the top of the body, and the
quorum never hears of it. A response with an error at the top is no answer: `Unanswered`.

Sources: KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166, RaftUtil of Kafka.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, assert_never, final

from backend.net.log_batches import log_batches
from backend.raft.batches import EpochEnd, SnapshotId
from backend.raft.messages import (
    NOBODY,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

Body = dict[str, Any]

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = bytes(15) + b"\1"
"""Kafka's `Uuid.METADATA_TOPIC_ID`."""
NO_DIRECTORY: Final = bytes(16)
CONSUMER: Final = -1
_FETCH_BY_ID: Final = 13
UNKNOWN_HIGH_WATERMARK: Final = 2**63 - 1
"""What stands in Fetch v18 where a replica does not say (KIP-1166)."""

SENT: Final[Mapping[int, int]] = {
    ApiKey.VOTE: 2,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
    ApiKey.FETCH: 18,
    ApiKey.FETCH_SNAPSHOT: 1,
}
"""The version in which each request goes out."""
ACCEPTED: Final[Mapping[int, tuple[int, int]]] = {
    ApiKey.VOTE: (0, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: (0, 1),
    ApiKey.END_QUORUM_EPOCH: (0, 1),
    ApiKey.FETCH: (12, 18),
    ApiKey.FETCH_SNAPSHOT: (0, 1),
}
"""First and last version that is answered; Fetch only where it carries what a follower must say."""


@final
class Refused(Exception):
    """A request that the quorum does not hear of.

    Attributes:
        body: what answers it.
    """

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.body = body


@final
class Unanswered(Exception):
    """A response that answers nothing: an error for the whole request, or another partition than was asked for."""


class Sent(NamedTuple):
    """A request as it goes out."""

    api_key: int
    api_version: int
    body: Body


# Requests


def request_body(request: Request, cluster_id: str, to: int) -> Sent:
    """A request of the quorum's to the node `to`."""
    match request:
        case VoteRequest():
            partition = {
                "partition_index": 0,
                "replica_epoch": request.replica_epoch,
                "replica_id": request.replica_id,
                "replica_directory_id": NO_DIRECTORY,
                "voter_directory_id": NO_DIRECTORY,
                "last_offset_epoch": request.last_offset_epoch,
                "last_offset": request.last_offset,
                "pre_vote": request.pre_vote,
            }
            return _sent(ApiKey.VOTE, {"cluster_id": cluster_id, "voter_id": to, "topics": _by_name(partition)})
        case BeginQuorumEpochRequest():
            partition = {
                "partition_index": 0,
                "voter_directory_id": NO_DIRECTORY,
                "leader_id": request.leader_id,
                "leader_epoch": request.leader_epoch,
            }
            body = {"cluster_id": cluster_id, "voter_id": to, "topics": _by_name(partition), "leader_endpoints": []}
            return _sent(ApiKey.BEGIN_QUORUM_EPOCH, body)
        case EndQuorumEpochRequest():
            partition = {
                "partition_index": 0,
                "leader_id": request.leader_id,
                "leader_epoch": request.leader_epoch,
                "preferred_candidates": [
                    {"candidate_id": voter, "candidate_directory_id": NO_DIRECTORY}
                    for voter in request.preferred_successors
                ],
            }
            body = {"cluster_id": cluster_id, "topics": _by_name(partition), "leader_endpoints": []}
            return _sent(ApiKey.END_QUORUM_EPOCH, body)
        case FetchRequest():
            return _sent(ApiKey.FETCH, _fetch_body(request, cluster_id))
        case FetchSnapshotRequest():
            partition = {
                "partition": 0,
                "current_leader_epoch": request.current_leader_epoch,
                "snapshot_id": _snapshot_fields(request.snapshot_id),
                "position": request.position,
            }
            body = {
                "cluster_id": cluster_id,
                "replica_id": request.replica_id,
                "max_bytes": request.max_bytes,
                "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}],
            }
            return _sent(ApiKey.FETCH_SNAPSHOT, body)
        case _:
            assert_never(request)


def read_request(api_key: int, body: Mapping[str, Any], cluster_id: str, node_id: int) -> Request:
    """A request that came in, decoded, to the node `node_id` of a cluster.

    Raises:
        Refused: It names another cluster or voter, or not just the metadata partition.
        KeyError: It is none of the quorum's APIs.
    """
    read, topic_field, index_field = _REQUESTS[api_key]
    if body["cluster_id"] not in (None, cluster_id):
        raise Refused(top_level_error(api_key, ErrorCode.INCONSISTENT_CLUSTER_ID))
    if body.get("voter_id", NOBODY) not in (NOBODY, node_id):
        raise Refused(top_level_error(api_key, ErrorCode.INVALID_VOTER_KEY))
    partition = _only_partition(body["topics"], topic_field, index_field)
    if partition is None:
        raise Refused(top_level_error(api_key, ErrorCode.INVALID_REQUEST))
    return read(body, partition)


def top_level_error(api_key: int, code: ErrorCode) -> Body:
    """A response that says nothing but an error."""
    empty = {"responses": [], "session_id": 0} if api_key == ApiKey.FETCH else {"topics": []}
    return {"throttle_time_ms": 0, "error_code": code, **empty}


def _fetch_body(request: FetchRequest, cluster_id: str) -> Body:
    told = UNKNOWN_HIGH_WATERMARK if request.high_watermark is None else request.high_watermark
    partition = {
        "partition": 0,
        "current_leader_epoch": request.current_leader_epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": request.last_fetched_epoch,
        "log_start_offset": -1,
        "partition_max_bytes": 0,
        "high_watermark": told,
    }
    return {
        "cluster_id": cluster_id,
        "replica_state": {"replica_id": request.replica_id, "replica_epoch": -1},
        "max_wait_ms": request.max_wait_ms,
        "min_bytes": 0,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def _read_vote(body: Mapping[str, Any], partition: Mapping[str, Any]) -> Request:
    return VoteRequest(
        replica_epoch=partition["replica_epoch"],
        replica_id=partition["replica_id"],
        last_offset_epoch=partition["last_offset_epoch"],
        last_offset=partition["last_offset"],
        pre_vote=partition.get("pre_vote", False),
    )


def _read_begin(body: Mapping[str, Any], partition: Mapping[str, Any]) -> Request:
    return BeginQuorumEpochRequest(leader_id=partition["leader_id"], leader_epoch=partition["leader_epoch"])


def _read_end(body: Mapping[str, Any], partition: Mapping[str, Any]) -> Request:
    candidates = partition.get("preferred_candidates") or []
    successors = partition.get("preferred_successors") or [candidate["candidate_id"] for candidate in candidates]
    return EndQuorumEpochRequest(
        leader_id=partition["leader_id"],
        leader_epoch=partition["leader_epoch"],
        preferred_successors=tuple(successors),
    )


def _read_fetch(body: Mapping[str, Any], partition: Mapping[str, Any]) -> Request:
    state = body.get("replica_state")
    told = partition.get("high_watermark", UNKNOWN_HIGH_WATERMARK)
    return FetchRequest(
        # Up to v14 the id stands in the body itself.
        replica_id=body.get("replica_id", CONSUMER) if state is None else state["replica_id"],
        current_leader_epoch=partition["current_leader_epoch"],
        fetch_offset=partition["fetch_offset"],
        last_fetched_epoch=partition["last_fetched_epoch"],
        max_wait_ms=body["max_wait_ms"],
        high_watermark=None if told == UNKNOWN_HIGH_WATERMARK else told,
    )


def _read_fetch_snapshot(body: Mapping[str, Any], partition: Mapping[str, Any]) -> Request:
    return FetchSnapshotRequest(
        replica_id=body["replica_id"],
        current_leader_epoch=partition["current_leader_epoch"],
        snapshot_id=_snapshot_id(partition["snapshot_id"]),
        position=partition["position"],
        max_bytes=body["max_bytes"],
    )


_REQUESTS: Final[Mapping[int, tuple[Callable[[Mapping[str, Any], Mapping[str, Any]], Request], str, str]]] = {
    ApiKey.VOTE: (_read_vote, "topic_name", "partition_index"),
    ApiKey.BEGIN_QUORUM_EPOCH: (_read_begin, "topic_name", "partition_index"),
    ApiKey.END_QUORUM_EPOCH: (_read_end, "topic_name", "partition_index"),
    ApiKey.FETCH: (_read_fetch, "topic", "partition"),
    ApiKey.FETCH_SNAPSHOT: (_read_fetch_snapshot, "name", "partition"),
}


# Responses


def response_body(response: Response, api_version: int) -> Body:
    """The body that answers a request of that version."""
    match response:
        case VoteResponse():
            return _answered({**_leader_fields(response), "vote_granted": response.vote_granted})
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            return _answered(_leader_fields(response))
        case FetchResponse():
            return _fetch_answer(response, api_version)
        case FetchSnapshotResponse():
            partition = {
                "index": 0,
                "error_code": response.error_code,
                "snapshot_id": _snapshot_fields(response.snapshot_id),
                "current_leader": {"leader_id": response.leader_id, "leader_epoch": response.leader_epoch},
                "size": response.size,
                "position": response.position,
                "unaligned_records": response.piece,
            }
            return {
                "throttle_time_ms": 0,
                "error_code": ErrorCode.NONE,
                "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}],
            }
        case _:
            assert_never(response)


def read_response(api_key: int, body: Mapping[str, Any]) -> Response:
    """The response to a request of `request_body`, decoded.

    Raises:
        Unanswered: It has an error for the whole request, or is about something else than the metadata partition.
        CodecError: The batches in it are malformed.
        KeyError: It is none of the quorum's APIs.
    """
    read, array, topic_field, index_field = _RESPONSES[api_key]
    if body["error_code"] != ErrorCode.NONE:
        raise Unanswered(_code(body["error_code"]).name)
    partition = _only_partition(body[array], topic_field, index_field)
    if partition is None:
        raise Unanswered("a response that is not about the metadata partition alone")
    return read(partition)


def _fetch_answer(response: FetchResponse, api_version: int) -> Body:
    partition: Body = {
        "partition_index": 0,
        "error_code": response.error_code,
        "high_watermark": response.high_watermark,
        "last_stable_offset": response.high_watermark,
        "log_start_offset": response.log_start_offset,
        "current_leader": {"leader_id": response.leader_id, "leader_epoch": response.leader_epoch},
        "aborted_transactions": None,
        "records": b"".join(batch.encoded for batch in response.batches),
    }
    if response.diverging_epoch is not None:
        diverging = response.diverging_epoch
        partition["diverging_epoch"] = {"epoch": diverging.epoch, "end_offset": diverging.end_offset}
    if response.snapshot_id is not None:
        partition["snapshot_id"] = _snapshot_fields(response.snapshot_id)
    topic = {"topic_id": METADATA_TOPIC_ID} if api_version >= _FETCH_BY_ID else {"topic": METADATA_TOPIC}
    return {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.NONE,
        "session_id": 0,
        "responses": [{**topic, "partitions": [partition]}],
    }


def _read_vote_answer(partition: Mapping[str, Any]) -> Response:
    return VoteResponse(**_leader_of(partition), vote_granted=partition["vote_granted"])


def _read_begin_answer(partition: Mapping[str, Any]) -> Response:
    return BeginQuorumEpochResponse(**_leader_of(partition))


def _read_end_answer(partition: Mapping[str, Any]) -> Response:
    return EndQuorumEpochResponse(**_leader_of(partition))


def _read_fetch_answer(partition: Mapping[str, Any]) -> Response:
    diverging, snapshot = partition["diverging_epoch"], partition["snapshot_id"]
    return FetchResponse(
        error_code=_code(partition["error_code"]),
        leader_id=partition["current_leader"]["leader_id"],
        leader_epoch=partition["current_leader"]["leader_epoch"],
        high_watermark=partition["high_watermark"],
        log_start_offset=partition["log_start_offset"],
        diverging_epoch=(
            None
            if diverging["end_offset"] < 0
            else EpochEnd(epoch=diverging["epoch"], end_offset=diverging["end_offset"])
        ),
        snapshot_id=None if snapshot["end_offset"] < 0 else _snapshot_id(snapshot),
        batches=log_batches(partition["records"] or b""),
    )


def _read_fetch_snapshot_answer(partition: Mapping[str, Any]) -> Response:
    return FetchSnapshotResponse(
        error_code=_code(partition["error_code"]),
        leader_id=partition["current_leader"]["leader_id"],
        leader_epoch=partition["current_leader"]["leader_epoch"],
        snapshot_id=_snapshot_id(partition["snapshot_id"]),
        size=partition["size"],
        position=partition["position"],
        piece=partition["unaligned_records"] or b"",
    )


_RESPONSES: Final[Mapping[int, tuple[Callable[[Mapping[str, Any]], Response], str, str, str]]] = {
    ApiKey.VOTE: (_read_vote_answer, "topics", "topic_name", "partition_index"),
    ApiKey.BEGIN_QUORUM_EPOCH: (_read_begin_answer, "topics", "topic_name", "partition_index"),
    ApiKey.END_QUORUM_EPOCH: (_read_end_answer, "topics", "topic_name", "partition_index"),
    ApiKey.FETCH: (_read_fetch_answer, "responses", "topic", "partition_index"),
    ApiKey.FETCH_SNAPSHOT: (_read_fetch_snapshot_answer, "topics", "name", "index"),
}


# What both have in common


def _sent(api_key: ApiKey, body: Body) -> Sent:
    return Sent(api_key, SENT[api_key], body)


def _by_name(partition: Body) -> list[Body]:
    return [{"topic_name": METADATA_TOPIC, "partitions": [partition]}]


def _answered(partition: Body) -> Body:
    return {"error_code": ErrorCode.NONE, "topics": _by_name({"partition_index": 0, **partition})}


def _only_partition(topics: list[Body], topic_field: str, index_field: str) -> Body | None:
    """The one partition of the one topic, or None when there is another or more or less."""
    if len(topics) != 1 or len(topics[0]["partitions"]) != 1:
        return None
    topic, partition = topics[0], topics[0]["partitions"][0]
    is_metadata = topic.get(topic_field) == METADATA_TOPIC or topic.get("topic_id") == METADATA_TOPIC_ID
    return partition if is_metadata and partition[index_field] == 0 else None


def _leader_fields(response: VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse) -> Body:
    return {
        "error_code": response.error_code,
        "leader_id": response.leader_id,
        "leader_epoch": response.leader_epoch,
    }


def _leader_of(partition: Mapping[str, Any]) -> Body:
    return {
        "error_code": _code(partition["error_code"]),
        "leader_id": partition["leader_id"],
        "leader_epoch": partition["leader_epoch"],
    }


def _snapshot_fields(snapshot_id: SnapshotId) -> Body:
    return {"end_offset": snapshot_id.end_offset, "epoch": snapshot_id.epoch}


def _snapshot_id(fields: Mapping[str, Any]) -> SnapshotId:
    return SnapshotId(end_offset=fields["end_offset"], epoch=fields["epoch"])


def _code(number: int) -> ErrorCode:
    """Kafka's error; one that it had not yet when this was written is as good as an unknown one."""
    return ErrorCode(number) if number in _CODES else ErrorCode.UNKNOWN_SERVER_ERROR


_CODES: Final = frozenset(ErrorCode)
