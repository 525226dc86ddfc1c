"""DescribeQuorum (KIP-595, KIP-836, KIP-853): the answer from the quorum's own state, and back. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from backend.raft.interfaces import NotLeader, QuorumState, ReplicaState
from codec.error_codes import ErrorCode

METADATA_TOPIC: Final = "__cluster_metadata"
CONTROLLER_LISTENER: Final = "CONTROLLER"


def describe_quorum(
    request: Mapping[str, Any], state: QuorumState, controllers: Mapping[int, tuple[str, int]]
) -> dict[str, Any]:
    """The body of the answer; there is one metadata partition, and all others that are asked for are unknown.

    Args:
        request: the decoded body.
        state: the quorum's.
        controllers: host and port of each voter, by id; port 0 for one that listens nowhere.
    """
    if not _asks_for_metadata_alone(request):
        topics = [
            {"topic_name": t["topic_name"], "partitions": [_unknown(p["partition_index"]) for p in t["partitions"]]}
            for t in request["topics"]
        ]
        return {"error_code": ErrorCode.NONE, "error_message": None, "topics": topics, "nodes": []}
    nodes = [
        {"node_id": node_id, "listeners": [{"name": CONTROLLER_LISTENER, "host": host, "port": port}] if port else []}
        for node_id, (host, port) in sorted(controllers.items())
    ]
    topics = [{"topic_name": METADATA_TOPIC, "partitions": [_partition(state)]}]
    return {"error_code": ErrorCode.NONE, "error_message": None, "topics": topics, "nodes": nodes}


def ask_for_metadata() -> dict[str, Any]:
    """The body of a request for the metadata partition."""
    return {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]}


def read_quorum(response: Mapping[str, Any]) -> QuorumState:
    """The state in an answer to `ask_for_metadata`.

    Raises:
        NotLeader: Who answers does not lead.
    """
    found = [p for topic in response["topics"] for p in topic["partitions"]]
    if response["error_code"] != ErrorCode.NONE or len(found) != 1 or found[0]["error_code"] != ErrorCode.NONE:
        raise NotLeader
    (partition,) = found
    return QuorumState(
        leader_id=partition["leader_id"],
        leader_epoch=partition["leader_epoch"],
        high_watermark=partition["high_watermark"],
        voters=_read_replicas(partition["current_voters"]),
        observers=_read_replicas(partition["observers"]),
    )


def _read_replicas(replicas: Iterable[Mapping[str, Any]]) -> tuple[ReplicaState, ...]:
    return tuple(
        ReplicaState(
            replica_id=replica["replica_id"],
            log_end_offset=replica["log_end_offset"],
            last_fetch_timestamp_ms=replica["last_fetch_timestamp"],
            last_caught_up_timestamp_ms=replica["last_caught_up_timestamp"],
        )
        for replica in replicas
    )


def _asks_for_metadata_alone(request: Mapping[str, Any]) -> bool:
    asked = [(t["topic_name"], p["partition_index"]) for t in request["topics"] for p in t["partitions"]]
    return asked == [(METADATA_TOPIC, 0)]


def _unknown(partition_index: int) -> dict[str, Any]:
    return {
        "partition_index": partition_index,
        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "error_message": "This server does not host this topic-partition.",
    }


def _partition(state: QuorumState) -> dict[str, Any]:
    return {
        "partition_index": 0,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "leader_id": state.leader_id,
        "leader_epoch": state.leader_epoch,
        "high_watermark": state.high_watermark,
        "current_voters": _replicas(state.voters),
        "observers": _replicas(state.observers),
    }


def _replicas(replicas: Iterable[ReplicaState]) -> list[dict[str, Any]]:
    return [
        {
            "replica_id": replica.replica_id,
            "log_end_offset": replica.log_end_offset,
            "last_fetch_timestamp": replica.last_fetch_timestamp_ms,
            "last_caught_up_timestamp": replica.last_caught_up_timestamp_ms,
        }
        for replica in replicas
    ]
