"""Record batches: byte by byte, read back, cut short, damaged."""

import struct
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec.batches import (
    HEADER_BYTES,
    BatchSpan,
    encode_batch,
    encode_control_batch,
    placed,
    read_batch,
    read_batch_header,
    read_batch_span,
    read_batches,
)
from codec.checksum import crc32c
from codec.control_records import ControlRecord, ControlType, decode_control_record
from codec.errors import CodecError, Truncated
from codec.records import LogRecord

RECORDS: Final = st.builds(
    LogRecord,
    key=st.none() | st.binary(max_size=4),
    value=st.none() | st.binary(max_size=80),
    headers=st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple),
    timestamp_delta=st.integers(-(2**40), 2**40),
    offset_delta=st.just(0),
)


def encode(*records: LogRecord, base_offset: int = 10) -> bytes:
    return encode_batch(records, base_offset=base_offset, partition_leader_epoch=3, timestamp_ms=1000)


def with_crc(batch: bytes | bytearray) -> bytes:
    """The batch with the checksum that its bytes have."""
    return bytes(batch[:17]) + struct.pack(">I", crc32c(batch[21:])) + bytes(batch[21:])


def test_the_checksum_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_a_batch_byte_by_byte() -> None:
    batch = encode(LogRecord(key=None, value=b"v", headers=(("h", b"1"),)))
    fields = [
        "00 00 00 00 00 00 00 0a",  # base_offset
        "00 00 00 3d",  # batch_length
        "00 00 00 03",  # partition_leader_epoch
        "02",  # magic
        batch[17:21].hex(" "),  # crc
        "00 00",  # attributes
        "00 00 00 00",  # last_offset_delta
        "00 00 00 00 00 00 03 e8",  # base_timestamp
        "00 00 00 00 00 00 03 e8",  # max_timestamp
        "ff ff ff ff ff ff ff ff",  # producer_id
        "ff ff",  # producer_epoch
        "ff ff ff ff",  # base_sequence
        "00 00 00 01",  # count
        "16 00 00 00 01 02 76 02 02 68 02 31",  # the record
    ]
    assert batch.hex(" ") == " ".join(fields)


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=5), st.integers(0, 2**62))
def test_a_batch_survives(records: list[LogRecord], base_offset: int) -> None:
    batch = encode(*records, base_offset=base_offset)
    read, end = read_batch(b"before" + batch + b"after", 6)
    assert end == 6 + len(batch)
    assert [r._replace(offset_delta=0) for r in read.records] == records
    assert [r.offset_delta for r in read.records] == list(range(len(records)))
    assert read.header == read_batch_header(batch)
    assert (read.header.base_offset, read.header.last_offset) == (base_offset, base_offset + len(records) - 1)
    assert read.header.max_timestamp == 1000 + max(r.timestamp_delta for r in records)


def test_a_control_batch_survives() -> None:
    change = ControlRecord(
        type=ControlType.LEADER_CHANGE,
        version=0,
        value={"version": 0, "leader_id": 3, "voters": [], "granting_voters": []},
    )
    batch, _ = read_batch(encode_control_batch([change], base_offset=0, partition_leader_epoch=1, timestamp_ms=5))
    assert batch.header.is_control
    assert [decode_control_record(record.key, record.value) for record in batch.records] == [change]


def test_a_batch_may_be_placed_without_touching_its_checksum() -> None:
    moved = placed(encode(LogRecord(value=b"v")), 77, 9)
    read, _ = read_batch(moved)
    assert (read.header.base_offset, read.header.partition_leader_epoch) == (77, 9)


def test_a_batch_that_is_cut_short_is_truncated() -> None:
    batch = encode(LogRecord(value=b"value"), LogRecord(value=b"other"))
    for length in range(len(batch)):
        with pytest.raises(Truncated):
            read_batch(batch[:length])


def test_the_last_batch_of_an_answer_may_be_cut_off() -> None:
    batch = encode(LogRecord(value=b"value"))
    for length in range(len(batch)):
        assert len(list(read_batches(batch + batch + batch[:length], partial=True))) == 2
    with pytest.raises(Truncated):
        list(read_batches(batch + batch[:-1]))


def test_every_flipped_bit_that_the_checksum_covers_is_found() -> None:
    batch = encode(LogRecord(value=b"v"))
    for at in range(17, len(batch)):
        damaged = bytearray(batch)
        damaged[at] ^= 0x40
        with pytest.raises(CodecError):
            read_batch(bytes(damaged))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_behind_a_right_checksum_is_a_codec_error(data: st.DataObject) -> None:
    """A stranger can compute checksums too."""
    batch = bytearray(encode(LogRecord(value=b"v", headers=(("h", b"1"),)), LogRecord(key=b"k")))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    damaged = with_crc(batch)
    try:
        read, end = read_batch(damaged)
    except CodecError:
        return
    assert end == read.header.size <= len(damaged)


@pytest.mark.parametrize(
    ("at", "byte", "said"),
    [
        (16, 1, "batch.magic at byte 16: format 1; 2 is the only one read here"),
        (8, 0xFF, "batch.batch_length at byte 8: -16777160 bytes; a header has 49"),
        (22, 1, "batch.attributes at byte 21: the records are compressed with gzip"),
        (22, 7, "batch.attributes at byte 21: no compression has the number 7"),
        (57, 0xFF, "batch.records at byte 57: -16777215 records in 7 bytes"),
        (60, 2, "batch.records at byte 57: 2 records in 7 bytes"),
        (23, 0x80, "batch.last_offset_delta at byte 23: -2147483648"),
        (61, 0x0A, "batch.record at byte 68: its length says 5 bytes, its parts have 6"),
        (61, 0x01, "batch.record.length at byte 61: -1"),
        (67, 0x01, "batch.record.headers at byte 67: -1 headers announced, 0 bytes left"),
        (60, 0, "batch at byte 61: 7 bytes after the last record"),
    ],
)
def test_what_is_refused(at: int, byte: int, said: str) -> None:
    batch = bytearray(encode(LogRecord()))
    assert len(batch) == HEADER_BYTES + 7
    batch[at] = byte
    with pytest.raises(CodecError) as error:
        read_batch(with_crc(batch))
    assert str(error.value) == said


def test_the_checksum_is_compared() -> None:
    batch = bytearray(encode(LogRecord()))
    batch[17:21] = bytes(4)
    with pytest.raises(CodecError, match=r"batch.crc at byte 17: 00000000 stored, [0-9a-f]{8} computed"):
        read_batch(bytes(batch))


def test_a_header_without_a_key_is_refused() -> None:
    batch = bytearray(encode(LogRecord(headers=(("", b""),))))
    batch[-2] = 1
    with pytest.raises(CodecError, match=r"record.headers.key at byte 68: null"):
        read_batch(with_crc(batch))


def test_a_batch_without_records_is_not_made() -> None:
    with pytest.raises(CodecError, match="Kafka has no empty batch"):
        encode()


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_numbers_out_of_range_are_refused(number: int) -> None:
    with pytest.raises(CodecError):
        encode(LogRecord(), base_offset=number)
    with pytest.raises(CodecError):
        placed(encode(LogRecord()), number, 0)


def test_a_span_says_where_a_batch_stands() -> None:
    batch = encode(LogRecord(value=b"a"), LogRecord(value=b"b"), LogRecord(value=b"c"))
    span = BatchSpan(base_offset=10, last_offset=12, leader_epoch=3, size=len(batch))
    assert read_batch_span(batch) == span
    assert read_batch_span(b"xyz" + batch + b"more", 3) == span


def test_a_span_of_less_than_a_whole_sound_batch_is_refused() -> None:
    batch = encode(LogRecord(value=b"value"))
    for size in range(len(batch)):
        with pytest.raises(Truncated):
            read_batch_span(batch[:size])
    # The first twelve bytes and the epoch are not under the checksum.
    for position in range(16, len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 1
        with pytest.raises(CodecError, match="magic" if position == 16 else "crc"):
            read_batch_span(bytes(damaged))
    negative = with_crc(batch[:23] + struct.pack(">i", -1) + batch[27:])
    with pytest.raises(CodecError, match="last_offset_delta"):
        read_batch_span(negative)
