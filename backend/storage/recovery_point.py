"""The recovery point: an offset below which the log is known to have been synced.

    two slots, at bytes 0 and 512:  offset int64, crc32c uint32 of the offset's bytes

A log's tail may be torn by a crash, but only what was not synced: damage below this point is no torn write. The file is
not synced when the point rises, for that would double the cost of every commit; it may therefore come too low out of a
loss of power (by what the kernel had not yet written, some 30 s), never out of a killed process. Both slots are always
true, so the larger counts, and one torn while it was written costs nothing. Before the log is cut below the point, both
are lowered and synced.

The name is Kafka's; its file of that name is text, replaced whole, and the quorum's log has none there.
"""

import struct
from typing import Final, final

from backend.storage.disk import Disk, File, replace_file
from backend.storage.errors import CorruptLog
from codec.checksum import crc32c

FILE_NAME: Final = "recovery-point"

_OFFSET: Final = struct.Struct(">q")
_SLOT: Final = struct.Struct(">qI")
_SLOTS: Final = (0, 512)
"""In different sectors, so that no write tears both."""


@final
class RecoveryPoint:
    """The file, opened; made at offset 0 if it is not there.

    Raises:
        CorruptLog: No slot is sound.
    """

    def __init__(self, disk: Disk) -> None:
        self._offset = 0
        self._next = 0
        self._is_torn = False
        if FILE_NAME not in disk.names():
            replace_file(disk, FILE_NAME, _content(0))
            self._file = disk.open(FILE_NAME)
            return
        self._file = disk.open(FILE_NAME)
        first, second = (_read_slot(self._file, at) for at in _SLOTS)
        found = [offset for offset in (first, second) if offset is not None]
        if not found:
            raise CorruptLog(self._file.path, 0, "neither of its two checksums agrees")
        self._offset = max(found)
        self._is_torn = len(found) < len(_SLOTS)
        # The smaller one may be torn now, at no cost.
        self._next = found.index(min(found))

    @property
    def offset(self) -> int:
        """All records below it have been synced."""
        return self._offset

    def mend(self) -> None:
        """Write a torn slot anew, before any other is risked; durable when this returns."""
        if self._is_torn:
            self._write_both(self._offset)
            self._is_torn = False

    def rise(self, offset: int) -> None:
        """The log was synced up to here; not durable itself."""
        if offset <= self._offset:
            return
        self._file.write(_SLOTS[self._next], _slot(offset))
        self._next = 1 - self._next
        self._offset = offset

    def fall(self, offset: int) -> None:
        """The log will be cut here: durable when this returns."""
        if offset < self._offset:
            self._write_both(offset)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _write_both(self, offset: int) -> None:
        self._file.write(0, _content(offset))
        self._file.sync()
        self._offset = offset


def _content(offset: int) -> bytes:
    return _slot(offset).ljust(_SLOTS[1], b"\0") + _slot(offset)


def _slot(offset: int) -> bytes:
    return _SLOT.pack(offset, crc32c(_OFFSET.pack(offset)))


def _read_slot(file: File, at: int) -> int | None:
    data = file.read(at, _SLOT.size)
    if len(data) < _SLOT.size:
        return None
    offset, stored = _SLOT.unpack(data)
    return int(offset) if stored == crc32c(data[: _OFFSET.size]) else None
