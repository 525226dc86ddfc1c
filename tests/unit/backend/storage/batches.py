"""Batches and snapshots for the storage tests, and what a log holds in one line."""

from collections.abc import Sequence

from backend.raft.batches import LogBatch, SnapshotId
from backend.storage.storage import DiskStorage
from codec.batches import encode_batch, encode_control_batch
from codec.control_records import ControlRecord, ControlType
from codec.records import LogRecord

EVERYTHING = 1 << 40


def batch(base_offset: int, epoch: int = 1, *, records: int = 1, value: bytes = b"value") -> LogBatch:
    """A batch of equal records."""
    encoded = encode_batch(
        [LogRecord(value=value)] * records, base_offset=base_offset, partition_leader_epoch=epoch, timestamp_ms=1000
    )
    return LogBatch(base_offset=base_offset, last_offset=base_offset + records - 1, leader_epoch=epoch, encoded=encoded)


def run(base_offset: int, end_offset: int, epoch: int = 1, *, value: bytes = b"value") -> list[LogBatch]:
    """Batches of one record each."""
    return [batch(offset, epoch, value=value) for offset in range(base_offset, end_offset)]


def snapshot(snapshot_id: SnapshotId, values: Sequence[bytes] = (b"one", b"two")) -> list[bytes]:
    """The batches of a snapshot: header, one batch of records, footer."""
    header = ControlRecord(
        type=ControlType.SNAPSHOT_HEADER, version=0, value={"version": 0, "last_contained_log_timestamp": 1000}
    )
    footer = ControlRecord(type=ControlType.SNAPSHOT_FOOTER, version=0, value={"version": 0})
    epoch = snapshot_id.epoch
    return [
        encode_control_batch([header], base_offset=0, partition_leader_epoch=epoch, timestamp_ms=1000),
        encode_batch(
            [LogRecord(value=value) for value in values], base_offset=1, partition_leader_epoch=epoch, timestamp_ms=1000
        ),
        encode_control_batch([footer], base_offset=1 + len(values), partition_leader_epoch=epoch, timestamp_ms=1000),
    ]


def content(storage: DiskStorage) -> list[LogBatch]:
    """All batches of the log."""
    return list(storage.read(storage.log_start_offset, EVERYTHING, EVERYTHING))
