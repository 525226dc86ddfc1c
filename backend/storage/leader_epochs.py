"""Kafka's `leader-epoch-checkpoint`: which epoch starts at which offset of the log.

    0                    the format
    2                    number of entries
    1 0                  epoch, start offset
    3 57

A batch's checksum does not cover its epoch, so this file is the second witness: it is written before the first batch of
an epoch is, and at start both must tell the same. Source: LeaderEpochCheckpointFile of Kafka.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from backend.raft.batches import EpochStart
from backend.storage.disk import Disk, read_file, replace_file
from backend.storage.errors import CorruptLog

FILE_NAME: Final = "leader-epoch-checkpoint"
SIZE_MAX: Final = 64 << 20
"""Bytes; more than a million elections."""

_FORMAT: Final = "0"


def save_epochs(disk: Disk, epochs: Sequence[EpochStart]) -> None:
    """Replace the file, durably."""
    lines = [_FORMAT, str(len(epochs)), *(f"{entry.epoch} {entry.start_offset}" for entry in epochs)]
    replace_file(disk, FILE_NAME, "".join(f"{line}\n" for line in lines).encode())


def load_epochs(disk: Disk) -> tuple[EpochStart, ...] | None:
    """The entries; None when there is no such file.

    Raises:
        CorruptLog: It is not what `save_epochs` writes, or epochs or offsets do not ascend.
    """
    if FILE_NAME not in disk.names():
        return None
    path = disk.path(FILE_NAME)
    content = read_file(disk, FILE_NAME, SIZE_MAX)
    lines = content.split(b"\n")
    if len(lines) < 3 or lines[0] != _FORMAT.encode() or lines[1] != str(len(lines) - 3).encode() or lines[-1]:
        raise CorruptLog(path, 0, "not a list of epochs with its length")
    entries: list[EpochStart] = []
    at = len(lines[0]) + len(lines[1]) + 2
    for line in lines[2:-1]:
        entry = _entry(line)
        if entry is None:
            raise CorruptLog(path, at, "not an epoch and its first offset")
        if entries and (entry.epoch <= entries[-1].epoch or entry.start_offset <= entries[-1].start_offset):
            raise CorruptLog(path, at, "epochs and offsets do not ascend")
        entries.append(entry)
        at += len(line) + 1
    return tuple(entries)


def within(epochs: Iterable[EpochStart], start_offset: int, end_offset: int) -> tuple[EpochStart, ...]:
    """The epochs that have records in a part of the log, the first of them from the start of that part on."""
    found: list[EpochStart] = []
    for entry in epochs:
        if entry.start_offset >= end_offset:
            break
        if entry.start_offset <= start_offset:
            found = [EpochStart(epoch=entry.epoch, start_offset=start_offset)]
        else:
            found.append(entry)
    return tuple(found) if start_offset < end_offset else ()


def _entry(line: bytes) -> EpochStart | None:
    epoch, _, start_offset = line.partition(b" ")
    if not (epoch.isdigit() and start_offset.isdigit() and max(len(epoch), len(start_offset)) < 20):
        return None
    return EpochStart(epoch=int(epoch), start_offset=int(start_offset))
