"""The topics of an image: by name, by id, with their partitions; and the delta that a batch of records makes of them.

Two maps share structure from image to image. A topic's partitions are one tuple, index by partition id: a batch that
changes many of them copies it once. Sits under `image`; knows nothing of requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar, final

from rpds import HashTrieMap

from backend.metadata.errors import ReplayError
from backend.metadata.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    Uuid,
)

T = TypeVar("T")

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition (Kafka's PartitionRegistration); broker ids throughout, `elr` are the eligible leader replicas."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = 0
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    directories: tuple[Uuid, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def of(cls, record: PartitionRecord) -> Self:
        """The state that a record describes in full."""
        return cls(
            replicas=record.replicas,
            isr=record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            removing_replicas=record.removing_replicas,
            adding_replicas=record.adding_replicas,
            directories=record.directories,
            elr=record.eligible_leader_replicas or (),
            last_known_elr=record.last_known_elr or (),
        )

    def merge(self, change: PartitionChangeRecord) -> Partition:
        """The state after a change: the partition's epoch grows by one, the leader's when the record names a leader."""
        changed = change.leader != LEADER_UNCHANGED
        return replace(
            self,
            replicas=_or(change.replicas, self.replicas),
            isr=_or(change.isr, self.isr),
            leader=change.leader if changed else self.leader,
            leader_epoch=self.leader_epoch + changed,
            partition_epoch=self.partition_epoch + 1,
            leader_recovery_state=(
                self.leader_recovery_state if change.leader_recovery_state < 0 else change.leader_recovery_state
            ),
            removing_replicas=_or(change.removing_replicas, self.removing_replicas),
            adding_replicas=_or(change.adding_replicas, self.adding_replicas),
            directories=_or(change.directories, self.directories),
            elr=_or(change.eligible_leader_replicas, self.elr),
            last_known_elr=_or(change.last_known_elr, self.last_known_elr),
        )

    @property
    def has_leader(self) -> bool:
        """Whether any broker leads it."""
        return self.leader != NO_LEADER


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic; `partitions[i]` is partition i."""

    name: str
    topic_id: Uuid
    partitions: tuple[Partition, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsImage:
    """All topics.

    Attributes:
        by_name: Name to topic.
        names: Id to name.
        unified: Name with `_` for every `.` to the topics, with one of the two in their names, that are alike in it;
            metrics could not tell them apart, so no second one may be created.
    """

    by_name: HashTrieMap[str, Topic]
    names: HashTrieMap[Uuid, str]
    unified: HashTrieMap[str, frozenset[str]]

    @classmethod
    def empty(cls) -> Self:
        """No topic."""
        return cls(by_name=HashTrieMap(), names=HashTrieMap(), unified=HashTrieMap())

    def by_id(self, topic_id: Uuid) -> Topic | None:
        """The topic with that id."""
        name = self.names.get(topic_id)
        return None if name is None else self.by_name[name]

    def colliding(self, name: str) -> str | None:
        """A topic that metrics could not tell from `name`, the first in order of names."""
        return min(self.unified.get(unify(name), frozenset()), default=None) if collides(name) else None


@final
class TopicsDelta:
    """What a batch changes in the topics. One use: `replay` its records in order, then `apply`."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._names = image.names
        self._by_name = image.by_name
        self._unified = image.unified
        self._changed: dict[Uuid, list[Partition]] = {}

    def create(self, record: TopicRecord) -> None:
        """Add a topic without partitions.

        Raises:
            ReplayError: The name or the id is taken.
        """
        if record.name in self._by_name or record.topic_id in self._names:
            raise ReplayError(f"topic {record.name} exists already")
        self._by_name = self._by_name.insert(record.name, Topic(name=record.name, topic_id=record.topic_id))
        self._names = self._names.insert(record.topic_id, record.name)
        self._changed[record.topic_id] = []
        if collides(record.name):
            alike = self._unified.get(unify(record.name), frozenset())
            self._unified = self._unified.insert(unify(record.name), alike | {record.name})

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic and return its name.

        Raises:
            ReplayError: There is no such topic.
        """
        name = self._name(record.topic_id)
        self._by_name = self._by_name.remove(name)
        self._names = self._names.remove(record.topic_id)
        self._changed.pop(record.topic_id, None)
        if collides(name):
            alike = self._unified[unify(name)] - {name}
            unified = self._unified.remove(unify(name))
            self._unified = unified.insert(unify(name), alike) if alike else unified
        return name

    def set_partition(self, record: PartitionRecord) -> None:
        """Add the next partition of a topic, or replace one.

        Raises:
            ReplayError: There is no such topic, or the partitions before this one are missing.
        """
        partitions = self._partitions(record.topic_id)
        partition = Partition.of(record)
        if record.partition_id == len(partitions):
            partitions.append(partition)
        else:
            self._check(record.topic_id, record.partition_id, partitions)
            partitions[record.partition_id] = partition

    def change_partition(self, record: PartitionChangeRecord) -> None:
        """Change a partition in part.

        Raises:
            ReplayError: There is no such partition.
        """
        partitions = self._partitions(record.topic_id)
        self._check(record.topic_id, record.partition_id, partitions)
        partitions[record.partition_id] = partitions[record.partition_id].merge(record)

    def apply(self) -> TopicsImage:
        """The topics after the batch; what it did not touch is shared with the topics before."""
        by_name = self._by_name
        for topic_id, partitions in self._changed.items():
            topic = by_name[self._names[topic_id]]
            by_name = by_name.insert(topic.name, replace(topic, partitions=tuple(partitions)))
        return replace(self._image, by_name=by_name, names=self._names, unified=self._unified)

    def _name(self, topic_id: Uuid) -> str:
        name = self._names.get(topic_id)
        if name is None:
            raise ReplayError(f"no topic has the id {topic_id.hex()}")
        return name

    def _partitions(self, topic_id: Uuid) -> list[Partition]:
        partitions = self._changed.get(topic_id)
        if partitions is None:
            partitions = self._changed[topic_id] = list(self._by_name[self._name(topic_id)].partitions)
        return partitions

    def _check(self, topic_id: Uuid, partition_id: int, partitions: list[Partition]) -> None:
        if not 0 <= partition_id < len(partitions):
            raise ReplayError(f"topic {self._name(topic_id)} has {len(partitions)} partitions, none is {partition_id}")


def collides(name: str) -> bool:
    """Whether another name could be the same to metrics, which know no difference between `.` and `_`."""
    return "." in name or "_" in name


def unify(name: str) -> str:
    """The name as metrics see it."""
    return name.replace(".", "_")


def _or(new: T | None, old: T) -> T:
    return old if new is None else new
