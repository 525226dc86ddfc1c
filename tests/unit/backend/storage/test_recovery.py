"""What a directory amounts to at start: a torn tail is cut, whatever else is wrong is named and not served."""

import logging
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.raft.batches import SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.errors import CorruptFile, CorruptLog, CorruptSnapshot
from backend.storage.memory import MemoryStorage
from backend.storage.memory_disk import MemoryDisk
from tests.unit.backend.storage.batches import EVERYTHING, batch, content, run, snapshot

BATCH_BYTES = len(batch(0).encoded)
SEGMENT_BYTES = 4 * BATCH_BYTES
ELECTION = ElectionState(leader_epoch=8, leader_id=2)
SNAPSHOT = SnapshotId(end_offset=5, epoch=3)
FIRST, SECOND, LAST = "00000000000000000000.log", "00000000000000000004.log", "00000000000000000008.log"


@pytest.fixture
def disk() -> MemoryDisk:
    """See `sound_directory`."""
    return sound_directory()


def sound_directory() -> MemoryDisk:
    """A log of three segments, all synced, and a snapshot."""
    storage = reopen(MemoryDisk())
    storage.save_election(ELECTION)
    storage.append([*run(0, 2), *run(2, 5, 3), *run(5, 7, 4), *run(7, 10, 6), *run(10, 11, 8)])
    storage.sync()
    storage.write_snapshot(SNAPSHOT, snapshot(SNAPSHOT))
    storage.disk.crash(everything_survives)
    return storage.disk


def reopen(disk: MemoryDisk) -> MemoryStorage:
    return MemoryStorage(disk, voters=(1, 2, 3), segment_bytes=SEGMENT_BYTES)


def everything_survives(_name: str, unsynced: int) -> int:
    return unsynced


def damage(disk: MemoryDisk, name: str, position: int, change: Callable[[int], int]) -> None:
    file = disk.open(name)
    file.write(position, bytes([change(file.read(position, 1)[0])]))
    file.sync()


def cut(disk: MemoryDisk, name: str, size: int) -> None:
    file = disk.open(name)
    file.truncate(size)
    file.sync()


def put(disk: MemoryDisk, name: str, data: bytes) -> None:
    file = disk.open(name)
    file.write(file.size, data)
    file.sync()


def test_the_directory_is_sound(disk: MemoryDisk) -> None:
    storage = reopen(disk)
    assert storage.log_end_offset == 11
    assert {FIRST, SECOND, LAST} <= set(disk.names())


def test_any_flipped_bit_of_the_log_is_found_where_it_is(disk: MemoryDisk) -> None:
    for name in (FIRST, SECOND, LAST):
        for position in range(disk.open(name).size):
            damage(disk, name, position, lambda byte, bit=1 << position % 8: byte ^ bit)  # type: ignore[misc]
            with pytest.raises(CorruptLog) as caught:
                reopen(disk)
            assert caught.value.path == f"memory/{name}"
            begin = position // BATCH_BYTES * BATCH_BYTES
            assert begin <= caught.value.position < begin + BATCH_BYTES, position
            damage(disk, name, position, lambda byte, bit=1 << position % 8: byte ^ bit)  # type: ignore[misc]
    assert reopen(disk).log_end_offset == 11


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("00000000000000000005-0000000003.checkpoint", CorruptSnapshot),
        ("quorum-state", CorruptFile),
        ("leader-epoch-checkpoint", CorruptLog),
    ],
)
def test_any_flipped_bit_of_the_other_files_is_found(disk: MemoryDisk, name: str, error: type[CorruptFile]) -> None:
    for position in range(disk.open(name).size):
        for bit in (1, 1 << position % 8, 32):
            damage(disk, name, position, lambda byte, bit=bit: byte ^ bit)  # type: ignore[misc]
            with pytest.raises(error) as caught:
                reopen(disk)
            assert name == "leader-epoch-checkpoint" or caught.value.path == f"memory/{name}"
            damage(disk, name, position, lambda byte, bit=bit: byte ^ bit)  # type: ignore[misc]
    assert reopen(disk).log_end_offset == 11


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_happens_to_a_file_its_old_content_is_served_or_none(data: st.DataObject) -> None:
    disk = sound_directory()
    sound = content(reopen(disk))
    name = data.draw(st.sampled_from(disk.names()))
    file = disk.open(name)
    old = file.read(0, file.size)
    start = data.draw(st.integers(0, len(old)))
    end = data.draw(st.integers(start, min(len(old), start + 100)))
    new = old[:start] + data.draw(st.binary(max_size=100)) + old[end:]
    file.truncate(0)
    file.write(0, new)
    try:
        storage = reopen(disk)
    except CorruptFile:
        assert new != old
        return
    assert content(storage) == sound
    assert storage.election() == ELECTION
    assert storage.latest_snapshot == SNAPSHOT


def test_one_slot_of_the_recovery_point_is_enough_and_none_is_damage(disk: MemoryDisk) -> None:
    damage(disk, "recovery-point", 7, lambda byte: byte ^ 1)
    assert reopen(disk).log_end_offset == 11
    for position in (7, 512):
        damage(disk, "recovery-point", position, lambda byte: byte ^ 4)
    with pytest.raises(CorruptLog, match="recovery-point is damaged at byte 0"):
        reopen(disk)


def test_the_error_says_what_to_do(disk: MemoryDisk) -> None:
    damage(disk, SECOND, 100, lambda byte: byte ^ 1)
    with pytest.raises(CorruptLog) as caught:
        reopen(disk)
    assert str(caught.value).startswith(f"memory/{SECOND} is damaged at byte 90: batch.crc: ")
    assert "Move the node's directory away and start it again" in str(caught.value)


def test_a_tail_cut_at_any_byte_recovers_to_the_last_whole_batch(
    disk: MemoryDisk, caplog: pytest.LogCaptureFixture
) -> None:
    storage = reopen(disk)
    storage.append([batch(11, 8)])
    # Batch 11 fills the segment; those after it begin another.
    name = "00000000000000000012.log"
    for size in range(BATCH_BYTES * 2 + 1):
        storage.truncate(12)
        storage.append(run(12, 16, 8))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tidegate.storage"):
            storage = storage.crash(lambda file, unsynced, size=size: size if file == name else unsynced)  # type: ignore[misc]
        whole, torn = divmod(size, BATCH_BYTES)
        assert storage.log_end_offset == 12 + whole
        assert content(storage)[-1] == batch(11 + whole, 8)
        assert storage.disk.open(name).size == whole * BATCH_BYTES
        cuts = f"memory/{name}: cut from {size} to {whole * BATCH_BYTES} bytes at offset {12 + whole}"
        assert (cuts in caplog.text) == bool(torn)


@pytest.mark.parametrize(
    "tail",
    [
        b"\0" * 200,
        batch(11, 8).encoded[:30] + b"\0" * (BATCH_BYTES - 30),
        batch(11, 8).encoded[:-1] + b"\xff",
        b"\xff" * 7,
        b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 100,
    ],
    ids=["zeros", "zeros from the middle on", "another last byte", "noise", "an enormous length"],
)
def test_torn_writes_of_all_kinds_are_cut(disk: MemoryDisk, tail: bytes) -> None:
    put(disk, LAST, tail)
    storage = reopen(disk)
    assert storage.log_end_offset == 11
    assert storage.disk.open(LAST).size == 3 * BATCH_BYTES
    storage.append([batch(11, 8)])
    storage.sync()
    assert storage.crash().log_end_offset == 12


def test_damage_with_a_sound_batch_behind_it_is_no_torn_write(disk: MemoryDisk) -> None:
    put(disk, LAST, b"\0" * 40 + batch(12, 8).encoded)
    with pytest.raises(CorruptLog, match=rf"a sound batch stands at byte {3 * BATCH_BYTES + 40}"):
        reopen(disk)


def test_a_batch_in_the_wrong_place_is_no_torn_write(disk: MemoryDisk) -> None:
    for wrong in (batch(10, 8), batch(12, 8), batch(11, 7)):
        put(disk, LAST, wrong.encoded)
        with pytest.raises(CorruptLog, match=r"base_offset: 1|partition_leader_epoch: 7 where 8"):
            reopen(disk)
        cut(disk, LAST, 3 * BATCH_BYTES)


def test_a_log_without_recorded_epochs_is_damage(disk: MemoryDisk) -> None:
    cut(disk, "leader-epoch-checkpoint", 0)
    put(disk, "leader-epoch-checkpoint", b"0\n0\n")
    with pytest.raises(CorruptLog, match="partition_leader_epoch: 1 where none is recorded"):
        reopen(disk)


def test_an_epoch_that_nobody_recorded_is_damage(disk: MemoryDisk) -> None:
    storage = reopen(disk)
    storage.save_election(ElectionState(leader_epoch=9))
    put(disk, LAST, batch(11, 9).encoded)
    with pytest.raises(CorruptLog, match="partition_leader_epoch: 9 where 8 is recorded"):
        reopen(disk)


def test_what_was_synced_cannot_be_torn(disk: MemoryDisk) -> None:
    for size in range(3 * BATCH_BYTES - 1, -1, -1):
        cut(disk, LAST, size)
        with pytest.raises(CorruptLog, match=r"all below (offset )?11 was synced") as caught:
            reopen(disk)
        assert caught.value.path == f"memory/{LAST}"


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ([FIRST, SECOND], "offsets below 8 are in no segment and no snapshot"),
        ([SECOND], "begins at offset 8; the segment before it ends at 4"),
        ([LAST], "the log ends at offset 8; all below 11 was synced"),
        ([FIRST, SECOND, LAST], "the log ends at offset 5; all below 11 was synced"),
        (["leader-epoch-checkpoint"], "missing, though the log has records"),
        (["quorum-state"], "missing, though there are records of epoch 8"),
    ],
)
def test_a_missing_file_is_damage(disk: MemoryDisk, names: list[str], complaint: str) -> None:
    for name in names:
        disk.remove(name)
    with pytest.raises(CorruptLog, match=complaint):
        reopen(disk)


def test_segments_that_the_snapshot_covers_may_be_missing(disk: MemoryDisk) -> None:
    disk.remove(FIRST)
    assert (storage := reopen(disk)).log_start_offset == 4
    assert content(storage)[0].base_offset == 4


def test_segments_that_overlap_are_damage(disk: MemoryDisk) -> None:
    disk.rename(SECOND, "00000000000000000003.log")
    with pytest.raises(CorruptLog, match="begins at offset 3; the segment before it ends at 4"):
        reopen(disk)


def test_a_segment_of_older_epochs_behind_one_of_newer_is_damage(disk: MemoryDisk) -> None:
    cut(disk, SECOND, 0)
    put(disk, SECOND, b"".join(b.encoded for b in run(4, 8, 2)))
    with pytest.raises(CorruptLog, match=rf"{SECOND} is damaged at byte 0: batch.partition_leader_epoch: 2 where 3"):
        reopen(disk)


def test_a_quorum_state_of_the_past_is_damage(disk: MemoryDisk) -> None:
    storage = reopen(disk)
    storage.save_election(ElectionState(leader_epoch=7))
    with pytest.raises(CorruptLog, match="its epoch is 7, though there are records of epoch 8"):
        reopen(disk)


def test_a_snapshot_of_an_older_epoch_than_the_log_is_damage(disk: MemoryDisk) -> None:
    disk.rename("00000000000000000005-0000000003.checkpoint", "00000000000000000010-0000000003.checkpoint")
    with pytest.raises(CorruptLog, match="leader epoch 6 before offset 10, where the snapshot has 3"):
        reopen(disk)


def test_a_snapshot_without_header_footer_or_end_is_none(disk: MemoryDisk) -> None:
    storage = reopen(disk)
    snapshot_id = SnapshotId(end_offset=6, epoch=4)
    header, records, footer = snapshot(snapshot_id)
    other = snapshot(SnapshotId(end_offset=6, epoch=5))
    for pieces in ([records], [header, records], [header], [], [header, records, footer[:-1]], [header, footer], other):
        storage.save_piece(snapshot_id, 0, b"".join(pieces))
        with pytest.raises(CorruptSnapshot):
            storage.install_snapshot(snapshot_id)
        assert storage.latest_snapshot == SNAPSHOT
    storage.write_snapshot(snapshot_id, [header, records, footer])
    assert storage.latest_snapshot == snapshot_id


def test_what_breaks_while_it_runs_is_not_served(disk: MemoryDisk) -> None:
    storage = reopen(disk)
    damage(disk, LAST, BATCH_BYTES + 70, lambda byte: byte ^ 1)
    with pytest.raises(CorruptLog, match=rf"{LAST} is damaged at byte {BATCH_BYTES + 17}: batch.crc"):
        storage.read(8, EVERYTHING, EVERYTHING)
