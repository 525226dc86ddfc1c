"""Records of new partitions, for CreateTopics and CreatePartitions: placed by the controller or as a client says."""

from backend.metadata.cluster import ClusterImage
from backend.metadata.errors import ApiError
from backend.metadata.placement import place_replicas
from backend.metadata.records import UNASSIGNED_DIRECTORY, PartitionRecord, Uuid
from codec.error_codes import ErrorCode


def place(
    cluster: ClusterImage, topic_id: Uuid, *, first: int, count: int, replication_factor: int
) -> list[PartitionRecord]:
    """Records of `count` partitions from number `first` on, where the placer puts them.

    Raises:
        ApiError: INVALID_REPLICATION_FACTOR.
    """
    # The topic's id is random, so topics of one partition spread over the brokers as under Kafka's random start.
    start = first + int.from_bytes(topic_id[:4], "big")
    try:
        placed = place_replicas(cluster, partitions=count, replication_factor=replication_factor, start=start)
    except ApiError as error:
        reason = f"Unable to replicate the partition {replication_factor} time(s): {error.message}"
        raise ApiError(error.code, reason) from None
    return [new_partition(cluster, topic_id, index, replicas) for index, replicas in enumerate(placed, first)]


def new_partition(
    cluster: ClusterImage, topic_id: Uuid, partition_id: int, replicas: tuple[int, ...], *, manual: bool = False
) -> PartitionRecord:
    """The record of a partition: the active ones of its replicas are in sync, and the first of them leads.

    Raises:
        ApiError: None is active: INVALID_REPLICA_ASSIGNMENT when a client chose them, else INVALID_REPLICATION_FACTOR.
    """
    isr = tuple(broker_id for broker_id in replicas if cluster.is_active(broker_id))
    if not isr and manual:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {partition_id} "
            "are fenced or in controlled shutdown.",
        )
    if not isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently fenced or in "
            "controlled shutdown.",
        )
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=(UNASSIGNED_DIRECTORY,) * len(replicas),
    )


def validate_assignment(cluster: ClusterImage, replicas: tuple[int, ...], replication_factor: int | None) -> None:
    """Check the replicas that a client wants for a partition; the factor is that of the partitions before it.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT.
    """
    reason = _fault(cluster, replicas, replication_factor)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {reason}")


def _fault(cluster: ClusterImage, replicas: tuple[int, ...], replication_factor: int | None) -> str | None:
    if not replicas:
        return "an empty replica list."
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in cluster.brokers:
            return f"broker {broker_id}, but no such broker is registered."
        if broker_id == previous:
            return f"the broker {broker_id} more than once."
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        return (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
            f"which have {replication_factor} replica(s)."
        )
    return None
