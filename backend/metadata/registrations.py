"""Brokers come, are fenced and unfenced, and the partitions that they lead move with them.

What Kafka's controller does on BrokerRegistration, BrokerHeartbeat and UnregisterBroker (64). A fenced broker leaves
the in-sync replicas of every partition that keeps another one, and leads none. A broker that returns takes over
partitions without a leader, and is in sync again at once, which may be what a move waited for: here replicas hold no
data that they would have to fetch first. Pure; sits beside `controller`.
"""

from collections.abc import Iterator

from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.partition_changes import settled
from backend.metadata.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    Record,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    Uuid,
)
from backend.metadata.topics import Partition
from backend.metadata.writes import Outcome, WriteRequest, error_fields
from codec.error_codes import ErrorCode


def register(
    image: Image,
    *,
    broker_id: int,
    incarnation_id: Uuid,
    end_points: tuple[BrokerEndpoint, ...],
    log_dir: Uuid,
    features: tuple[BrokerFeature, ...],
) -> list[Record]:
    """A broker process starts: what its former one led moves, and it is fenced until it has caught up.

    The records must directly follow the image: the registration's epoch is its own offset.
    """
    former = image.cluster.brokers.get(broker_id)
    records: list[Record] = [] if former is None or former.fenced else fence(image, broker_id)
    records.append(
        RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=incarnation_id,
            broker_epoch=image.highest_offset + 1 + len(records),
            end_points=end_points,
            features=features,
            log_dirs=(log_dir,),
        )
    )
    return records


def fence(image: Image, broker_id: int) -> list[Record]:
    """A broker is gone, or says that it goes; nothing if it is fenced already or was never there."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return []
    changes = [_without(image, at, partition, broker_id) for at, partition in _partitions_of(image, broker_id)]
    return [
        *(change for change in changes if change is not None),
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=1),
    ]


def unfence(image: Image, broker_id: int) -> list[Record]:
    """A broker has caught up with its own registration; nothing if it is not fenced."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or not broker.fenced:
        return []
    unfencing = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=-1)
    is_active = image.cluster.change(unfencing).is_active
    changes = [
        change
        for at, partition in _partitions_of(image, broker_id)
        for change in settled(at, partition, _with(image, at, partition, broker_id), is_active)
    ]
    return [unfencing, *changes]


def unregister_broker(request: WriteRequest, image: Image) -> Outcome:
    """UnregisterBroker (64): what the broker led moves, and its registration goes."""
    broker_id = request.body["broker_id"]
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        error = ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
        return Outcome(records=(), response={"throttle_time_ms": 0, **error_fields(error)})
    changes = [_without(image, at, partition, broker_id) for at, partition in _partitions_of(image, broker_id)]
    records: tuple[Record, ...] = (
        *(change for change in changes if change is not None),
        UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch),
    )
    response = {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "error_message": ""}
    return Outcome(records=records, response=response)


def _partitions_of(image: Image, broker_id: int) -> Iterator[tuple[tuple[Uuid, int], Partition]]:
    """The partitions that have a replica there, each with its topic id and number."""
    for topic in image.topics.by_name.values():
        for partition_id, partition in enumerate(topic.partitions):
            if broker_id in partition.replicas:
                yield (topic.topic_id, partition_id), partition


def _without(image: Image, at: tuple[Uuid, int], partition: Partition, broker_id: int) -> PartitionChangeRecord | None:
    isr = tuple(replica for replica in partition.isr if replica != broker_id)
    leader = LEADER_UNCHANGED
    if partition.leader == broker_id:
        candidates = (replica for replica in partition.replicas if replica in isr and image.cluster.is_active(replica))
        leader = next(candidates, NO_LEADER)
    # The last in-sync replica stays one, or nobody would know who may lead again.
    shrunk = isr if isr and isr != partition.isr else None
    if shrunk is None and leader == LEADER_UNCHANGED:
        return None
    topic_id, partition_id = at
    return PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id, isr=shrunk, leader=leader)


def _with(image: Image, at: tuple[Uuid, int], partition: Partition, broker_id: int) -> PartitionChangeRecord | None:
    # A replica that is not in sync never leads: another one may have had records that it never got.
    leads = broker_id in partition.isr and not partition.has_leader
    if not (leads or partition.has_leader):
        return None
    # Others may have come back while nobody led, and had nobody to get in sync with.
    back = [
        replica
        for replica in partition.replicas
        if replica not in partition.isr and (replica == broker_id or image.cluster.is_active(replica))
    ]
    if not (leads or back):
        return None
    topic_id, partition_id = at
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        isr=(*partition.isr, *back) if back else None,
        leader=broker_id if leads else LEADER_UNCHANGED,
    )
