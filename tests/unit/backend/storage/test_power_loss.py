"""Power fails at every change and sync of every order, one after the other, with nothing or much of the rest surviving.

Where the model of `test_model` tries many histories, this tries all points of a few that matter.
"""

from collections.abc import Callable, Iterator

import pytest

from backend.raft.batches import SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.memory import MemoryStorage
from backend.storage.memory_disk import DIRECTORY, Keep, MemoryDisk, PowerLost
from tests.unit.backend.storage.batches import batch, content, run, snapshot

SEGMENT_BYTES = 3 * len(batch(0).encoded)
LOG = [*run(0, 4), *run(4, 11, 2)]
VOTE = ElectionState(leader_epoch=6, voted_id=3)
SURVIVALS: list[Keep] = [
    lambda _name, _unsynced: 0,
    lambda _name, unsynced: unsynced,
    lambda name, unsynced: unsynced if name == DIRECTORY else 0,
    lambda name, unsynced: 0 if name == DIRECTORY else unsynced,
    lambda _name, unsynced: unsynced // 2,
    lambda name, unsynced: unsynced if name.endswith(".log") else unsynced // 2,
]


def synced() -> MemoryStorage:
    """Four segments in two epochs, all synced."""
    storage = MemoryStorage(segment_bytes=SEGMENT_BYTES)
    storage.save_election(ElectionState(leader_epoch=5))
    storage.append(LOG)
    storage.sync()
    return storage


def kills(order: Callable[[MemoryStorage], None]) -> Iterator[MemoryStorage]:
    """What is found when the process is killed at such a point, and the machine goes on."""
    for fuse in range(1000):
        storage = synced()
        storage.disk.fuse = fuse
        try:
            order(storage)
        except PowerLost:
            storage.disk.fuse = None
            yield MemoryStorage(storage.disk, segment_bytes=SEGMENT_BYTES)
        else:
            break


def losses(order: Callable[[MemoryStorage], None]) -> Iterator[MemoryStorage]:
    """What is found after a restart, for each point at which power may fail while an order is carried out."""
    for keep in SURVIVALS:
        for fuse in range(1000):
            storage = synced()
            storage.disk.fuse = fuse
            try:
                order(storage)
            except PowerLost:
                yield storage.crash(keep)
            else:
                assert fuse > 0, "the order changes something"
                break


def replacing(snapshot_id: SnapshotId) -> Callable[[MemoryStorage], None]:
    def order(storage: MemoryStorage) -> None:
        storage.save_piece(snapshot_id, 0, b"".join(snapshot(snapshot_id)))
        storage.install_snapshot(snapshot_id)

    return order


def test_an_append_leaves_a_prefix_of_it() -> None:
    more = [*run(11, 13, 3), *run(13, 16, 5)]
    ends = set()
    for found in losses(lambda storage: storage.append(more)):
        assert content(found) == [*LOG, *more][: found.log_end_offset]
        ends.add(found.log_end_offset)
        found.append([batch(found.log_end_offset, 5)])
        found.sync()
        before = content(found)
        assert content(found.crash()) == before
    assert min(ends) == 11
    assert len(ends) > 3


@pytest.mark.parametrize("end_offset", [0, 2, 3, 5, 6, 10])
def test_a_truncation_leaves_what_stays_and_perhaps_what_goes(end_offset: int) -> None:
    for found in losses(lambda storage: storage.truncate(end_offset)):
        assert end_offset <= found.log_end_offset <= 11
        assert content(found) == LOG[: found.log_end_offset]


@pytest.mark.parametrize(
    "snapshot_id",
    [
        SnapshotId(end_offset=3, epoch=5),
        SnapshotId(end_offset=9, epoch=5),
        SnapshotId(end_offset=11, epoch=3),
        SnapshotId(end_offset=100, epoch=2),
    ],
    ids=["diverged at a border", "diverged in a segment", "diverged at the end", "behind"],
)
def test_a_snapshot_is_installed_or_the_log_is_as_before(snapshot_id: SnapshotId) -> None:
    outcomes = set()
    for found in losses(replacing(snapshot_id)):
        outcomes.add(found.latest_snapshot)
        if found.latest_snapshot is None:
            assert content(found) == LOG
        else:
            assert found.latest_snapshot == snapshot_id
            assert content(found) == []
            assert found.log_start_offset == found.log_end_offset == snapshot_id.end_offset
    assert outcomes == {None, snapshot_id}


def test_a_snapshot_of_our_own_is_there_before_the_log_is_shortened() -> None:
    snapshot_id = SnapshotId(end_offset=7, epoch=2)

    def order(storage: MemoryStorage) -> None:
        storage.write_snapshot(snapshot_id, snapshot(snapshot_id))
        storage.delete_before(snapshot_id)

    starts = set()
    for found in losses(order):
        starts.add(found.log_start_offset)
        assert content(found) == LOG[found.log_start_offset :]
        assert found.latest_snapshot in ((snapshot_id,) if found.log_start_offset else (None, snapshot_id))
    assert starts == {0, 3, 6}


def test_a_vote_is_the_old_or_the_new() -> None:
    found = {storage.election() for storage in losses(lambda storage: storage.save_election(VOTE))}
    assert found == {VOTE, ElectionState(leader_epoch=5)}


@pytest.mark.parametrize(
    "order",
    [
        lambda storage: storage.append([*run(11, 13, 3), *run(13, 16, 5)]),
        lambda storage: storage.truncate(5),
        lambda storage: storage.save_election(VOTE),
        replacing(SnapshotId(end_offset=9, epoch=5)),
        replacing(SnapshotId(end_offset=100, epoch=5)),
    ],
    ids=["append", "truncate", "vote", "install", "install ahead"],
)
def test_what_is_found_after_a_kill_is_durable(order: Callable[[MemoryStorage], None]) -> None:
    for found in kills(order):
        before = content(found), found.election(), found.latest_snapshot, found.epochs
        again = found.crash()
        assert (content(again), again.election(), again.latest_snapshot, again.epochs) == before


def test_a_first_start_may_fail_anywhere() -> None:
    for keep in SURVIVALS:
        for fuse in range(100):
            disk = MemoryDisk()
            disk.fuse = fuse
            try:
                MemoryStorage(disk)
            except PowerLost:
                disk.crash(keep)
                assert content(MemoryStorage(disk)) == []
            else:
                assert fuse > 3
                break
