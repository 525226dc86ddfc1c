"""Batches of the metadata log and pieces of its snapshots, between their bytes and what the metadata plane reads. Pure.

    records --encoded--> bytes --Replica places them, a majority has them--> LogBatch --decoded--> CommittedBatch
    image --snapshot_pieces--> header batch, batches of records, footer batch --snapshot_image--> image

A control record counts as a record that changes nothing: it has an offset, so positions pass over it as Kafka's do.
Sources: KIP-630, RecordsSnapshotWriter and MetadataBatchLoader of Kafka.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from backend.metadata.image import Image
from backend.metadata.records import NoOpRecord, Record
from backend.metadata.serde import decode_record, encode_record
from backend.metadata.snapshots import load, records_of
from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.interfaces import CommittedBatch
from codec.batches import (
    PREFIX_BYTES,
    RecordBatch,
    batch_size,
    encode_batch,
    encode_control_batch,
    read_batch,
    read_batches,
)
from codec.control_records import ControlRecord, ControlType
from codec.errors import CodecError
from codec.records import LogRecord

SNAPSHOT_BATCH_RECORDS: Final = 1000
"""Records in one batch of a snapshot."""
_UNPLACED: Final = -1
_NO_OP: Final = NoOpRecord()


def encoded(records: Sequence[Record], timestamp_ms: int) -> bytes:
    """A batch that `Replica.propose` takes: offsets from 0, no epoch.

    Raises:
        CodecError: There are no records, or a field does not fit.
    """
    return encode_batch(
        (LogRecord(value=encode_record(record)) for record in records),
        base_offset=0,
        partition_leader_epoch=_UNPLACED,
        timestamp_ms=timestamp_ms,
    )


def decoded(batch: LogBatch) -> CommittedBatch[Record]:
    """What a batch of the log says.

    Raises:
        CodecError: It is malformed.
        ReplayError: It has a record that this backend does not keep.
    """
    read, _ = read_batch(batch.encoded)
    return CommittedBatch(
        base_offset=batch.base_offset, leader_epoch=batch.leader_epoch, records=tuple(_records_in(read))
    )


def snapshot_pieces(image: Image, snapshot_id: SnapshotId, timestamp_ms: int) -> Iterator[bytes]:
    """The batches of a snapshot of the image, in order; the whole is as long as the image, a piece is short.

    Args:
        image: everything below the end offset of `snapshot_id`.
        timestamp_ms: when the last record in it was appended, as far as known.
    """
    offset = 0

    def control(kind: ControlType, value: dict[str, int]) -> bytes:
        record = ControlRecord(type=kind, version=0, value=value)
        return encode_control_batch(
            [record], base_offset=offset, partition_leader_epoch=snapshot_id.epoch, timestamp_ms=timestamp_ms
        )

    yield control(ControlType.SNAPSHOT_HEADER, {"last_contained_log_timestamp": timestamp_ms})
    offset += 1
    records = records_of(image)
    while some := [LogRecord(value=encode_record(record)) for record in islice(records, SNAPSHOT_BATCH_RECORDS)]:
        yield encode_batch(
            some, base_offset=offset, partition_leader_epoch=snapshot_id.epoch, timestamp_ms=timestamp_ms
        )
        offset += len(some)
    yield control(ControlType.SNAPSHOT_FOOTER, {})


def snapshot_image(cluster_id: str, snapshot_id: SnapshotId, pieces: Iterable[bytes]) -> Image:
    """The image that a snapshot holds, from its bytes in pieces of any length.

    Raises:
        CodecError: It is malformed, or ends early.
        ReplayError: A record does not fit.
    """
    return load(cluster_id, _snapshot_records(pieces), end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)


def log_batches(records: bytes) -> tuple[LogBatch, ...]:
    """The batches in the bytes of a Fetch answer, each checked against its checksum.

    Raises:
        CodecError: They are malformed.
    """
    found = []
    at = 0
    for batch in read_batches(records):
        header = batch.header
        found.append(
            LogBatch(
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                leader_epoch=header.partition_leader_epoch,
                encoded=records[at : at + header.size],
            )
        )
        at += header.size
    return tuple(found)


def _snapshot_records(pieces: Iterable[bytes]) -> Iterator[Record]:
    for batch in _whole_batches(pieces):
        if not batch.header.is_control:
            yield from _records_in(batch)


def _whole_batches(pieces: Iterable[bytes]) -> Iterator[RecordBatch]:
    buffer = b""
    for piece in pieces:
        buffer += piece
        at = 0
        while len(buffer) - at >= PREFIX_BYTES and batch_size(buffer, at) <= len(buffer) - at:
            batch, at = read_batch(buffer, at)
            yield batch
        buffer = buffer[at:]
    if buffer:
        raise CodecError(0, "snapshot", f"it ends within a batch: {len(buffer)} bytes are left over")


def _records_in(batch: RecordBatch) -> Iterator[Record]:
    if batch.header.is_control:
        return iter([_NO_OP] * len(batch.records))
    return (decode_record(record.value or b"") for record in batch.records)
