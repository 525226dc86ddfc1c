"""The recovery point: never too high, and low only by what a loss of power takes."""

from backend.storage.memory_disk import MemoryDisk
from backend.storage.recovery_point import RecoveryPoint


def lost_at(disk: MemoryDisk, kept: int) -> RecoveryPoint:
    """After a loss of power that leaves so many unsynced bytes."""
    disk.crash(lambda _name, unsynced: min(kept, unsynced))
    return RecoveryPoint(disk)


def test_it_rises_in_memory_at_once_and_is_found_by_the_next_process() -> None:
    disk = MemoryDisk()
    point = RecoveryPoint(disk)
    for offset in (5, 9, 9, 3, 12):
        point.rise(offset)
    assert point.offset == 12
    assert RecoveryPoint(disk).offset == 12
    assert lost_at(disk, 0).offset == 0


def test_a_fall_is_durable() -> None:
    disk = MemoryDisk()
    point = RecoveryPoint(disk)
    point.rise(20)
    point.fall(7)
    assert lost_at(disk, 0).offset == 7
    RecoveryPoint(disk).fall(8)
    assert RecoveryPoint(disk).offset == 7


def test_a_write_that_is_torn_takes_the_smaller_slot() -> None:
    for torn in range(1, 12):
        disk = MemoryDisk()
        point = RecoveryPoint(disk)
        point.rise(5)
        point.rise(9)
        point.rise(11)
        # All three last: the process ended, and the kernel has written them since.
        point = lost_at(disk, 1000)
        point.rise(2**62)
        point = lost_at(disk, torn)
        assert point.offset == 11
        point.mend()
        point.rise(2**61)
        assert lost_at(disk, torn).offset == 11
