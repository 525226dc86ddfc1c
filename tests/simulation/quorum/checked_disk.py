"""The storage of the product, on a directory that loses power, and beside it the model, which it is compared with.

What it reads must be what the model has; what it finds after a crash must be all that was durable by then. Then the
model takes over what it found. Some seeds run on it; the others on the model alone, which is quicker.
"""

from collections.abc import Sequence
from random import Random

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.memory import MemoryStorage
from tests.simulation.quorum.disk import Disk, Files
from tests.simulation.story import Violation

ALL_BYTES = 1 << 40


class CheckedDisk(Disk):
    """See the module."""

    def __init__(self, segment_batches: int, voters: Sequence[int]) -> None:
        super().__init__(segment_batches)
        self._storage = MemoryStorage(voters=voters, segment_bytes=segment_batches * 120)

    @property
    def log_start_offset(self) -> int:
        return self._storage.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._storage.log_end_offset

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        return tuple(self._storage.epochs)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self._storage.latest_snapshot

    def election(self) -> ElectionState:
        return self._storage.election()

    def save_election(self, election: ElectionState) -> None:
        self._storage.save_election(election)
        super().save_election(election)

    def append(self, batches: Sequence[LogBatch]) -> None:
        self._storage.append(batches)
        super().append(batches)

    def truncate(self, end_offset: int) -> None:
        self._storage.truncate(end_offset)
        super().truncate(end_offset)

    def read(self, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        if from_offset >= self.live.end:
            return ()
        found = self._storage.read(from_offset, end_offset, max_bytes)
        wanted = super().read(from_offset, end_offset, ALL_BYTES)
        if found != wanted[: len(found)] or bool(found) is not bool(wanted):
            raise Violation("storage_reads_what_was_written", f"{found} from {from_offset} on, and not {wanted}")
        return found

    def write_snapshot(self, snapshot_id: SnapshotId, pieces: Sequence[bytes]) -> None:
        self._storage.write_snapshot(snapshot_id, pieces)
        super().write_snapshot(snapshot_id, pieces)

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        self._storage.save_piece(snapshot_id, position, piece)
        super().save_piece(snapshot_id, position, piece)

    def install_snapshot(self, snapshot_id: SnapshotId) -> None:
        self._storage.install_snapshot(snapshot_id)
        super().install_snapshot(snapshot_id)

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        self._storage.delete_before(snapshot_id)
        for files in (self.live, self.durable):
            files.forget_snapshots(snapshot_id)
            files.trim(min(self._storage.log_start_offset, files.end))

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return self._storage.snapshot_size(snapshot_id)

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self._storage.read_snapshot(snapshot_id, position, max_bytes)

    def sync(self) -> None:
        self._storage.sync()
        super().sync()

    def crash(self, random: Random) -> tuple[int, bool]:
        """Loses power; each file keeps some of the bytes that were not synced, and the directory some of its names."""
        kept: list[bool] = []

        def keep(_name: str, unsynced: int) -> int:
            some = random.randint(0, unsynced)
            kept.append(0 < some < unsynced)
            return some

        self._storage = storage = self._storage.crash(keep)
        before = self.live
        self.live = Files(before.segment_batches)
        self.live.election = storage.election()
        self.live.start = self.live.end = storage.log_start_offset
        if storage.log_end_offset > storage.log_start_offset:
            self.live.append(storage.read(storage.log_start_offset, storage.log_end_offset, ALL_BYTES))
        latest = storage.latest_snapshot
        if latest is not None:
            self.live.write_snapshot(latest, storage.read_snapshot(latest, 0, ALL_BYTES))
        self._compare(before)
        self.durable = self.live.copy()
        self._unsynced.clear()
        return before.end - self.live.end, any(kept)

    def _compare(self, before: Files) -> None:
        """All is there that was durable, and had not been cut or let go since."""
        after = self.live
        if after.election != before.election:
            raise Violation("durable_is_durable", f"{before.election} was saved, {after.election} is found")
        if before.snapshots and max(after.snapshots, default=None) != max(before.snapshots):
            raise Violation("durable_is_durable", f"{max(before.snapshots)} was written, {after.snapshots} is found")
        for batch in self.durable.log:
            if after.start <= batch.base_offset and before.at(batch.base_offset) == batch and not after.holds(batch):
                raise Violation("durable_is_durable", f"a batch that was synced is lost: {batch}")
