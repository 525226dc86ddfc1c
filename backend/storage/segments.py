"""One segment of the log: a file of batches, named by the offset of the first.

    00000000000000000000.log

Knows its own batches and no other segment. Positions are found by a sparse index in memory, built while the file is
scanned at open. Kafka's `.index` and `.timeindex` files are not written: Kafka makes them anew when they are missing.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, final

from backend.raft.batches import EpochStart, LogBatch
from backend.storage.disk import Disk, File
from backend.storage.errors import CorruptLog
from backend.storage.scan import walk
from codec.errors import CodecError

INDEX_INTERVAL_BYTES: Final = 4096
"""Between two entries of the index, as in Kafka (index.interval.bytes)."""

OFFSET_MAX: Final = 2**63 - 1

_NAME: Final = re.compile(r"([0-9]{20})\.log")
_READ_BYTES: Final = 64 << 10


def segment_name(base_offset: int) -> str:
    """The name of the file."""
    return f"{base_offset:020d}.log"


def segment_offsets(disk: Disk) -> list[int]:
    """Base offsets of the segments that are there, in order."""
    return [int(match[1]) for name in disk.names() if (match := _NAME.fullmatch(name))]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """Where the batches of a segment cease to make sense, near a byte; the record at `next_offset` would come there."""

    position: int
    next_offset: int
    reason: str


@final
@dataclass(slots=True, kw_only=True)
class Segment:
    """An open segment.

    Attributes:
        base_offset: offset of its first record, there or not.
        next_offset: offset after its last record.
        size: bytes of its batches; the file has no others once it is recovered.
        epochs: the epochs of its batches, and where each starts.
        broken: why the scan ended before the file did.
    """

    file: File
    base_offset: int
    next_offset: int
    size: int = 0
    epochs: list[EpochStart] = field(default_factory=list)
    broken: Break | None = None
    _offsets: "array[int]" = field(default_factory=lambda: array("q"))
    _positions: "array[int]" = field(default_factory=lambda: array("q"))

    @classmethod
    def scan(cls, disk: Disk, base_offset: int, epochs: Sequence[EpochStart]) -> "Segment":
        """Open a segment and read all of it, up to where it ceases to make sense.

        Args:
            disk: The directory.
            base_offset: In the name of the file.
            epochs: What `leader-epoch-checkpoint` says; each batch must agree.
        """
        segment = cls(
            file=disk.open(segment_name(base_offset)),
            base_offset=base_offset,
            next_offset=base_offset,
        )
        epoch: int | None = None
        until = -1
        try:
            for position, (base_offset, last_offset, leader_epoch, size), _, _ in walk(segment.file):
                if base_offset != segment.next_offset:
                    raise CodecError(
                        position, "batch.base_offset", f"{base_offset} where offset {segment.next_offset} follows"
                    )
                if base_offset >= until:
                    epoch, until = _recorded(epochs, base_offset)
                if leader_epoch != epoch:
                    raise CodecError(
                        position,
                        "batch.partition_leader_epoch",
                        f"{leader_epoch} where {'none' if epoch is None else epoch} is recorded",
                    )
                segment._note(base_offset, last_offset, leader_epoch, size)
        except CodecError as error:
            segment.broken = Break(
                position=error.offset,
                next_offset=segment.next_offset,
                reason=f"{error.field}: {error.reason}",
            )
        return segment

    @classmethod
    def create(cls, disk: Disk, base_offset: int) -> "Segment":
        """Make an empty segment, durably."""
        file = disk.open(segment_name(base_offset), create=True)
        disk.sync()
        return cls(file=file, base_offset=base_offset, next_offset=base_offset)

    def append(self, batches: list[LogBatch]) -> None:
        """Write batches that follow one another and the last one here; not durable yet."""
        self.file.write(self.size, b"".join([batch.encoded for batch in batches]))
        for batch in batches:
            self._note(batch.base_offset, batch.last_offset, batch.leader_epoch, len(batch.encoded))

    def read(self, from_offset: int, end_offset: int) -> Iterator[LogBatch]:
        """The batches from the one that holds `from_offset`, wholly below `end_offset`.

        Raises:
            CorruptLog: While iterating: what was sound when it was written or opened no longer is.
        """
        try:
            for found in walk(self.file, self._near(from_offset), _READ_BYTES):
                base_offset, last_offset, leader_epoch, _ = found.span
                if last_offset >= end_offset:
                    return
                if last_offset >= from_offset:
                    yield LogBatch(
                        base_offset=base_offset,
                        last_offset=last_offset,
                        leader_epoch=leader_epoch,
                        encoded=found.encoded,
                    )
        except CodecError as error:
            raise CorruptLog(self.file.path, error.offset, f"{error.field}: {error.reason}") from None

    def position_of(self, offset: int) -> int | None:
        """Where the batch begins whose base offset this is; `size` for `next_offset`; None where no batch begins."""
        if offset == self.next_offset:
            return self.size
        for found in walk(self.file, self._near(offset), _READ_BYTES):
            if found.span.base_offset >= offset:
                return found.position if found.span.base_offset == offset else None
        return None

    def cut(self, position: int, offset: int) -> None:
        """Drop all from `position` on, where the batch at `offset` begins or would have; durable when this returns."""
        self.file.truncate(position)
        self.file.sync()
        self.size, self.next_offset, self.broken = position, offset, None
        kept = bisect_right(self._positions, position - 1)
        del self._positions[kept:], self._offsets[kept:]
        self.epochs = [entry for entry in self.epochs if entry.start_offset < offset]

    def _near(self, offset: int) -> int:
        entry = bisect_right(self._offsets, offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def _note(self, base_offset: int, last_offset: int, leader_epoch: int, size: int) -> None:
        if not self._positions or self.size - self._positions[-1] >= INDEX_INTERVAL_BYTES:
            self._offsets.append(base_offset)
            self._positions.append(self.size)
        if not self.epochs or leader_epoch > self.epochs[-1].epoch:
            self.epochs.append(EpochStart(epoch=leader_epoch, start_offset=base_offset))
        self.next_offset = last_offset + 1
        self.size += size


def _recorded(epochs: Sequence[EpochStart], offset: int) -> tuple[int | None, int]:
    """The epoch that is recorded for an offset, None for none, and the offset at which the next one starts."""
    entry = bisect_right(epochs, offset, key=attrgetter("start_offset"))
    epoch = epochs[entry - 1].epoch if entry else None
    return epoch, epochs[entry].start_offset if entry < len(epochs) else OFFSET_MAX
