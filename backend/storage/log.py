"""The metadata log of one replica: segments in order, and what is kept about them.

    segments                 batches as they came, bytes unchanged
    leader-epoch-checkpoint  which epoch starts where
    recovery-point           what was synced

Sits between `storage`, which orders, and the files. The order in which things become durable is the point of this
module: an epoch is on record before its first batch, a segment is synced before the next begins, the recovery point
falls before the log is cut, and segments go one by one, newest first from the end, oldest first from the start, so that
whatever is left after a crash is one piece.
"""

import logging
from collections.abc import Sequence
from typing import Final, final

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.storage.disk import Disk
from backend.storage.leader_epochs import load_epochs, save_epochs, within
from backend.storage.recovery import judge
from backend.storage.recovery_point import RecoveryPoint
from backend.storage.segments import Segment, segment_name, segment_offsets
from codec.batches import BatchSpan, read_batch_span

log = logging.getLogger("tidegate.storage")

SEGMENT_BYTES: Final = 1 << 30
"""A segment is not made larger than this, as in Kafka (metadata.log.segment.bytes)."""


@final
class Log:
    """The log in a directory, recovered when it is made.

    Args:
        disk: The directory.
        segment_bytes: What a segment grows to; a single batch may be larger.
        snapshot: The latest complete one in the same directory, None for none.
        saved_epoch: The epoch in quorum-state, None for no such file.

    Raises:
        CorruptLog: See `backend.storage.recovery`; nothing has been changed.
        DiskFailed: The operating system refused.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        snapshot: SnapshotId | None = None,
        saved_epoch: int | None = None,
    ) -> None:
        self._disk = disk
        self._segment_bytes = segment_bytes
        checkpoint = load_epochs(disk)
        self._segments = [Segment.scan(disk, base_offset, checkpoint or ()) for base_offset in segment_offsets(disk)]
        self._point = RecoveryPoint(disk)
        verdict = judge(
            disk,
            self._segments,
            recovery_point=self._point.offset,
            has_epochs=checkpoint is not None,
            snapshot=snapshot,
            saved_epoch=saved_epoch,
        )
        self._point.mend()
        self._epochs = verdict.epochs
        if verdict.torn is not None:
            last = self._segments[-1]
            log.warning(
                "%s: cut from %d to %d bytes at offset %d: the last write before the crash is torn (%s)",
                last.file.path,
                last.file.size,
                last.size,
                last.next_offset,
                verdict.torn.reason,
            )
            last.cut(last.size, last.next_offset)
        if verdict.begin_anew is not None:
            self.begin_anew(verdict.begin_anew)
        elif not self._segments:
            self._segments.append(Segment.create(disk, 0))
        if checkpoint != self._epochs:
            save_epochs(disk, self._epochs)
        # What was found may be only in the kernel's memory, left there by a process that was killed.
        self._segments[-1].file.sync()
        self._point.rise(self.end_offset)

    @property
    def start_offset(self) -> int:
        """The first offset that is there as a record, or will be."""
        return self._segments[0].base_offset

    @property
    def end_offset(self) -> int:
        """The end, exclusive."""
        return self._segments[-1].next_offset

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """The epochs with records in the log, and where each starts."""
        return self._epochs

    @property
    def synced_offset(self) -> int:
        """All below is durable, exclusive."""
        return self._point.offset

    @property
    def segment_count(self) -> int:
        """How many segments there are."""
        return len(self._segments)

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Write batches at the end; durable once synced.

        Raises:
            ValueError: They do not follow the end and one another, or their bytes are not what they say.
        """
        offset, epoch = self.end_offset, self._epochs[-1].epoch if self._epochs else 0
        for batch in batches:
            if batch.base_offset != offset or batch.leader_epoch < epoch:
                raise ValueError(
                    f"a batch at offset {batch.base_offset} of epoch {batch.leader_epoch} does not follow "
                    f"offset {offset}, epoch {epoch}"
                )
            said = BatchSpan(batch.base_offset, batch.last_offset, batch.leader_epoch, len(batch.encoded))
            if read_batch_span(batch.encoded) != said:
                raise ValueError(f"the bytes of the batch at offset {batch.base_offset} say something else")
            offset, epoch = batch.last_offset + 1, batch.leader_epoch
        self._record_epochs(batches)
        piece: list[LogBatch] = []
        size = self._segments[-1].size
        for batch in batches:
            if size and size + len(batch.encoded) > self._segment_bytes:
                self._write(piece)
                piece, size = [], 0
                self._roll()
            piece.append(batch)
            size += len(batch.encoded)
        self._write(piece)

    def sync(self) -> None:
        """Make all of the log durable."""
        if self._point.offset < self.end_offset:
            self._segments[-1].file.sync()
            self._point.rise(self.end_offset)

    def truncate(self, end_offset: int) -> None:
        """Forget everything from `end_offset` on; durable when this returns.

        Raises:
            ValueError: No batch begins there, or it is below the start.
        """
        if end_offset >= self.end_offset:
            if end_offset > self.end_offset:
                raise ValueError(f"the log ends at {self.end_offset}, before {end_offset}")
            return
        index = self._index_of(end_offset)
        position = self._segments[index].position_of(end_offset) if index >= 0 else None
        if position is None:
            raise ValueError(f"no batch begins at offset {end_offset}")
        self.expect_cut(end_offset)
        while len(self._segments) > index + 1:
            self._remove(-1)
        self._segments[-1].cut(position, end_offset)
        self._epochs = within(self._epochs, self.start_offset, end_offset)
        save_epochs(self._disk, self._epochs)

    def expect_cut(self, offset: int) -> None:
        """Records from `offset` on are going to be given up: a crash may take them; durable when this returns."""
        self._point.fall(offset)

    def begin_anew(self, offset: int) -> None:
        """Forget everything, and begin an empty log at `offset`, which was expected; durable when this returns."""
        assert self._point.offset <= offset, "a crash in between would look like damage"
        while self._segments:
            self._remove(-1)
        self._segments.append(Segment.create(self._disk, offset))
        self._epochs = ()
        save_epochs(self._disk, self._epochs)
        self._point.rise(offset)

    def delete_before(self, offset: int) -> None:
        """Forget segments that lie wholly below `offset`; the last one stays."""
        while len(self._segments) > 1 and self._segments[1].base_offset <= offset:
            self._remove(0)
        self._epochs = within(self._epochs, self.start_offset, self.end_offset)

    def read(self, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        """Whole batches from the one that holds `from_offset`, below `end_offset`: at least one, up to `max_bytes`.

        None where there is none, at the end of the log for example.

        Raises:
            ValueError: `from_offset` is below the start of the log.
            CorruptLog: What was sound at start no longer is.
        """
        if from_offset < self.start_offset:
            raise ValueError(f"the log starts at {self.start_offset}, behind {from_offset}")
        found: list[LogBatch] = []
        size = 0
        for segment in self._segments[self._index_of(from_offset) :]:
            for batch in segment.read(from_offset, end_offset):
                size += len(batch.encoded)
                if found and size > max_bytes:
                    return tuple(found)
                found.append(batch)
            if segment.next_offset >= end_offset or size >= max_bytes:
                break
        return tuple(found)

    def close(self) -> None:
        """Let go of the files; not a sync."""
        for segment in self._segments:
            segment.file.close()
        self._point.close()

    def _record_epochs(self, batches: Sequence[LogBatch]) -> None:
        epochs = list(self._epochs)
        for batch in batches:
            if not epochs or batch.leader_epoch > epochs[-1].epoch:
                epochs.append(EpochStart(epoch=batch.leader_epoch, start_offset=batch.base_offset))
        if len(epochs) > len(self._epochs):
            self._epochs = tuple(epochs)
            save_epochs(self._disk, self._epochs)

    def _write(self, batches: list[LogBatch]) -> None:
        if batches:
            self._segments[-1].append(batches)

    def _roll(self) -> None:
        self.sync()
        self._segments.append(Segment.create(self._disk, self.end_offset))

    def _remove(self, index: int) -> None:
        segment = self._segments.pop(index)
        segment.file.close()
        self._disk.remove(segment_name(segment.base_offset))
        self._disk.sync()

    def _index_of(self, offset: int) -> int:
        """The segment that holds an offset: the last one that does not begin behind it; -1 for none."""
        for index in range(len(self._segments) - 1, -1, -1):
            if self._segments[index].base_offset <= offset:
                return index
        return -1
