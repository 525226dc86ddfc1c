"""What the log means here: every record is a number of eight bytes, and the state is all of them, in order.

So a record that is missing, doubled or out of place shows in the state, and in every snapshot of it. Knows nothing of
the quorum; `Writings` makes the batches, and knows what is in each.
"""

import struct
from typing import Final

from backend.raft.batches import LogBatch, SnapshotId
from codec.batches import encode_batch
from codec.records import LogRecord

_HEAD: Final = struct.Struct(">qq")
_NUMBER: Final = struct.Struct(">q")
_PLACED: Final = 16
"""Bytes of a batch that the leader overwrites: where it stands, its length, its epoch."""


class Writings:
    """Batches that were ever proposed, each unlike all others, and the numbers in them."""

    def __init__(self) -> None:
        self._content: dict[bytes, bytes] = {}
        self._numbers = 0

    def write(self, records: int) -> tuple[bytes, bytes]:
        """A batch of that many new numbers; returns it and its content."""
        numbers = [_NUMBER.pack(self._numbers + index) for index in range(records)]
        self._numbers += records
        encoded = encode_batch(
            [LogRecord(key=None, value=number) for number in numbers],
            base_offset=0,
            partition_leader_epoch=0,
            timestamp_ms=0,
        )
        content = b"".join(numbers)
        self._content[encoded[_PLACED:]] = content
        return encoded, content

    def read(self, batch: LogBatch) -> bytes:
        """The content of a batch: nothing for the quorum's own."""
        return self._content.get(batch.encoded[_PLACED:], b"")


class StateMachine:
    """The state of one process.

    Attributes:
        next_offset: everything below is applied.
        epoch: leader epoch of the last batch that is.
        content: the state.
    """

    def __init__(self, writings: Writings) -> None:
        self.next_offset = 0
        self.epoch = 0
        self.content = bytearray()
        self._writings = writings

    def apply(self, batch: LogBatch) -> None:
        """Apply the next batch."""
        self.content += self._writings.read(batch)
        self.next_offset = batch.last_offset + 1
        self.epoch = batch.leader_epoch

    def snapshot(self) -> tuple[SnapshotId, bytes]:
        """The state as of now, to be written."""
        name = SnapshotId(end_offset=self.next_offset, epoch=self.epoch)
        return name, _HEAD.pack(self.next_offset, self.epoch) + self.content

    def load(self, snapshot: bytes) -> None:
        """Begin anew from a snapshot."""
        self.next_offset, self.epoch = _HEAD.unpack_from(snapshot)
        self.content = bytearray(snapshot[_HEAD.size :])


def number_of(content: bytes) -> int:
    """The first number of a content: names a write in a story."""
    return int(_NUMBER.unpack_from(content)[0])
