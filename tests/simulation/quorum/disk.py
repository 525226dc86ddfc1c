"""A disk that keeps its promises and no more: what was not synced is lost at a crash, in part or as a whole.

Implements `backend.raft.storage.ReplicaStorage`. There are two states, the one that the process sees and the one that
would be there after a crash; between them a list of calls. Knows nothing of the quorum.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.raft.effects import ElectionState


class Files:
    """What a disk holds.

    Attributes:
        log: batches in order, without a gap; `bases` are their base offsets.
        start: the first offset of the log, or where an empty one begins.
        end: its end, exclusive.
        snapshots: complete ones.
        parts: those that are being fetched.
    """

    def __init__(self, segment_batches: int) -> None:
        self.segment_batches = segment_batches
        self.election = ElectionState(leader_epoch=0)
        self.log: list[LogBatch] = []
        self.bases: list[int] = []
        self.start = 0
        self.end = 0
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.parts: dict[SnapshotId, bytes] = {}

    def copy(self) -> "Files":
        """Another one with the same content."""
        other = Files(self.segment_batches)
        other.election, other.start, other.end = self.election, self.start, self.end
        other.log, other.bases = self.log.copy(), self.bases.copy()
        other.snapshots, other.parts = self.snapshots.copy(), self.parts.copy()
        return other

    def at(self, base_offset: int) -> LogBatch | None:
        """The batch that begins there."""
        place = bisect_left(self.bases, base_offset)
        return self.log[place] if place < len(self.bases) and self.bases[place] == base_offset else None

    def holds(self, batch: LogBatch) -> bool:
        """Whether it is there: as a batch, or in a snapshot."""
        if any(batch.last_offset < snapshot.end_offset for snapshot in self.snapshots):
            return True
        return self.at(batch.base_offset) == batch

    def save_election(self, election: ElectionState) -> None:
        self.election = election

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.end, f"{batch.base_offset} appended at {self.end}"
            self.log.append(batch)
            self.bases.append(batch.base_offset)
            self.end = batch.last_offset + 1

    def truncate(self, end_offset: int) -> None:
        place = bisect_left(self.bases, end_offset)
        assert end_offset == self.end or self.bases[place] == end_offset, f"{end_offset} is within a batch"
        del self.log[place:], self.bases[place:]
        self.end = end_offset

    def write_snapshot(self, snapshot_id: SnapshotId, content: bytes) -> None:
        self.snapshots[snapshot_id] = content

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        part = self.parts.get(snapshot_id, b"") if position else b""
        assert position <= len(part), f"a piece at {position} behind {len(part)} bytes"
        self.parts[snapshot_id] = part[:position] + piece

    def install_snapshot(self, snapshot_id: SnapshotId) -> None:
        self.snapshots[snapshot_id] = self.parts.pop(snapshot_id)
        self.parts.clear()
        self.log.clear()
        self.bases.clear()
        self.start = self.end = snapshot_id.end_offset

    def forget_snapshots(self, snapshot_id: SnapshotId) -> None:
        """Forget older ones."""
        for older in [known for known in self.snapshots if known < snapshot_id]:
            del self.snapshots[older]

    def trim(self, start: int) -> None:
        """Forget the batches below an offset, where one begins."""
        count = bisect_left(self.bases, start)
        del self.log[:count], self.bases[:count]
        self.start = start

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Whole segments only, as files do."""
        self.forget_snapshots(snapshot_id)
        count = bisect_right(self.bases, snapshot_id.end_offset - 1)
        if count and self.log[count - 1].last_offset >= snapshot_id.end_offset:
            count -= 1
        if count < len(self.log):
            count -= count % self.segment_batches
        del self.log[:count], self.bases[:count]
        self.start = self.bases[0] if self.bases else self.end


class Disk:
    """See the module. Outlives the process.

    Attributes:
        live: what the process sees.
        durable: what a crash leaves at least.
    """

    def __init__(self, segment_batches: int) -> None:
        self.live = Files(segment_batches)
        self.durable = Files(segment_batches)
        self._unsynced: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    @property
    def log_start_offset(self) -> int:
        return self.live.start

    @property
    def log_end_offset(self) -> int:
        return self.live.end

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        starts: list[EpochStart] = []
        for batch in self.live.log:
            if not starts or starts[-1].epoch != batch.leader_epoch:
                starts.append(EpochStart(epoch=batch.leader_epoch, start_offset=batch.base_offset))
        return tuple(starts)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return max(self.live.snapshots, default=None)

    def election(self) -> ElectionState:
        return self.live.election

    def save_election(self, election: ElectionState) -> None:
        self._do(Files.save_election, election)

    def append(self, batches: Sequence[LogBatch]) -> None:
        self._do(Files.append, batches)

    def truncate(self, end_offset: int) -> None:
        self._do(Files.truncate, end_offset)

    def read(self, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        files = self.live
        place = bisect_right(files.bases, from_offset) - 1
        if place >= 0 and files.log[place].last_offset < from_offset:
            return ()
        found: list[LogBatch] = []
        size = 0
        while 0 <= place < len(files.log) and files.bases[place] < end_offset:
            batch = files.log[place]
            size += len(batch.encoded)
            if found and size > max_bytes:
                break
            found.append(batch)
            place += 1
        return tuple(found)

    def write_snapshot(self, snapshot_id: SnapshotId, pieces: Sequence[bytes]) -> None:
        self._do(Files.write_snapshot, snapshot_id, b"".join(pieces))

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        self._do(Files.save_piece, snapshot_id, position, piece)

    def install_snapshot(self, snapshot_id: SnapshotId) -> None:
        self._do(Files.install_snapshot, snapshot_id)

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        self._do(Files.delete_before, snapshot_id)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        content = self.live.snapshots.get(snapshot_id)
        return None if content is None else len(content)

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self.live.snapshots[snapshot_id][position : position + max_bytes]

    def sync(self) -> None:
        for call, arguments in self._unsynced:
            call(self.durable, *arguments)
        self._unsynced.clear()

    def close(self) -> None:
        return

    def crash(self, random: Random) -> tuple[int, bool]:
        """Loses what was not synced: the quorum state by itself, of the other files all from some call on.

        An append that is cut in the middle loses its last batches: what is torn within a batch, recovery cuts back.

        Returns:
            How many calls were lost, and whether a tail was torn.
        """
        elections = [call for call in self._unsynced if call[0] is Files.save_election]
        others = [call for call in self._unsynced if call[0] is not Files.save_election]
        survive = elections[: random.randint(0, len(elections))]
        count = random.randint(0, len(others))
        survive += others[:count]
        torn = False
        if count < len(others) and others[count][0] is Files.append:
            batches = others[count][1][0]
            some = batches[: random.randrange(len(batches))]
            survive.append((Files.append, (some,)))
            torn = bool(some) or random.random() < 0.5
        lost = len(self._unsynced) - len(survive) + torn
        for call, arguments in survive:
            call(self.durable, *arguments)
        self._unsynced.clear()
        self.live = self.durable.copy()
        return lost, torn

    def _do(self, call: Callable[..., None], *arguments: Any) -> None:
        call(self.live, *arguments)
        self._unsynced.append((call, arguments))
