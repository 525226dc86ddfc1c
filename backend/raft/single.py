"""A log with one leader for ever: what is appended is committed. Stands in for the quorum behind the same interfaces.

Its voters live in one process and share this log, so each of them has fetched all of it at any time. Times enter as
arguments; waiting is the business of `backend.net.quorum`.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, final

from backend.raft.interfaces import CommittedBatch, Fetched, Head, QuorumState, R, ReplicaState, S, Snapshot

FIRST_EPOCH: Final = 1


@final
class SingleLeaderLog(Generic[R, S]):
    """The committed log, its latest snapshot, and how far everybody has fetched.

    Args:
        leader_id: the voter that leads.
        voter_ids: all voters, the leader among them.
    """

    def __init__(self, leader_id: int, voter_ids: Sequence[int]) -> None:
        assert leader_id in voter_ids, "the leader is a voter"
        self._leader_id = leader_id
        self._voter_ids = tuple(voter_ids)
        self._batches: deque[CommittedBatch[R]] = deque()
        self._snapshot: Snapshot[S] | None = None
        self._observers: dict[int, ReplicaState] = {}
        self._high_watermark = 0

    @property
    def leader_epoch(self) -> int:
        """Never changes: nobody else is ever elected."""
        return FIRST_EPOCH

    @property
    def high_watermark(self) -> int:
        """The end of the log, exclusive."""
        return self._high_watermark

    @property
    def head(self) -> Head:
        """The head as of now: without another voter to ask, the leader's word is the proof."""
        return Head(high_watermark=self._high_watermark, leader_epoch=self.leader_epoch)

    @property
    def log_start_offset(self) -> int:
        """The first offset that is still there as a record."""
        return self._snapshot.end_offset if self._snapshot else 0

    def append(self, records: Sequence[R]) -> CommittedBatch[R]:
        """Append records as one batch and commit it.

        Raises:
            ValueError: There are none.
        """
        if not records:
            raise ValueError("a batch has at least one record")
        batch = CommittedBatch(base_offset=self._high_watermark, leader_epoch=self.leader_epoch, records=tuple(records))
        self._batches.append(batch)
        self._high_watermark += len(batch.records)
        return batch

    def read(self, from_offset: int, records_max: int) -> Fetched[R, S]:
        """What is there from `from_offset` on; nothing at the end of the log. See `Observer.fetch`."""
        snapshot = self._snapshot
        if snapshot is not None and from_offset < snapshot.end_offset:
            return Fetched(snapshot=snapshot)
        found: list[CommittedBatch[R]] = []
        count = 0
        # From the end, where nearly everybody reads.
        for batch in reversed(self._batches):
            if batch.last_offset < from_offset:
                break
            found.append(batch)
        found.reverse()
        for index, batch in enumerate(found):
            count += len(batch.records)
            if count >= records_max:
                return Fetched(batches=tuple(found[: index + 1]))
        return Fetched(batches=tuple(found))

    def fetched(self, replica_id: int, from_offset: int, now_ms: int) -> None:
        """Note that an observer asked from `from_offset`: it has everything below."""
        before = self._observers.get(replica_id)
        caught_up_ms = before.last_caught_up_timestamp_ms if before else -1
        self._observers[replica_id] = ReplicaState(
            replica_id=replica_id,
            log_end_offset=from_offset,
            last_fetch_timestamp_ms=now_ms,
            last_caught_up_timestamp_ms=now_ms if from_offset >= self._high_watermark else caught_up_ms,
        )

    def left(self, replica_id: int) -> None:
        """Forget an observer that follows no more."""
        self._observers.pop(replica_id, None)

    def describe(self, now_ms: int) -> QuorumState:
        """The quorum as of now, the leader's own times included."""
        return QuorumState(
            leader_id=self._leader_id,
            leader_epoch=self.leader_epoch,
            high_watermark=self._high_watermark,
            voters=tuple(
                ReplicaState(
                    replica_id=voter_id,
                    log_end_offset=self._high_watermark,
                    last_fetch_timestamp_ms=now_ms,
                    last_caught_up_timestamp_ms=now_ms,
                )
                for voter_id in self._voter_ids
            ),
            observers=tuple(self._observers[replica_id] for replica_id in sorted(self._observers)),
        )

    def compact(self, snapshot: Snapshot[S]) -> None:
        """Drop the log below a snapshot. See `Leader.compact`."""
        if snapshot.end_offset > self._high_watermark:
            raise ValueError(f"a snapshot to {snapshot.end_offset} of a log that ends at {self._high_watermark}")
        if snapshot.end_offset <= self.log_start_offset:
            return
        self._snapshot = snapshot
        while self._batches and self._batches[0].last_offset < snapshot.end_offset:
            self._batches.popleft()
