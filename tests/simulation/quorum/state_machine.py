"""What the log means here: every record is a number of eight bytes, and the state is all of them, in order.

So a record that is missing, doubled or out of place shows in the state, and in every snapshot of it. Knows nothing of
the quorum; `Writings` makes the batches, and knows what is in each.
"""

import struct
from typing import Final

from backend.raft.batches import LogBatch, SnapshotId
from codec.batches import encode_batch, encode_control_batch, read_batches
from codec.control_records import ControlRecord, ControlType
from codec.records import LogRecord

_HEAD: Final = struct.Struct(">qq")
_HEADER: Final = ControlRecord(
    type=ControlType.SNAPSHOT_HEADER, version=0, value={"version": 0, "last_contained_log_timestamp": 0}
)
_FOOTER: Final = ControlRecord(type=ControlType.SNAPSHOT_FOOTER, version=0, value={"version": 0})
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

    def snapshot(self) -> tuple[SnapshotId, list[bytes]]:
        """The state as of now, to be written: header, one record with all of it, footer."""
        state = encode_batch(
            [LogRecord(key=None, value=_HEAD.pack(self.next_offset, self.epoch) + self.content)],
            base_offset=1,
            partition_leader_epoch=self.epoch,
            timestamp_ms=0,
        )
        header, footer = (
            encode_control_batch([record], base_offset=place, partition_leader_epoch=self.epoch, timestamp_ms=0)
            for record, place in ((_HEADER, 0), (_FOOTER, 2))
        )
        return SnapshotId(end_offset=self.next_offset, epoch=self.epoch), [header, state, footer]

    def load(self, snapshot: bytes) -> None:
        """Begin anew from a snapshot.

        Raises:
            CodecError: It is none.
        """
        _, batch, _ = read_batches(snapshot)
        state = batch.records[0].value or b""
        self.next_offset, self.epoch = _HEAD.unpack_from(state)
        self.content = bytearray(state[_HEAD.size :])


def number_of(content: bytes) -> int:
    """The first number of a content: names a write in a story."""
    return int(_NUMBER.unpack_from(content)[0])
