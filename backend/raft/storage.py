"""What the driver needs of a disk: implemented by files and in memory in `backend.storage`, used by the driver only.

Calls block. Nothing is durable before `sync` has returned; `sync` makes everything durable that was called before it.
"""

from collections.abc import Sequence
from typing import Protocol

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.raft.effects import ElectionState


class ReplicaStorage(Protocol):
    """One replica's log, snapshots and quorum state."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that is there as a record; the end of the latest snapshot at most."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The end of the log, exclusive."""
        ...

    @property
    def epochs(self) -> Sequence[EpochStart]:
        """The epochs with records in the log, in order, and where each starts."""
        ...

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest complete snapshot."""
        ...

    def election(self) -> ElectionState:
        """The quorum state; epoch 0 and nobody on a new disk."""
        ...

    def save_election(self, election: ElectionState) -> None:
        """Replace the quorum state."""
        ...

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Append at the end; the first base offset is the end of the log."""
        ...

    def truncate(self, end_offset: int) -> None:
        """Forget everything from `end_offset` on, which is a batch's base offset or the end."""
        ...

    def read(self, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        """Whole batches from the one that holds `from_offset`, below `end_offset`; at least one, up to `max_bytes`."""
        ...

    def write_snapshot(self, snapshot_id: SnapshotId, pieces: Sequence[bytes]) -> None:
        """Write a snapshot of our own: record batches with header and footer; complete when this returns and synced."""
        ...

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        """Write a piece of a fetched snapshot; position 0 begins it anew."""
        ...

    def install_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Complete the fetched snapshot, forget the log, begin an empty one at its end offset."""
        ...

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Forget segments wholly below the snapshot, and older snapshots."""
        ...

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Bytes of a complete snapshot; None when it is not there any more."""
        ...

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """A piece of a complete snapshot."""
        ...

    def sync(self) -> None:
        """Make everything durable that was called before."""
        ...

    def close(self) -> None:
        """Release files; not a sync."""
        ...
