"""A replica's storage in memory: the same code over a directory that can lose power.

For simulation, where `crash` loses what was not synced, and for a backend without `data_dir`. Segments are small, so
that what a snapshot covers is let go soon.
"""

from collections.abc import Sequence
from typing import Final, final

from backend.storage.memory_disk import Keep, MemoryDisk, nothing_survives
from backend.storage.storage import DiskStorage

SEGMENT_BYTES: Final = 1 << 20


@final
class MemoryStorage(DiskStorage):
    """A replica's storage on a `MemoryDisk`.

    Args:
        disk: The directory; a new one by default. Another storage may have written it, and must not use it any more.
        voters: Ids of the voters.
        segment_bytes: What a segment of the log grows to.

    Attributes:
        disk: The directory; its `fuse` makes power fail in the middle of a call.
    """

    def __init__(
        self, disk: MemoryDisk | None = None, *, voters: Sequence[int] = (), segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.disk = disk if disk is not None else MemoryDisk()
        self._segment_bytes = segment_bytes
        super().__init__(self.disk, voters=voters, segment_bytes=segment_bytes)

    def crash(self, keep: Keep = nothing_survives) -> "MemoryStorage":
        """Lose power and start again: what a node finds that does so. This storage is of no use any more.

        Args:
            keep: How much of what was not synced survives; see `MemoryDisk.crash`. Nothing by default.

        Raises:
            CorruptFile: Never, whatever `keep` says, unless somebody has damaged a file.
        """
        self.disk.crash(keep)
        return MemoryStorage(self.disk, voters=self._voters, segment_bytes=self._segment_bytes)
