"""What controllers and brokers see of the quorum, whoever implements it.

`Leader` is the side that writes, `Observer` the side that follows. Kafka draws the same line in its RaftClient: a
record is a type parameter `R`, and so is what a snapshot holds, `S`. Offsets are those of `__cluster_metadata`; a high
watermark is exclusive, a position (the offset of an image) inclusive, so a broker that has everything stands at
`high_watermark - 1`.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar, final

R = TypeVar("R")
S = TypeVar("S")

UNKNOWN: Final = -1
"""A high watermark or epoch that is not known; a new leader has no high watermark before it commits in its epoch."""


class NotLeader(Exception):
    """This node does not lead the quorum, or ceased to before the records were committed; they may be lost or not."""


class HeadUnconfirmed(Exception):
    """No leader could confirm its high watermark in time: the head is not known."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBatch(Generic[R]):
    """Records that were committed together, at consecutive offsets from `base_offset`, by the leader of an epoch."""

    base_offset: int
    leader_epoch: int
    records: tuple[R, ...]

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + len(self.records) - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[S]):
    """All that the log says below `end_offset`, which is exclusive (KIP-630)."""

    end_offset: int
    leader_epoch: int
    content: S


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(Generic[R, S]):
    """What an observer gets next: batches, or a snapshot where the log no longer reaches back that far."""

    batches: tuple[CommittedBatch[R], ...] = ()
    snapshot: Snapshot[S] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A leader's high watermark, exclusive, with the epoch in which a majority confirmed that it leads."""

    high_watermark: int
    leader_epoch: int

    @property
    def offset(self) -> int:
        """The last committed offset: what a token names."""
        return self.high_watermark - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """How far one replica is, in the leader's eyes; times in ms since 1970 by the leader's clock, -1 for never."""

    replica_id: int
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """What DescribeQuorum tells (KIP-595, KIP-836)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]


class Observer(Protocol[R, S]):
    """One replica that follows the committed log."""

    @property
    def high_watermark(self) -> int:
        """The end of what this replica knows to be committed, exclusive; `UNKNOWN` before it knows."""
        ...

    @property
    def leader_id(self) -> int:
        """The leader that this replica knows, `UNKNOWN` for none."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The latest epoch that this replica has seen; `UNKNOWN` before it has seen one."""
        ...

    async def find_leader(self) -> int:
        """The id of the leader, as soon as one is known."""
        ...

    async def fetch(self, from_offset: int, records_max: int) -> Fetched[R, S]:
        """What was committed from `from_offset` on; waits until there is something.

        Batches come whole and in order; there is at least one, and no further one once `records_max` records are
        reached. The caller applies them all before it asks again from behind the last.
        """
        ...

    async def confirmed_head(self) -> Head:
        """The head as of some moment after this call: ReadIndex (Raft thesis 6.4, KIP-650).

        The leader answers only once a majority has acknowledged it after the call, with a committed record of its own
        epoch. What was known before the call proves nothing.

        Raises:
            HeadUnconfirmed: No leader could do so in time.
        """
        ...

    async def compact(self, snapshot: Snapshot[S]) -> int:
        """Write a snapshot, and drop the log below it; returns the number of its records once it is durable.

        Raises:
            ValueError: The snapshot reaches beyond what is committed.
        """
        ...

    async def close(self) -> None:
        """Follow no more."""
        ...


class Leader(Observer[R, S], Protocol):
    """A replica that may lead, and then writes."""

    @property
    def leads(self) -> bool:
        """Whether it leads in `leader_epoch`, as far as it knows."""
        ...

    async def deposed(self, leader_epoch: int) -> None:
        """Returns once this replica does not lead in that epoch any more."""
        ...

    def propose(self, records: Sequence[R], *, leader_epoch: int, base_offset: int) -> Awaitable[None]:
        """Append records as one batch, in the order of the calls; done once they are committed.

        The caller is the only one who writes in that epoch, so it knows the base offset; it may go on to decide, and to
        propose, before the records are committed. What was proposed before them is committed before them, or is lost
        with them.

        Raises:
            ValueError: There are none.
            NotLeader: Nothing is known of these records; the caller forgets its decisions and follows the log. Raised
                by the awaitable.
        """
        ...

    async def describe(self) -> QuorumState:
        """The quorum as of some moment after this call, with a high watermark that a majority has confirmed since.

        Raises:
            NotLeader: This replica does not lead, or not any more.
        """
        ...
