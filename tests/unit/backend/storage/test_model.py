"""Random orders, losses of power and restarts against a naive model: a list of batches and how far it was synced.

Power fails between calls and in the middle of them, with any part of what was not synced left over. What a restart
finds must be what the model allows, and it must never be called damage.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.memory import MemoryStorage
from backend.storage.memory_disk import PowerLost
from tests.unit.backend.storage.batches import batch, content, snapshot

SEGMENT_BYTES = 300
fuses = st.none() | st.integers(0, 25)


class StorageMachine(RuleBasedStateMachine):
    """The model: batches from some start on, of which those below `synced` must survive."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = MemoryStorage(segment_bytes=SEGMENT_BYTES)
        self.start = 0
        self.log: list[LogBatch] = []
        self.synced = 0
        self.election = ElectionState(leader_epoch=1)
        self.snapshots: set[SnapshotId] = set()
        self.storage.save_election(self.election)

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else self.start

    @rule(sizes=st.lists(st.integers(1, 3), max_size=6), grows=st.integers(0, 60), fuse=fuses, data=st.data())
    def append(self, sizes: list[int], grows: int, fuse: int | None, data: st.DataObject) -> None:
        batches, offset = [], self.end
        for records in sizes:
            batches.append(batch(offset, self.election.leader_epoch, records=records, value=b"x" * grows))
            offset += records
        lost = self.attempt(lambda: self.storage.append(batches), fuse)
        self.log += batches
        if lost:
            self.restart(data)

    @rule(fuse=fuses, data=st.data())
    def sync(self, fuse: int | None, data: st.DataObject) -> None:
        if self.attempt(self.storage.sync, fuse):
            self.restart(data)
        else:
            self.synced = self.end

    @rule(epochs=st.integers(0, 2), voted_id=st.integers(-1, 3), fuse=fuses, data=st.data())
    def elect(self, epochs: int, voted_id: int, fuse: int | None, data: st.DataObject) -> None:
        before = self.election
        self.election = ElectionState(leader_epoch=before.leader_epoch + epochs, voted_id=voted_id)
        if self.attempt(lambda: self.storage.save_election(self.election), fuse):
            self.restart(data, elections=(before, self.election))

    @rule(share=st.floats(0, 1), fuse=fuses, data=st.data())
    def truncate(self, share: float, fuse: int | None, data: st.DataObject) -> None:
        committed = max((known.end_offset for known in self.snapshots), default=0)
        least = sum(b.base_offset < committed for b in self.log)
        kept = least + round((len(self.log) - least) * share)
        end_offset = self.log[kept].base_offset if kept < len(self.log) else self.end
        self.synced = min(self.synced, end_offset)
        if self.attempt(lambda: self.storage.truncate(end_offset), fuse):
            self.restart(data)
        else:
            del self.log[kept:]

    @precondition(lambda self: self.synced > self.start)
    @rule(share=st.floats(0, 1), fuse=fuses, data=st.data())
    def compact(self, share: float, fuse: int | None, data: st.DataObject) -> None:
        last = self.log[int(share * (len([b for b in self.log if b.last_offset < self.synced]) - 1))]
        snapshot_id = SnapshotId(end_offset=last.last_offset + 1, epoch=last.leader_epoch)

        def act() -> None:
            self.storage.write_snapshot(snapshot_id, snapshot(snapshot_id))
            self.storage.delete_before(snapshot_id)

        before = set(self.snapshots)
        lost = self.attempt(act, fuse)
        if lost:
            self.restart(data, may_have_snapshot=snapshot_id, compacted=snapshot_id.end_offset)
        else:
            self.snapshots = {snapshot_id} | {other for other in before if other > snapshot_id}
            self.lose_start(snapshot_id.end_offset)

    @rule(ahead=st.integers(-5, 20), fuse=fuses, data=st.data())
    def install(self, ahead: int, fuse: int | None, data: st.DataObject) -> None:
        end_offset = self.end + ahead
        if end_offset <= max((known.end_offset for known in self.snapshots), default=max(self.start, 0)):
            return
        epoch = self.election.leader_epoch
        if any(b.base_offset < end_offset <= b.last_offset for b in self.log):
            return
        before = [b for b in self.log if b.last_offset < end_offset]
        if ahead <= 0 and before and before[-1].leader_epoch == epoch:
            # The quorum installs none that the log already agrees with.
            return
        snapshot_id = SnapshotId(end_offset=end_offset, epoch=epoch)

        def act() -> None:
            for at, piece in self.pieces(snapshot_id):
                self.storage.save_piece(snapshot_id, at, piece)
            self.storage.install_snapshot(snapshot_id)

        if self.attempt(act, fuse):
            self.synced = min(self.synced, end_offset)
            self.restart(data, may_have_snapshot=snapshot_id, installs=True)
        else:
            self.snapshots.add(snapshot_id)
            self.start, self.log, self.synced = end_offset, [], end_offset

    @rule(data=st.data())
    def power_fails(self, data: st.DataObject) -> None:
        self.restart(data)

    @invariant()
    def agrees(self) -> None:
        storage = self.storage
        assert content(storage) == self.log
        assert (storage.log_start_offset, storage.log_end_offset) == (self.start, self.end)
        assert storage.epochs == epochs_of(self.log)
        assert storage.election() == self.election
        assert storage.latest_snapshot == max(self.snapshots, default=None)

    def attempt(self, act: Callable[[], Any], fuse: int | None) -> bool:
        """Whether power was lost in the middle of it."""
        self.storage.disk.fuse = fuse
        try:
            act()
        except PowerLost:
            return True
        finally:
            self.storage.disk.fuse = None
        return False

    def restart(
        self,
        data: st.DataObject,
        *,
        elections: tuple[ElectionState, ...] = (),
        may_have_snapshot: SnapshotId | None = None,
        compacted: int = 0,
        installs: bool = False,
    ) -> None:
        self.storage = storage = self.storage.crash(lambda name, most: data.draw(st.integers(0, most), label=name))
        assert storage.election() in (elections or (self.election,))
        self.election = storage.election()
        latest = storage.latest_snapshot
        if may_have_snapshot is not None and latest == may_have_snapshot:
            self.snapshots.add(may_have_snapshot)
            if installs:
                self.start, self.log, self.synced = latest.end_offset, [], latest.end_offset
        self.lose_start(compacted)
        found = content(storage)
        assert found == self.log[: len(found)]
        assert storage.log_end_offset >= self.synced
        self.log = found
        self.synced = storage.log_end_offset

    def lose_start(self, below: int) -> None:
        """Whole segments below an offset may be gone; which those are is the storage's business."""
        start = self.storage.log_start_offset
        assert self.start <= start <= max(below, self.start)
        self.start = start
        self.log = [b for b in self.log if b.base_offset >= start]

    def pieces(self, snapshot_id: SnapshotId) -> Iterable[tuple[int, bytes]]:
        whole = b"".join(snapshot(snapshot_id))
        return [(at, whole[at : at + 100]) for at in range(0, len(whole), 100)]


def epochs_of(log: list[LogBatch]) -> tuple[EpochStart, ...]:
    found: dict[int, int] = {}
    for entry in log:
        found.setdefault(entry.leader_epoch, entry.base_offset)
    return tuple(EpochStart(epoch=epoch, start_offset=offset) for epoch, offset in found.items())


TestStorage = StorageMachine.TestCase
TestStorage.settings = settings(
    max_examples=2000 if os.environ.get("TIDEGATE_NIGHTLY") else 30,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
