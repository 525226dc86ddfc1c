"""What the quorum orders of its storage, and what it finds there; over memory, where it is quick to see."""

import pytest

from backend.raft.batches import EpochStart, SnapshotId
from backend.raft.effects import ElectionState
from backend.raft.storage import ReplicaStorage
from backend.storage.memory import MemoryStorage
from tests.unit.backend.storage.batches import EVERYTHING, batch, content, run, snapshot

BATCH_BYTES = len(batch(0).encoded)
ELECTION = ElectionState(leader_epoch=9, leader_id=1, voted_id=1)


@pytest.fixture
def storage() -> MemoryStorage:
    """Segments of three batches."""
    storage = MemoryStorage(voters=(1, 2, 3), segment_bytes=3 * BATCH_BYTES)
    storage.save_election(ELECTION)
    return storage


def segments(storage: MemoryStorage) -> list[int]:
    return [int(name[:20]) for name in storage.disk.names() if name.endswith(".log")]


def test_a_new_storage_is_empty() -> None:
    storage: ReplicaStorage = MemoryStorage()
    assert (storage.log_start_offset, storage.log_end_offset, storage.epochs) == (0, 0, ())
    assert storage.latest_snapshot is None
    assert storage.election() == ElectionState(leader_epoch=0)
    assert storage.read(0, EVERYTHING, EVERYTHING) == ()


def test_batches_come_back_byte_for_byte_over_many_segments(storage: MemoryStorage) -> None:
    batches = [batch(0, 1, records=3), *run(3, 9, 2), batch(9, 4, records=2, value=b"x" * 500), *run(11, 15, 4)]
    storage.append(batches[:4])
    storage.append(batches[4:])
    assert content(storage) == batches
    assert segments(storage) == [0, 4, 7, 9, 11, 14]
    assert storage.epochs == (
        EpochStart(epoch=1, start_offset=0),
        EpochStart(epoch=2, start_offset=3),
        EpochStart(epoch=4, start_offset=9),
    )
    assert storage.log_end_offset == 15


def test_a_read_begins_at_the_batch_that_holds_the_offset_and_ends_whole(storage: MemoryStorage) -> None:
    storage.append([batch(0, records=4), *run(4, 12)])
    assert [b.base_offset for b in storage.read(2, EVERYTHING, 1)] == [0]
    assert [b.base_offset for b in storage.read(4, 6, EVERYTHING)] == [4, 5]
    assert [b.base_offset for b in storage.read(4, EVERYTHING, 5 * BATCH_BYTES)] == [4, 5, 6, 7, 8]
    assert [b.base_offset for b in storage.read(4, EVERYTHING, 5 * BATCH_BYTES - 1)] == [4, 5, 6, 7]
    assert storage.read(0, 3, EVERYTHING) == ()
    assert storage.read(12, EVERYTHING, EVERYTHING) == ()


def test_reads_find_their_place_in_a_long_segment() -> None:
    storage = MemoryStorage()
    storage.save_election(ELECTION)
    batches = run(0, 2000)
    storage.append(batches)
    for offset in (0, 1, 52, 53, 1000, 1998, 1999):
        assert storage.read(offset, EVERYTHING, 1) == (batches[offset],)


def test_reads_find_their_place_after_a_truncation() -> None:
    storage = MemoryStorage()
    storage.save_election(ELECTION)
    storage.append(run(0, 1000))
    storage.truncate(300)
    longer = run(300, 900, value=b"a longer value than before")
    storage.append(longer)
    for offset in range(300, 900, 7):
        assert storage.read(offset, EVERYTHING, 1) == (longer[offset - 300],)


def test_an_epoch_that_lost_its_records_is_forgotten(storage: MemoryStorage) -> None:
    storage.append(run(0, 2, 2))
    storage.sync()
    storage.append(run(2, 3, 5))
    storage = storage.crash()
    assert storage.epochs == (EpochStart(epoch=2, start_offset=0),)
    # The next leader had more of epoch 2.
    storage.append(run(2, 4, 2))
    storage.sync()
    assert content(storage.crash()) == run(0, 4, 2)


def test_what_does_not_follow_is_not_written(storage: MemoryStorage) -> None:
    storage.append(run(0, 2, 3))
    other = batch(2, 3)
    for wrong in (
        [batch(3, 3)],
        [batch(1, 3)],
        [batch(2, 2)],
        [batch(2, 3), batch(2, 3)],
        [batch(2, 4), batch(3, 3)],
    ):
        with pytest.raises(ValueError, match="does not follow"):
            storage.append(wrong)
    with pytest.raises(ValueError, match="say something else"):
        storage.append([type(other)(base_offset=2, last_offset=3, leader_epoch=3, encoded=other.encoded)])
    assert content(storage) == run(0, 2, 3)


@pytest.mark.parametrize("end_offset", range(9))
def test_truncation_forgets_everything_from_an_offset_on(storage: MemoryStorage, end_offset: int) -> None:
    batches = run(0, 2) + run(2, 6, 2) + run(6, 9, 3)
    storage.append(batches)
    storage.sync()
    storage.truncate(end_offset)
    assert content(storage) == batches[:end_offset]
    assert content(storage.crash()) == batches[:end_offset]
    storage = storage.crash()
    assert storage.epochs == tuple(
        entry
        for entry in (
            EpochStart(epoch=1, start_offset=0),
            EpochStart(epoch=2, start_offset=2),
            EpochStart(epoch=3, start_offset=6),
        )
        if entry.start_offset < end_offset
    )
    more = run(end_offset, end_offset + 5, 5)
    storage.append(more)
    storage.sync()
    assert content(storage.crash()) == batches[:end_offset] + more


def test_truncation_at_the_end_changes_nothing_and_inside_a_batch_is_refused(storage: MemoryStorage) -> None:
    storage.append([batch(0, records=2), batch(2)])
    storage.truncate(3)
    for offset in (1, 4):
        with pytest.raises(ValueError, match=r"offset 1|before 4"):
            storage.truncate(offset)
    assert storage.log_end_offset == 3


def test_what_a_snapshot_holds_is_not_truncated(storage: MemoryStorage) -> None:
    storage.append(run(0, 4))
    snapshot_id = SnapshotId(end_offset=3, epoch=1)
    storage.write_snapshot(snapshot_id, snapshot(snapshot_id))
    storage.truncate(3)
    with pytest.raises(ValueError, match="a snapshot ends at 3, behind 2"):
        storage.truncate(2)
    assert content(storage.crash(lambda _name, unsynced: unsynced)) == run(0, 3)


def test_only_what_was_synced_survives(storage: MemoryStorage) -> None:
    storage.append(run(0, 2))
    storage.sync()
    storage.append(run(2, 3))
    storage = storage.crash()
    assert content(storage) == run(0, 2)
    assert storage.election() == ELECTION


def test_a_snapshot_of_our_own_lets_old_segments_go(storage: MemoryStorage) -> None:
    storage.append(run(0, 8, 2))
    storage.sync()
    first, second = SnapshotId(end_offset=2, epoch=2), SnapshotId(end_offset=7, epoch=2)
    storage.write_snapshot(first, snapshot(first))
    storage.write_snapshot(second, snapshot(second, [b"three"] * 9))
    assert storage.latest_snapshot == second
    storage.delete_before(second)
    assert segments(storage) == [6]
    assert (storage.log_start_offset, storage.epochs) == (6, (EpochStart(epoch=2, start_offset=6),))
    assert storage.snapshot_size(first) is None
    whole = b"".join(snapshot(second, [b"three"] * 9))
    assert storage.snapshot_size(second) == len(whole)
    assert b"".join(storage.read_snapshot(second, at, 10) for at in range(0, len(whole), 10)) == whole
    storage = storage.crash()
    assert content(storage) == run(6, 8, 2)
    assert storage.latest_snapshot == second
    with pytest.raises(ValueError, match="the log starts at 6"):
        storage.read(5, EVERYTHING, 1)
    with pytest.raises(ValueError, match="no snapshot ends at 8"):
        storage.delete_before(SnapshotId(end_offset=8, epoch=2))


def test_a_fetched_snapshot_replaces_the_log(storage: MemoryStorage) -> None:
    storage.append(run(0, 5, 2))
    storage.sync()
    snapshot_id = SnapshotId(end_offset=100, epoch=4)
    whole = b"".join(snapshot(snapshot_id))
    storage.save_piece(snapshot_id, 0, b"left over from another leader")
    for at in range(0, len(whole), 50):
        storage.save_piece(snapshot_id, at, whole[at : at + 50])
        assert storage.latest_snapshot is None
    storage.install_snapshot(snapshot_id)
    for _ in range(2):
        assert (storage.log_start_offset, storage.log_end_offset, storage.epochs) == (100, 100, ())
        assert storage.latest_snapshot == snapshot_id
        assert storage.read_snapshot(snapshot_id, 0, EVERYTHING) == whole
        storage = storage.crash()
    storage.append(run(100, 103, 4))
    storage.sync()
    assert content(storage.crash()) == run(100, 103, 4)


def test_a_snapshot_of_our_own_leaves_one_that_is_being_fetched_alone(storage: MemoryStorage) -> None:
    storage.append(run(0, 5))
    storage.sync()
    own, fetched = SnapshotId(end_offset=5, epoch=1), SnapshotId(end_offset=100, epoch=1)
    whole = b"".join(snapshot(fetched))
    storage.save_piece(fetched, 0, whole[:50])
    storage.write_snapshot(own, snapshot(own))
    assert storage.latest_snapshot == own
    storage.save_piece(fetched, 50, whole[50:])
    storage.install_snapshot(fetched)
    assert storage.read_snapshot(fetched, 0, EVERYTHING) == whole


def test_pieces_of_a_snapshot_must_follow(storage: MemoryStorage) -> None:
    one, other = SnapshotId(end_offset=1, epoch=1), SnapshotId(end_offset=2, epoch=1)
    storage.save_piece(one, 0, b"abc")
    for snapshot_id, position in ((one, 2), (one, 4), (other, 3)):
        with pytest.raises(ValueError, match=r"a piece|no piece"):
            storage.save_piece(snapshot_id, position, b"d")
    with pytest.raises(ValueError, match="no piece"):
        storage.install_snapshot(other)


def test_pieces_are_not_kept_over_a_restart(storage: MemoryStorage) -> None:
    snapshot_id = SnapshotId(end_offset=1, epoch=1)
    storage.save_piece(snapshot_id, 0, b"abc")
    storage = storage.crash(lambda _name, unsynced: unsynced)
    assert not [name for name in storage.disk.names() if name.endswith(".part")]
    with pytest.raises(ValueError, match="no piece"):
        storage.save_piece(snapshot_id, 3, b"d")
