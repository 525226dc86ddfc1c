"""DescribeCluster (60), DescribeLogDirs (35): the cluster and the broker that answers."""

from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.authorizer import CLUSTER_NAME, NOT_ASKED, Operation, Resource
from backend.metadata.cluster import endpoint
from backend.metadata.reader import Reader
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode

BROKERS: Final = 1
CONTROLLERS: Final = 2
NO_SIZE: Final = -1


def describe_cluster(api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeCluster (60): brokers only; who wants controllers has to ask one."""
    endpoint_type = request.get("endpoint_type", BROKERS)
    if endpoint_type == CONTROLLERS:
        return _refused(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if endpoint_type != BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}")
    cluster = reader.image.cluster
    with_fenced = api_version >= 2 and request["include_fenced_brokers"]
    brokers = [
        {
            "broker_id": broker.broker_id,
            "host": point.host,
            "port": point.port,
            "rack": broker.rack,
            "is_fenced": broker.fenced,
        }
        for broker in (cluster.registered() if with_fenced else cluster.alive())
        if (point := endpoint(broker, reader.listener_name)) is not None
    ]
    return {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.NONE.value,
        "error_message": None,
        "endpoint_type": BROKERS,
        "cluster_id": reader.image.cluster_id,
        "controller_id": controller_id(reader),
        "brokers": brokers,
        "cluster_authorized_operations": cluster_operations(request, reader),
    }


def cluster_operations(request: Mapping[str, Any], reader: Reader) -> int:
    """What the client may do to the cluster, as bits: none if it may not even describe it."""
    access = reader.access
    if not request.get("include_cluster_authorized_operations"):
        return NOT_ASKED
    allowed = access.allows_on_cluster(Operation.DESCRIBE)
    return access.operations(Resource.CLUSTER, CLUSTER_NAME) if allowed else 0


def describe_log_dirs(request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeLogDirs (35): the replicas that the image puts on this broker, all empty; null means every topic."""
    by_name = reader.image.topics.by_name
    if request["topics"] is None:
        wanted = {name: range(len(topic.partitions)) for name, topic in by_name.items()}
    else:
        wanted = {topic["topic"]: topic["partitions"] for topic in request["topics"]}
    topics: list[Body] = []
    for name in sorted(wanted.keys() & by_name.keys()):
        partitions = by_name[name].partitions
        here = [
            index
            for index in sorted(set(wanted[name]))
            if 0 <= index < len(partitions) and reader.node_id in partitions[index].replicas
        ]
        if here:
            topics.append({"name": name, "partitions": [_replica(index) for index in here]})
    result = {
        "error_code": ErrorCode.NONE.value,
        "log_dir": reader.log_dir,
        "topics": topics,
        "total_bytes": NO_SIZE,
        "usable_bytes": NO_SIZE,
    }
    return {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "results": [result]}


def controller_id(reader: Reader) -> int:
    """The broker that clients are told to take for the controller: any can, for all forward. Here the one they ask."""
    alive = [broker.broker_id for broker in reader.image.cluster.alive()]
    return reader.node_id if reader.node_id in alive else min(alive, default=-1)


def _replica(index: int) -> Body:
    return {"partition_index": index, "partition_size": 0, "offset_lag": 0, "is_future_key": False}


def _refused(code: ErrorCode, message: str) -> Body:
    return {
        "throttle_time_ms": 0,
        "error_code": code.value,
        "error_message": message,
        "endpoint_type": BROKERS,
        "cluster_id": "",
        "controller_id": -1,
        "brokers": [],
        "cluster_authorized_operations": NOT_ASKED,
    }
