"""What a log's files amount to at start: sound, torn at the end by a crash, or damaged.

Only reads. A tail is torn, and is cut back, where all of these hold; everything else is damage and raises `CorruptLog`:

| Rule | Reason |
|---|---|
| it is in the last segment | a segment is synced before the next is begun |
| nothing below the recovery point is lost | what was synced cannot be torn by a crash |
| from there to the end no batch has the right checksum | a crash tears what was being written, and that is the end |

Two more things are damage wherever they are: an epoch that `leader-epoch-checkpoint` does not tell of its offset (the
checksum does not cover the epoch), and one that is later than that in quorum-state (which is saved before anything of
an epoch is appended).

By looks alone a damaged last batch that was synced cannot be told from a torn one. The recovery point tells them apart,
exactly after a killed process, and up to the kernel's delay (`recovery_point`) after a loss of power; within that delay
a medium that damages the very last batch while power fails would go unnoticed, as it always does in Kafka, which keeps
no such point for this log. To cut a torn batch is safe, because nobody was told of it: a promise follows the sync.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

from backend.raft.batches import EpochStart, SnapshotId
from backend.storage.disk import Disk
from backend.storage.errors import CorruptLog
from backend.storage.leader_epochs import FILE_NAME as EPOCHS_FILE_NAME
from backend.storage.leader_epochs import within
from backend.storage.quorum_state import FILE_NAME as QUORUM_STATE_NAME
from backend.storage.scan import sound_batch_from
from backend.storage.segments import Break, Segment


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the opened log is to do.

    Attributes:
        torn: where to cut the last segment.
        begin_anew: the offset at which to begin an empty log, since the latest snapshot replaces this one.
        epochs: those of the log once it is cut.
    """

    torn: Break | None = None
    begin_anew: int | None = None
    epochs: tuple[EpochStart, ...] = ()


def judge(
    disk: Disk,
    segments: Sequence[Segment],
    *,
    recovery_point: int,
    has_epochs: bool,
    snapshot: SnapshotId | None,
    saved_epoch: int | None,
) -> Verdict:
    """Judge scanned segments, in order of their offsets.

    Args:
        disk: for messages.
        segments: may be none on a new disk.
        recovery_point: all below was synced.
        has_epochs: whether there is a `leader-epoch-checkpoint`.
        snapshot: the latest complete one.
        saved_epoch: the epoch in quorum-state, None for no such file.

    Raises:
        CorruptLog: See the table above.
    """
    if not has_epochs and any(segment.file.size for segment in segments):
        raise CorruptLog(disk.path(EPOCHS_FILE_NAME), 0, "missing, though the log has records")
    _check_sequence(segments)
    torn = _torn(segments, recovery_point)
    start = segments[0].base_offset if segments else 0
    end = segments[-1].next_offset if segments else 0
    epochs = _epochs(segments)
    _check_saved_epoch(disk, epochs, snapshot, saved_epoch)
    if torn is not None and torn.next_offset < recovery_point:
        raise CorruptLog(
            segments[-1].file.path,
            torn.position,
            f"{torn.reason}; all below offset {recovery_point} was synced, so this is no torn write",
        )
    if snapshot is not None and _is_superseded(start, end, epochs, snapshot):
        _check_end(disk, segments, snapshot.end_offset, recovery_point)
        return Verdict(begin_anew=snapshot.end_offset)
    _check_end(disk, segments, end, recovery_point)
    if start > (snapshot.end_offset if snapshot else 0):
        raise CorruptLog(segments[0].file.path, 0, f"offsets below {start} are in no segment and no snapshot")
    if snapshot is not None and snapshot.end_offset > start:
        held = within(epochs, start, snapshot.end_offset)[-1].epoch
        if held > snapshot.epoch:
            raise CorruptLog(
                segments[0].file.path,
                0,
                f"leader epoch {held} before offset {snapshot.end_offset}, where the snapshot has {snapshot.epoch}",
            )
    return Verdict(torn=torn, epochs=epochs)


def _check_sequence(segments: Sequence[Segment]) -> None:
    for before, segment in pairwise(segments):
        if before.broken is not None:
            raise CorruptLog(before.file.path, before.broken.position, before.broken.reason)
        if segment.base_offset != before.next_offset:
            raise CorruptLog(
                segment.file.path,
                0,
                f"begins at offset {segment.base_offset}; the segment before it ends at {before.next_offset}",
            )


def _torn(segments: Sequence[Segment], recovery_point: int) -> Break | None:
    broken = segments[-1].broken if segments else None
    if broken is None:
        return None
    file = segments[-1].file
    sound = sound_batch_from(file, segments[-1].size)
    if sound is not None:
        raise CorruptLog(file.path, broken.position, f"{broken.reason}; a sound batch stands at byte {sound}")
    return broken


def _check_saved_epoch(
    disk: Disk, epochs: Sequence[EpochStart], snapshot: SnapshotId | None, saved_epoch: int | None
) -> None:
    newest = max(epochs[-1].epoch if epochs else 0, snapshot.epoch if snapshot else 0)
    path = disk.path(QUORUM_STATE_NAME)
    if saved_epoch is None and newest > 0:
        raise CorruptLog(path, 0, f"missing, though there are records of epoch {newest}: a vote may be forgotten")
    if saved_epoch is not None and saved_epoch < newest:
        raise CorruptLog(path, 0, f"its epoch is {saved_epoch}, though there are records of epoch {newest}")


def _check_end(disk: Disk, segments: Sequence[Segment], end: int, recovery_point: int) -> None:
    if end >= recovery_point:
        return
    path = segments[-1].file.path if segments else disk.path("")
    size = segments[-1].size if segments else 0
    raise CorruptLog(path, size, f"the log ends at offset {end}; all below {recovery_point} was synced")


def _is_superseded(start: int, end: int, epochs: Sequence[EpochStart], snapshot: SnapshotId) -> bool:
    """Whether a fetched snapshot was installed, and power lost before the log was begun anew at its end."""
    if end < snapshot.end_offset:
        return True
    before = within(epochs, start, snapshot.end_offset)
    return bool(before) and before[-1].epoch < snapshot.epoch


def _epochs(segments: Sequence[Segment]) -> tuple[EpochStart, ...]:
    found: list[EpochStart] = []
    for segment in segments:
        for entry in segment.epochs:
            if not found or entry.epoch > found[-1].epoch:
                found.append(entry)
    return tuple(found)
