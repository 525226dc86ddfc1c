"""Where each epoch begins in the own log: all that the quorum needs to know of it to compare it with another's.

Two logs that have a record of the same epoch at the same offset are equal up to there, because one leader wrote that
epoch and wrote it in order. So a follower names its end and the epoch of its last record, and the leader sees at once
whether that is a prefix of its own log. Rules, each of which a mutation replaces:

    divergence          the leader: the follower's end is not in my log; cut back to where the epoch ends in mine
    truncation_offset   the follower: how far to cut
    reaches             the leader: my log begins too late to tell; a snapshot is needed

Knows offsets and epochs; no batch, no disk, no peer. Source: KIP-595, ReplicatedLog.validateOffsetAndEpoch of Kafka.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import final

from backend.raft.batches import EpochEnd, EpochStart, SnapshotId


@final
class LogIndex:
    """Start, end and epochs of one log.

    Args:
        start_offset: the first offset that is there.
        end_offset: the end, exclusive.
        epochs: epochs with records and where each starts, in order.
        snapshot: the newest snapshot; it tells the epoch before the start when it ends there.

    Raises:
        ValueError: These cannot belong together.
    """

    __slots__ = ("_epoch_before", "_epochs", "_starts", "end_offset", "start_offset")

    def __init__(
        self, *, start_offset: int, end_offset: int, epochs: Sequence[EpochStart], snapshot: SnapshotId | None
    ) -> None:
        covered = snapshot.end_offset if snapshot else 0
        if not start_offset <= covered <= end_offset:
            raise ValueError(f"a log from {start_offset} to {end_offset} with a snapshot to {covered}")
        self.start_offset = start_offset
        self.end_offset = end_offset
        self._epochs = [start.epoch for start in epochs]
        self._starts = [start.start_offset for start in epochs]
        # The epoch of the record before the start; None when nothing here tells.
        self._epoch_before: int | None = 0 if start_offset == 0 else None
        if snapshot and snapshot.end_offset == start_offset:
            self._epoch_before = snapshot.epoch
        self._forget_epochs_before(start_offset)
        if start_offset < end_offset and not self._epochs:
            raise ValueError(f"a log from {start_offset} to {end_offset} without an epoch")

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, be it in the log or in the snapshot before it; 0 when there is none."""
        return self._epochs[-1] if self._epochs else self._epoch_before or 0

    def epoch_of(self, offset: int) -> int | None:
        """Epoch of the record at an offset; None when it is not there and nothing tells."""
        if offset == self.start_offset - 1:
            return self._epoch_before
        if not self.start_offset <= offset < self.end_offset:
            return None
        return self._epochs[bisect_right(self._starts, offset) - 1]

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch up to this one that has a record here, and where it ends; 0 and 0 for none."""
        after = bisect_right(self._epochs, epoch)
        if after == 0:
            if self._epoch_before is not None and self._epoch_before <= epoch:
                return EpochEnd(epoch=self._epoch_before, end_offset=self.start_offset)
            return EpochEnd(epoch=0, end_offset=0)
        end_offset = self._starts[after] if after < len(self._epochs) else self.end_offset
        return EpochEnd(epoch=self._epochs[after - 1], end_offset=end_offset)

    def reaches(self, offset: int, epoch: int) -> bool:
        """Whether this log can tell about somebody whose log ends at `offset` with a record of `epoch`."""
        if self.start_offset == 0:
            return True
        if offset <= self.start_offset:
            return offset == self.start_offset and epoch == self._epoch_before
        earliest = self._epochs[0] if self._epoch_before is None else self._epoch_before
        return epoch >= earliest

    def divergence(self, offset: int, epoch: int) -> EpochEnd | None:
        """None when a log that ends at `offset` with a record of `epoch` is a prefix of this one.

        Otherwise the largest epoch up to that one here, and its end: everything of the other log beyond is foreign.
        Only where `reaches` holds.
        """
        end = self.end_of_epoch(epoch)
        return None if end.epoch == epoch and offset <= end.end_offset else end

    def truncation_offset(self, leader_end: EpochEnd) -> int:
        """How far the own log may agree with a leader's that says `leader_end`; 0 when it cannot."""
        own_end = self.end_of_epoch(leader_end.epoch)
        if own_end.epoch == leader_end.epoch:
            return min(own_end.end_offset, leader_end.end_offset)
        return own_end.end_offset

    def append(self, epoch: int, last_offset: int) -> None:
        """A batch of a leader of `epoch` stands at the end now."""
        assert epoch >= self.last_epoch, "epochs never go back in a log"
        if not self._epochs or epoch > self._epochs[-1]:
            self._epochs.append(epoch)
            self._starts.append(self.end_offset)
        self.end_offset = last_offset + 1

    def truncate(self, end_offset: int) -> None:
        """Everything from `end_offset` on is gone."""
        assert self.start_offset <= end_offset <= self.end_offset, "only what is there is cut"
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._epochs.pop()
        self.end_offset = end_offset

    def trim(self, snapshot: SnapshotId) -> None:
        """What a snapshot holds is gone from the start of the log."""
        if snapshot.end_offset <= self.start_offset:
            return
        assert snapshot.end_offset <= self.end_offset, "the log reaches beyond its own snapshot"
        self._epoch_before = snapshot.epoch
        self.start_offset = snapshot.end_offset
        self._forget_epochs_before(snapshot.end_offset)

    def begin_anew(self, snapshot: SnapshotId) -> None:
        """An empty log behind a snapshot."""
        self.start_offset = self.end_offset = snapshot.end_offset
        self._epoch_before = snapshot.epoch
        self._epochs.clear()
        self._starts.clear()

    def _forget_epochs_before(self, offset: int) -> None:
        first = bisect_right(self._starts, offset) - 1
        if first > 0:
            del self._epochs[:first], self._starts[:first]
