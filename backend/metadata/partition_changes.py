"""How a partition changes state: elections, moves to other brokers, and what its leader reports about its followers.

Kafka's controller records each change in a PartitionChangeRecord and finishes a move when the leader says, by
AlterPartition, that the new replicas are in sync. Replicas of this backend hold no data, so there is nothing to copy:
`settled` is the report that the leader would send, and its record follows in the same batch. Only a replica whose
broker is not active keeps a move open. Pure; knows one partition and who is active, no request.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from typing import Final, TypeVar, final

from backend.metadata.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    UNASSIGNED_DIRECTORY,
    PartitionChangeRecord,
    Uuid,
)
from backend.metadata.topics import Partition

T = TypeVar("T")

IsActive = Callable[[int], bool]
"""Whether a broker may lead: registered, not fenced, not about to shut down."""

RECOVERED: Final = 0
RECOVERING: Final = 1


class Election(Enum):
    """Who may become leader when a partition changes.

    ONLINE keeps the leader while it is active and in sync, PREFERRED gives the first replica precedence, UNCLEAN takes
    an active replica that is not in sync rather than none, which would lose data where there is any.
    """

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@final
class PartitionChange:
    """A change in the making: `target` is the wanted state, `record` what it comes to.

    A move that can be completed is, as part of the change; a leader that the target no longer allows is replaced.
    """

    def __init__(self, at: tuple[Uuid, int], partition: Partition, is_active: IsActive) -> None:
        self.target = partition
        self._at = at
        self._partition = partition
        self._is_active = is_active

    def record(self, election: Election = Election.ONLINE) -> PartitionChangeRecord | None:
        """The record that leads to the target, None when there is nothing to change."""
        before, target = self._partition, completed(self.target)
        leader, unclean = _elect(target, before.leader, election, self._is_active)
        isr = (leader,) if unclean else target.isr or before.isr
        recovery = RECOVERING if unclean else target.leader_recovery_state
        if leader == before.leader and set(before.replicas) <= set(target.replicas):
            # Only a replica that goes makes the leader's epoch grow although the leader stays.
            leader = LEADER_UNCHANGED
        topic_id, partition_id = self._at
        record = PartitionChangeRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            isr=_if_new(isr, before.isr),
            leader=leader,
            replicas=_if_new(target.replicas, before.replicas),
            removing_replicas=_if_new(target.removing_replicas, before.removing_replicas),
            adding_replicas=_if_new(target.adding_replicas, before.adding_replicas),
            leader_recovery_state=-1 if recovery == before.leader_recovery_state else recovery,
            directories=_if_new(_directories(before, target.replicas), before.directories),
        )
        return None if record == PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id) else record


def settled(
    at: tuple[Uuid, int], partition: Partition, change: PartitionChangeRecord | None, is_active: IsActive
) -> list[PartitionChangeRecord]:
    """`change`, and what the leader would report after it: every active replica is in sync, and nothing to recover."""
    records = [] if change is None else [change]
    after = partition if change is None else partition.merge(change)
    if after.has_leader:
        report = PartitionChange(at, after, is_active)
        caught_up = [i for i in after.replicas if i not in after.isr and is_active(i)]
        report.target = replace(after, isr=(*after.isr, *caught_up), leader_recovery_state=RECOVERED)
        reported = report.record()
        if reported is not None:
            records.append(reported)
    return records


def is_reassigning(partition: Partition) -> bool:
    """Whether a move is under way."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def completed(partition: Partition) -> Partition:
    """The partition after its move if all the replicas that stay are in sync; else as it is."""
    if not is_reassigning(partition):
        return partition
    replicas = _without(partition.replicas, partition.removing_replicas)
    isr = _without(partition.isr, partition.removing_replicas)
    if not (replicas and isr and set(replicas) <= set(isr)):
        return partition
    return replace(partition, replicas=replicas, isr=isr, adding_replicas=(), removing_replicas=())


def _elect(target: Partition, leader: int, election: Election, is_active: IsActive) -> tuple[int, bool]:
    """The leader from now on, and whether it is one that was not in sync."""
    candidates = [i for i in target.replicas if i in target.isr and is_active(i)]
    if election is Election.PREFERRED and candidates[:1] == [target.replicas[0]]:
        return candidates[0], False
    if leader in target.isr and is_active(leader):
        return leader, False
    if candidates:
        return candidates[0], False
    if election is Election.UNCLEAN:
        unclean = next((i for i in target.replicas if is_active(i)), NO_LEADER)
        return unclean, unclean != NO_LEADER
    return NO_LEADER, False


def _directories(before: Partition, replicas: Iterable[int]) -> tuple[Uuid, ...]:
    known = dict(zip(before.replicas, before.directories, strict=False))
    return tuple(known.get(i, UNASSIGNED_DIRECTORY) for i in replicas)


def _without(broker_ids: Iterable[int], gone: Iterable[int]) -> tuple[int, ...]:
    return tuple(i for i in broker_ids if i not in set(gone))


def _if_new(new: T, old: T) -> T | None:
    return None if new == old else new
