"""One replica's storage: the quorum's orders, carried out on a directory.

`DiskStorage` implements `backend.raft.storage.ReplicaStorage` over any `Disk`; `files` puts it on a real directory,
`memory` on one that can lose power. What it opens it has checked: the log, the snapshots, the quorum state, and that
they agree. It promises at least what is asked: of all calls only `append` waits for `sync` to become durable.
"""

from collections.abc import Sequence
from typing import Final

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.disk import TEMPORARY, Disk
from backend.storage.log import SEGMENT_BYTES, Log
from backend.storage.quorum_state import load_election, save_election
from backend.storage.snapshots import PART, Snapshots

NEW: Final = ElectionState(leader_epoch=0)
"""The quorum state of a new disk."""


class DiskStorage:
    """A replica's files, opened and recovered.

    Args:
        disk: The directory of the log.
        voters: Ids of the voters, which Kafka keeps in quorum-state.
        segment_bytes: What a segment of the log grows to.

    Raises:
        CorruptFile: Something is damaged; nothing was changed. See `backend.storage.recovery`.
        DiskFailed: The operating system refused.
    """

    def __init__(self, disk: Disk, *, voters: Sequence[int] = (), segment_bytes: int = SEGMENT_BYTES) -> None:
        self._disk = disk
        self._voters = tuple(voters)
        election = load_election(disk)
        self._snapshots = Snapshots(disk)
        self._log = Log(
            disk,
            segment_bytes=segment_bytes,
            snapshot=self._snapshots.latest,
            saved_epoch=election.leader_epoch if election else None,
        )
        self._election = election or NEW
        for name in disk.names():
            if name.endswith((TEMPORARY, PART)):
                disk.remove(name)
        # A process that was killed may have left names that no directory sync has covered.
        disk.sync()

    @property
    def log_start_offset(self) -> int:
        """The first offset that is there as a record, or will be; the end of the latest snapshot at most."""
        return self._log.start_offset

    @property
    def log_end_offset(self) -> int:
        """The end of the log, exclusive."""
        return self._log.end_offset

    @property
    def epochs(self) -> Sequence[EpochStart]:
        """The epochs with records in the log, in order, and where each starts."""
        return self._log.epochs

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest complete snapshot."""
        return self._snapshots.latest

    def election(self) -> ElectionState:
        """The quorum state; epoch 0 and nobody on a new disk."""
        return self._election

    def save_election(self, election: ElectionState) -> None:
        """Replace the quorum state; durable when this returns."""
        save_election(self._disk, election, self._voters)
        self._election = election

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Append at the end; durable once synced.

        Raises:
            ValueError: They do not follow the end and one another, or their bytes are not what they say.
        """
        self._log.append(batches)

    def truncate(self, end_offset: int) -> None:
        """Forget everything from `end_offset` on; durable when this returns.

        Raises:
            ValueError: No batch begins there, or a snapshot holds it: what is in a snapshot is committed.
        """
        snapshot = self._snapshots.latest
        if snapshot is not None and end_offset < snapshot.end_offset:
            raise ValueError(f"a snapshot ends at {snapshot.end_offset}, behind {end_offset}")
        self._log.truncate(end_offset)

    def read(self, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        """Whole batches from the one that holds `from_offset`, below `end_offset`; at least one, up to `max_bytes`.

        Raises:
            ValueError: `from_offset` is below the start of the log.
            CorruptLog: What was sound at start no longer is.
        """
        return self._log.read(from_offset, end_offset, max_bytes)

    def write_snapshot(self, snapshot_id: SnapshotId, pieces: Sequence[bytes]) -> None:
        """Write a snapshot of our own: record batches with header and footer. Complete and durable when this returns.

        Raises:
            CorruptSnapshot: The pieces are no snapshot of this name; none is kept.
        """
        self._snapshots.write(snapshot_id, pieces)

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        """Write a piece of a fetched snapshot; position 0 begins it anew. Not kept over a restart.

        Raises:
            ValueError: It does not follow the piece before.
        """
        self._snapshots.save_piece(snapshot_id, position, piece)

    def install_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Complete the fetched snapshot, forget the log, begin an empty one at its end; durable when this returns.

        Power may fail at any point of it: from the moment at which the snapshot is complete, opening the directory does
        the rest.

        Raises:
            CorruptSnapshot: What was fetched is no snapshot of this name; log and snapshots are as before.
        """
        self._log.expect_cut(snapshot_id.end_offset)
        self._snapshots.complete(snapshot_id)
        self._log.begin_anew(snapshot_id.end_offset)

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Forget segments wholly below the snapshot, and older snapshots.

        Raises:
            ValueError: There is no such snapshot.
        """
        if self._snapshots.size(snapshot_id) is None:
            raise ValueError(f"no snapshot ends at {snapshot_id.end_offset} in epoch {snapshot_id.epoch}")
        self._log.delete_before(snapshot_id.end_offset)
        self._snapshots.delete_before(snapshot_id)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """Bytes of a complete snapshot; None when it is not there any more."""
        return self._snapshots.size(snapshot_id)

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """A piece of a complete snapshot.

        Raises:
            KeyError: It is not there any more.
        """
        return self._snapshots.read(snapshot_id, position, max_bytes)

    def sync(self) -> None:
        """Make everything durable that was called before."""
        self._log.sync()

    def close(self) -> None:
        """Release files; not a sync."""
        self._log.close()
        self._snapshots.close()
