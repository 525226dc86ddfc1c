"""When a node writes a snapshot of its image: after so many records, and after as many as the last one had.

The second half keeps the work in proportion: a node never spends more on snapshots than on the records themselves.
Kafka counts bytes (`metadata.log.max.record.bytes.between.snapshots`).
"""

import asyncio
import logging
from typing import Final, final

from backend.metadata.image import Image
from backend.metadata.records import Record
from backend.raft.interfaces import Observer, Snapshot

log = logging.getLogger("tidegate.snapshots")

SNAPSHOT_RECORDS: Final = 10_000
"""Records between two snapshots at least."""


@final
class Snapshots:
    """Writes snapshots of one node's images, one at a time."""

    def __init__(self, metadata_log: Observer[Record, Image]) -> None:
        self._log = metadata_log
        self._last_offset = -1
        self._last_records = 0
        self._writing: asyncio.Task[None] | None = None

    def loaded(self, image: Image) -> None:
        """The image comes from a snapshot, so there is one."""
        self._last_offset = image.highest_offset

    def applied(self, image: Image) -> None:
        """The image holds what is committed up to its offset; write a snapshot of it if it is time to."""
        news = image.highest_offset - self._last_offset
        if self._writing is not None or news < max(SNAPSHOT_RECORDS, self._last_records):
            return
        self._last_offset = image.highest_offset
        self._writing = asyncio.get_running_loop().create_task(self._write(image), name="snapshot")
        self._writing.add_done_callback(self._written)

    async def close(self) -> None:
        """Wait for the snapshot that is being written."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _write(self, image: Image) -> None:
        snapshot = Snapshot(end_offset=image.highest_offset + 1, leader_epoch=image.highest_epoch, content=image)
        self._last_records = await self._log.compact(snapshot)

    def _written(self, task: "asyncio.Task[None]") -> None:
        self._writing = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a snapshot could not be written: %r", error, exc_info=error)
