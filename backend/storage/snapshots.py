"""Snapshots of the metadata log: one file each, complete or not there.

    00000000000000000100-0000000003.checkpoint         end offset (exclusive) and epoch of the last record in it
    00000000000000000100-0000000003.checkpoint.part    being written or fetched; not kept over a restart

Inside are record batches as in the log, at offsets from 0, all of the snapshot's epoch; the first batch begins with the
header record, the last is the footer. A file gets its name only once it has been read through and synced, so a torn one
is never mistaken for a snapshot. Sources: KIP-630, Snapshots and RecordsSnapshotWriter of Kafka.
"""

import re
from collections.abc import Iterable
from typing import Final, final

from backend.raft.batches import SnapshotId
from backend.storage.disk import Disk, File
from backend.storage.errors import CorruptSnapshot
from backend.storage.scan import Found, walk
from codec.batches import read_batch
from codec.control_records import ControlType, control_type_of
from codec.errors import CodecError

PART: Final = ".part"

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def snapshot_name(snapshot_id: SnapshotId) -> str:
    """The name of a complete snapshot's file."""
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}.checkpoint"


@final
class Snapshots:
    """The snapshots in a directory; each is read through when this is made.

    Raises:
        CorruptSnapshot: One is damaged.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._files: dict[SnapshotId, File] = {}
        self._part: tuple[SnapshotId, File] | None = None
        for name in disk.names():
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            snapshot_id = SnapshotId(end_offset=int(match[1]), epoch=int(match[2]))
            self._files[snapshot_id] = file = disk.open(name)
            check_snapshot(file, snapshot_id)

    @property
    def latest(self) -> SnapshotId | None:
        """The newest complete snapshot."""
        return max(self._files, default=None)

    def size(self, snapshot_id: SnapshotId) -> int | None:
        """Bytes of a complete snapshot; None when there is none of this name."""
        file = self._files.get(snapshot_id)
        return file.size if file else None

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """A piece of a complete snapshot: up to `max_bytes`, fewer at its end.

        Raises:
            KeyError: There is none of this name.
        """
        return self._files[snapshot_id].read(position, max_bytes)

    def write(self, snapshot_id: SnapshotId, pieces: Iterable[bytes]) -> None:
        """Write a whole snapshot: batches with header and footer. Complete and durable when this returns.

        One that is being fetched meanwhile stays as it is.

        Raises:
            CorruptSnapshot: The pieces are no snapshot of this name.
        """
        if self._part is not None and self._part[0] == snapshot_id:
            self._drop_part()
        file = self._disk.open(snapshot_name(snapshot_id) + PART, create=True)
        for piece in pieces:
            file.write(file.size, piece)
        self._keep(snapshot_id, file)

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        """Write a piece; position 0 begins anew, any other must follow the piece before.

        Raises:
            ValueError: It does not follow.
        """
        if position == 0:
            self._drop_part()
            self._part = snapshot_id, self._disk.open(snapshot_name(snapshot_id) + PART, create=True)
        file = self._open_part(snapshot_id)
        if position != file.size:
            raise ValueError(f"a piece at byte {position} of a snapshot that has {file.size} so far")
        file.write(position, piece)

    def complete(self, snapshot_id: SnapshotId) -> None:
        """Check all that was written, and make it a snapshot, durably.

        Raises:
            CorruptSnapshot: It is no snapshot of this name; it is not kept.
        """
        self._keep(snapshot_id, self._open_part(snapshot_id))
        self._part = None

    def _keep(self, snapshot_id: SnapshotId, file: File) -> None:
        check_snapshot(file, snapshot_id)
        file.sync()
        name = snapshot_name(snapshot_id)
        self._disk.rename(name + PART, name)
        self._disk.sync()
        file.close()
        previous = self._files.pop(snapshot_id, None)
        if previous is not None:
            previous.close()
        self._files[snapshot_id] = self._disk.open(name)

    def delete_before(self, snapshot_id: SnapshotId) -> None:
        """Forget older snapshots."""
        for older in sorted(self._files):
            if older < snapshot_id:
                self._files.pop(older).close()
                self._disk.remove(snapshot_name(older))
                self._disk.sync()

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.close()
        if self._part is not None:
            self._part[1].close()

    def _open_part(self, snapshot_id: SnapshotId) -> File:
        if self._part is None or self._part[0] != snapshot_id:
            raise ValueError(f"no piece of snapshot {snapshot_name(snapshot_id)} has been written")
        return self._part[1]

    def _drop_part(self) -> None:
        if self._part is not None:
            snapshot_id, file = self._part
            self._part = None
            file.close()
            self._disk.remove(snapshot_name(snapshot_id) + PART)


def check_snapshot(file: File, snapshot_id: SnapshotId) -> None:
    """Read a snapshot through: checksums, offsets, epochs, header and footer.

    Raises:
        CorruptSnapshot: Something is wrong.
    """
    last: Found | None = None
    next_offset = 0
    try:
        for found in walk(file):
            base_offset, last_offset, leader_epoch, _ = found.span
            if base_offset != next_offset or leader_epoch != snapshot_id.epoch:
                raise CodecError(
                    found.position,
                    "batch",
                    f"offset {base_offset} of epoch {leader_epoch} where {next_offset} of {snapshot_id.epoch} follows",
                )
            if last is None:
                _check_control(found, ControlType.SNAPSHOT_HEADER)
            next_offset = last_offset + 1
            last = found
        if last is None:
            raise CodecError(0, "snapshot", "empty")
        _check_control(last, ControlType.SNAPSHOT_FOOTER)
    except CodecError as error:
        raise CorruptSnapshot(file.path, error.offset, f"{error.field}: {error.reason}") from None


def _check_control(found: Found, wanted: ControlType) -> None:
    batch, _ = read_batch(found.encoded)
    if not batch.header.is_control or control_type_of(batch.records[0].key) != wanted:
        raise CodecError(found.position, "batch", f"no {wanted.name} record")
