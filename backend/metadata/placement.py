"""Where replicas go: stripes over racks and brokers, as Kafka's striped placer lays them, without its randomness.

Each partition starts one rack further than the one before, and within each rack one broker further, so leaders and
followers spread evenly. A fenced broker gets a replica only where its rack has no other left, and never leads. Kafka
starts at a random place and shuffles after a full round; here the start is an argument and a round repeats.
"""

from dataclasses import dataclass, field
from typing import Final, final

from backend.metadata.cluster import ClusterImage
from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

NO_BROKER: Final = -1


def place_replicas(
    cluster: ClusterImage, *, partitions: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """Broker ids of the replicas of each partition, the leader first.

    Args:
        cluster: Who is there.
        partitions: How many to place.
        replication_factor: Replicas of each, positive.
        start: Moves where the first partition starts.

    Raises:
        ApiError: INVALID_REPLICATION_FACTOR, with the reason alone as its message.
    """
    brokers = cluster.registered()
    alive = sum(not broker.fenced for broker in brokers)
    if alive == 0:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    racks: dict[str, _Rack] = {}
    for broker in brokers:
        rack = racks.setdefault("" if broker.rack is None else broker.rack, _Rack())
        (rack.fenced if broker.fenced else rack.unfenced).append(broker.broker_id)
    stripes = [racks[name] for name in sorted(racks)]
    return [_place(stripes, replication_factor, start + partition) for partition in range(partitions)]


@final
@dataclass(slots=True)
class _Rack:
    """The brokers of a rack, in ascending order of their ids; each is handed out once a partition."""

    unfenced: list[int] = field(default_factory=list)
    fenced: list[int] = field(default_factory=list)

    def rotated(self, turn: int) -> tuple[list[int], list[int]]:
        return _rotated(self.unfenced, turn), _rotated(self.fenced, turn)


def _rotated(brokers: list[int], turn: int) -> list[int]:
    if not brokers:
        return []
    first = turn % len(brokers)
    return brokers[first:] + brokers[:first]


def _place(racks: list[_Rack], replication_factor: int, turn: int) -> tuple[int, ...]:
    left = [rack.rotated(turn) for rack in racks]
    first = turn % len(racks)
    leading = next(index for index in _around(first, len(racks)) if left[index][0])
    replicas = [left[leading][0].pop(0)]
    rack, skip = first, leading
    while len(replicas) < replication_factor:
        # The leader's rack has had its turn in the first round.
        if rack == skip:
            skip = NO_BROKER
        else:
            unfenced, fenced = left[rack]
            if unfenced or fenced:
                replicas.append((unfenced or fenced).pop(0))
        rack = (rack + 1) % len(racks)
    return tuple(replicas)


def _around(first: int, count: int) -> list[int]:
    return [(first + step) % count for step in range(count)]
