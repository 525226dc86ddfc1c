"""Record batches (format 2): a header of 61 bytes, a CRC32C, and records.

    base_offset int64, batch_length int32, partition_leader_epoch int32, magic int8 (2), crc uint32,
    attributes int16, last_offset_delta int32, base_timestamp int64, max_timestamp int64,
    producer_id int64, producer_epoch int16, base_sequence int32, records int32 count
    attributes: 0-2 compression, 3 log append time, 4 transactional, 5 control, 6 delete horizon

The checksum covers everything from the attributes on, so that a leader may place a batch (`placed`) without touching
it. Compressed batches are refused by name: the metadata log has none unless somebody asks for it, and decompressing
what a stranger sends has no bound. Their headers can be read all the same.

Used by logs, snapshots and quorum Fetch; knows no file. Source: DefaultRecordBatch of Kafka.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, final

from codec.checksum import crc32c
from codec.control_records import ControlRecord, encode_control_record
from codec.errors import CodecError, Truncated
from codec.records import RECORD_BYTES_MIN, LogRecord, encode_record, read_record

HEADER_BYTES: Final = 61
PREFIX_BYTES: Final = 12
"""Base offset and length: what is needed to know where a batch ends."""

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
COMPRESSIONS: Final[tuple[Compression, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_PREFIX: Final = struct.Struct(">qi")
_PLACE: Final = struct.Struct(">qii")
_SPAN: Final = struct.Struct(">qiibIhi")
_CHECKED: Final = struct.Struct(">hiqqqhii")
_CRC: Final = struct.Struct(">I")
_MAGIC: Final = 2
_CHECKED_AT: Final = 21

_COMPRESSION_BITS: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """What stands before the records.

    Attributes:
        base_offset: Offset of the first record that was once in the batch.
        size: Bytes of the whole batch, this header included.
        partition_leader_epoch: Epoch of the leader that appended it, -1 before.
        compression: How the records are compressed.
        last_offset_delta: Offset of the last record minus `base_offset`; compaction keeps it.
        base_timestamp: Milliseconds that the records' deltas count from, or the delete horizon.
        max_timestamp: The latest timestamp, in milliseconds, -1 for none.
        producer_id: An idempotent producer's id, -1 for none; its epoch and first sequence number follow.
        is_log_append_time: `max_timestamp` is when the broker appended the batch, and goes for every record.
        is_transactional: The records count only once a marker has committed them.
        is_control: The record is a control record.
        has_delete_horizon: `base_timestamp` says when tombstones may go.
        records_count: Number of records.
    """

    base_offset: int
    size: int
    partition_leader_epoch: int = -1
    compression: Compression = "none"
    last_offset_delta: int
    base_timestamp: int = -1
    max_timestamp: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_log_append_time: bool = False
    is_transactional: bool = False
    is_control: bool = False
    has_delete_horizon: bool = False
    records_count: int

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta


@final
class BatchSpan(NamedTuple):
    """Where a batch stands in its log: all that a log needs of it. A plain tuple, because logs are long."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    size: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """A batch, read: its header and its records in order."""

    header: BatchHeader
    records: tuple[LogRecord, ...]


def batch_size(buffer: bytes, offset: int) -> int:
    """Bytes of the batch at `offset`, once its first `PREFIX_BYTES` are there; they may say more than are there.

    Raises:
        Truncated: Fewer bytes than that.
        CodecError: The length is less than a header.
    """
    try:
        _, length = _PREFIX.unpack_from(buffer, offset)
    except struct.error:
        raise Truncated(offset, "batch", f"{PREFIX_BYTES} bytes wanted, {len(buffer) - offset} left") from None
    if length < HEADER_BYTES - PREFIX_BYTES:
        raise CodecError(
            offset + 8, "batch.batch_length", f"{length} bytes; a header has {HEADER_BYTES - PREFIX_BYTES}"
        )
    return int(length) + PREFIX_BYTES


def read_batch_header(buffer: bytes, offset: int = 0) -> BatchHeader:
    """Read the header at `offset`; neither the checksum nor the records are looked at, and they need not be there.

    Raises:
        Truncated: Fewer than `HEADER_BYTES`.
        CodecError: Another format than 2, an unknown compression, or a length or count that cannot be.
    """
    size = batch_size(buffer, offset)
    magic = buffer[offset + 16 : offset + 17]
    if magic and magic[0] != _MAGIC:
        raise CodecError(offset + 16, "batch.magic", f"format {magic[0]}; {_MAGIC} is the only one read here")
    try:
        (
            base_offset,
            _,
            leader_epoch,
            _,
            _,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _HEADER.unpack_from(buffer, offset)
    except struct.error:
        raise Truncated(offset, "batch", f"{HEADER_BYTES} bytes wanted, {len(buffer) - offset} left") from None
    compression = attributes & _COMPRESSION_BITS
    if compression >= len(COMPRESSIONS):
        raise CodecError(offset + 21, "batch.attributes", f"no compression has the number {compression}")
    if count < 0 or (compression == 0 and count * RECORD_BYTES_MIN > size - HEADER_BYTES):
        raise CodecError(offset + 57, "batch.records", f"{count} records in {size - HEADER_BYTES} bytes")
    if last_offset_delta < 0:
        raise CodecError(offset + 23, "batch.last_offset_delta", f"{last_offset_delta}")
    return BatchHeader(
        base_offset=base_offset,
        size=size,
        partition_leader_epoch=leader_epoch,
        compression=COMPRESSIONS[compression],
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_log_append_time=bool(attributes & _LOG_APPEND_TIME),
        is_transactional=bool(attributes & _TRANSACTIONAL),
        is_control=bool(attributes & _CONTROL),
        has_delete_horizon=bool(attributes & _DELETE_HORIZON),
        records_count=count,
    )


def check_crc(buffer: bytes, offset: int = 0) -> None:
    """Compare the checksum of the whole batch at `offset`.

    Raises:
        Truncated: The batch is not all there.
        CodecError: The checksum is another.
    """
    end = _end(buffer, offset, batch_size(buffer, offset))
    (stored,) = _CRC.unpack_from(buffer, offset + 17)
    found = crc32c(memoryview(buffer)[offset + _CHECKED_AT : end])
    if stored != found:
        raise CodecError(offset + 17, "batch.crc", f"{stored:08x} stored, {found:08x} computed")


def read_batch_span(buffer: bytes, offset: int = 0) -> BatchSpan:
    """Where the batch at `offset` stands, its checksum compared, its records not read.

    The checksum covers neither the base offset nor the leader epoch: whoever keeps a log must check them by others.

    Raises:
        Truncated: The batch is not all there.
        CodecError: Another format than 2, a length or offset that cannot be, or another checksum.
    """
    end = _end(buffer, offset, batch_size(buffer, offset))
    base_offset, _, leader_epoch, magic, stored, _, last_offset_delta = _SPAN.unpack_from(buffer, offset)
    if magic != _MAGIC:
        raise CodecError(offset + 16, "batch.magic", f"format {magic}; {_MAGIC} is the only one read here")
    found = crc32c(buffer[offset + _CHECKED_AT : end])
    if stored != found:
        raise CodecError(offset + 17, "batch.crc", f"{stored:08x} stored, {found:08x} computed")
    if last_offset_delta < 0:
        raise CodecError(offset + 23, "batch.last_offset_delta", f"{last_offset_delta}")
    return BatchSpan(base_offset, base_offset + last_offset_delta, leader_epoch, end - offset)


def read_batch(buffer: bytes, offset: int = 0) -> tuple[RecordBatch, int]:
    """Read the batch at `offset`, checksum first; returns it and the offset after it.

    Raises:
        Truncated: The batch is not all there; a Fetch answer may end so.
        CodecError: It is malformed, its checksum is another, or its records are compressed.
    """
    header = read_batch_header(buffer, offset)
    end = _end(buffer, offset, header.size)
    check_crc(buffer, offset)
    if header.compression != "none":
        raise CodecError(offset + 21, "batch.attributes", f"the records are compressed with {header.compression}")
    body = bytes(buffer[offset + HEADER_BYTES : end])
    records, at = [], 0
    try:
        for _ in range(header.records_count):
            record, at = read_record(body, at)
            records.append(record)
    except CodecError as error:
        raise CodecError(offset + HEADER_BYTES + error.offset, f"batch.{error.field}", error.reason) from None
    if at != len(body):
        raise CodecError(offset + HEADER_BYTES + at, "batch", f"{len(body) - at} bytes after the last record")
    return RecordBatch(header=header, records=tuple(records)), end


def read_batches(buffer: bytes, *, partial: bool = False) -> Iterator[RecordBatch]:
    """Read batches one after the other to the end of the buffer.

    Args:
        buffer: For example the records of a Fetch answer.
        partial: Whether the last batch may be cut off, as in a Fetch answer; it is then left out.

    Raises:
        CodecError: While iterating; see `read_batch`.
    """
    at = 0
    while at < len(buffer):
        if partial and (len(buffer) - at < PREFIX_BYTES or batch_size(buffer, at) > len(buffer) - at):
            return
        batch, at = read_batch(buffer, at)
        yield batch


def encode_batch(
    records: Iterable[LogRecord],
    *,
    base_offset: int,
    partition_leader_epoch: int,
    timestamp_ms: int,
    is_control: bool = False,
) -> bytes:
    """A batch of these records, uncompressed, without a producer.

    Args:
        records: At least one; their `offset_delta` are taken from their order, their `timestamp_delta` as they are.
        base_offset: Offset of the first.
        partition_leader_epoch: Epoch of the leader that appends.
        timestamp_ms: When the batch was made; the records' deltas count from it.
        is_control: Whether it holds control records.

    Raises:
        CodecError: No record, or a number out of range.
    """
    many = [record._replace(offset_delta=delta) for delta, record in enumerate(records)]
    if not many:
        raise CodecError(0, "batch.records", "none; Kafka has no empty batch")
    body = b"".join(map(encode_record, many))
    latest = timestamp_ms + max(record.timestamp_delta for record in many)
    attributes = _CONTROL if is_control else 0
    try:
        checked = _CHECKED.pack(attributes, len(many) - 1, timestamp_ms, latest, -1, -1, -1, len(many)) + body
        length = HEADER_BYTES - PREFIX_BYTES + len(body)
        place = _PLACE.pack(base_offset, length, partition_leader_epoch)
    except struct.error as error:
        raise CodecError(0, "batch", str(error)) from None
    return b"".join((place, bytes((_MAGIC,)), _CRC.pack(crc32c(checked)), checked))


def encode_control_batch(
    records: Iterable[ControlRecord], *, base_offset: int, partition_leader_epoch: int, timestamp_ms: int
) -> bytes:
    """A batch of control records; see `encode_batch`.

    Raises:
        CodecError: No record, or a field that does not fit.
    """
    pairs = [encode_control_record(record.type, record.version, record.value) for record in records]
    return encode_batch(
        (LogRecord(key=key, value=value) for key, value in pairs),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        timestamp_ms=timestamp_ms,
        is_control=True,
    )


def placed(batch: bytes, base_offset: int, partition_leader_epoch: int) -> bytes:
    """The same batch at another offset, in another leader's epoch; the checksum does not cover the two.

    Raises:
        CodecError: The batch is shorter than a header, or a number out of range.
    """
    size = batch_size(batch, 0)
    try:
        return _PLACE.pack(base_offset, size - PREFIX_BYTES, partition_leader_epoch) + batch[_PLACE.size :]
    except struct.error as error:
        raise CodecError(0, "batch", str(error)) from None


def _end(buffer: bytes, offset: int, size: int) -> int:
    if size > len(buffer) - offset:
        raise Truncated(offset, "batch", f"{size} bytes announced, {len(buffer) - offset} left")
    return offset + size
