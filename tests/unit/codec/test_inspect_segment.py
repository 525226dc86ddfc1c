"""Trees of log segments: batches, records, metadata and control records, and what may be wrong with them."""

import struct
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from codec import encode_response
from codec.batches import read_batch
from codec.checksum import crc32c
from codec.control_records import ControlType, encode_control_record
from codec.errors import CodecError
from codec.headers import ResponseHeader, encode_response_header
from codec.inspect import Api, Entry, Fault, Section, response_section, sections, segment_sections
from codec.inspect.render import line
from codec.log_records.access import USER_SCRAM_CREDENTIAL
from codec.log_records.settings import CONFIG
from codec.metadata_records import encode_metadata_record

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def batch(*records: Record, compression: int = 0) -> bytes:
    """What aiokafka writes for these keys, values and headers."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, (key, value, headers) in enumerate(records):
        builder.append(offset, timestamp=1000 + offset, key=key, value=value, headers=headers)
    return bytes(builder.build())


def sealed(whole: bytes, *, attributes: int | None = None) -> bytes:
    """The batch with other attributes and its checksum made right again."""
    rest = whole[21:] if attributes is None else struct.pack(">h", attributes) + whole[23:]
    return whole[:17] + struct.pack(">I", crc32c(rest)) + rest


def shown(found: list[Section]) -> str:
    return "\n".join("\n".join([s.title, *(line(item, s) for item in s.items)]) for s in found)


def items_of(data: bytes, **options: bool) -> list[Entry | Fault]:
    return [item for section in segment_sections(data, **options) for item in section.items]


def fault_of(data: bytes, **options: bool) -> Fault:
    *entries, fault = items_of(data, **options)
    assert isinstance(fault, Fault)
    assert not any(isinstance(entry, Fault) for entry in entries)
    return fault


def test_a_segment_is_its_batches_with_their_places() -> None:
    first, second = batch((b"k", b"v", [("h", b"\xff"), ("n", None)])), batch((None, None, []))
    text = shown(list(sections(first + second)))
    assert text.splitlines()[0] == "batch at offset 0, byte 0"
    assert f"batch at offset 0, byte {len(first)}" in text
    assert text.count("(agrees)") == 2
    for part in (
        "record 0: 15 bytes",
        "timestamp_delta: 0",
        'key: "k"',
        'value: "v"',
        "headers: 2",
        'key: "h"',
        "value: 0xff",
        "key: null",
        "value: null",
    ):
        assert part in text
    assert f"{len(first):8}  0000000000000000    base_offset: 0" in text


texts = st.binary(max_size=9) | st.none()
records = st.lists(
    st.tuples(texts, texts, st.lists(st.tuples(st.text(max_size=4), texts), max_size=2)), min_size=1, max_size=4
)


@settings(max_examples=100, deadline=None)
@given(records)
def test_a_batch_has_every_byte_once(drawn: list[Record]) -> None:
    data = batch(*drawn)
    at = 0
    for item in items_of(data):
        assert isinstance(item, Entry)
        assert item.start == at
        at = item.end
    assert at == len(data)
    keys = [item.value for item in items_of(data) if isinstance(item, Entry) and (item.name, item.depth) == ("key", 1)]
    assert keys == [key for key, _, _ in drawn]


@settings(max_examples=300, deadline=None)
@given(records, st.data(), st.booleans())
def test_a_damaged_segment_gives_entries_and_faults_only(
    drawn: list[Record], data: st.DataObject, metadata: bool
) -> None:
    damaged = bytearray(batch(*drawn) * 2)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    kept = bytes(damaged[: data.draw(st.integers(1, len(damaged)))])
    found = list(segment_sections(kept, is_metadata=metadata))
    assert len(shown(found).splitlines()) >= len(found) > 0


@settings(max_examples=300, deadline=None)
@given(records, st.data())
def test_a_damaged_batch_is_judged_as_the_reader_judges_it(drawn: list[Record], data: st.DataObject) -> None:
    damaged = bytearray(batch(*drawn))
    damaged[data.draw(st.integers(21, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    whole = sealed(bytes(damaged))
    if whole[22] & 0x27:
        return
    try:
        read_batch(whole)
    except CodecError:
        is_wrong = True
    else:
        is_wrong = False
    assert any(isinstance(item, Fault) for item in items_of(whole)) == is_wrong


def test_any_flipped_bit_below_the_checksum_is_found() -> None:
    good = batch((b"key", b"value", []))
    for at in range(21, len(good)):
        bad = bytearray(good)
        bad[at] ^= 1
        assert any(isinstance(item, Fault) for item in items_of(bytes(bad)))


@pytest.mark.parametrize(
    ("data", "field", "reason"),
    [
        (batch((b"k", b"v", []))[:-1], "batch", "the last 69 bytes are no whole batch"),
        (batch((b"k", b"v", []))[:12], "batch", "the last 12 bytes are no whole batch"),
        (bytes(8) + b"\0\0\0\x05" + bytes(4) + b"\2" + bytes(60), "batch.batch_length", "5; the least with magic 2"),
        (bytes(8) + b"\0\0\0\x40" + bytes(4) + b"\7" + bytes(60), "batch.magic", "7; Kafka has 0, 1 and 2"),
    ],
)
def test_what_is_no_batch_is_named(data: bytes, field: str, reason: str) -> None:
    fault = fault_of(data)
    assert fault.field == field
    assert reason in fault.reason


@pytest.mark.parametrize(
    ("at", "new", "field", "reason"),
    [
        (57, b"\xff\xff\xff\xff", "batch.records_count", "-1, which is negative"),
        (57, b"\0\0\0\0", "batch", "9 bytes left over in the batch"),
        (57, b"\0\0\0\x02", "record.length", "the bytes end within a varint"),
        (61, b"\x14", "record.length", "10 bytes announced, 8 left"),
        (61, b"\x01", "record.length", "-1, which is negative"),
        (61, b"\x0e", "record.headers", "the bytes end within a varint"),
        (65, b"\x7e", "record.key", "63 bytes announced, 4 left"),
        (67, b"\x7e", "record.value", "63 bytes announced, 2 left"),
        (22, b"\x05", "batch.attributes", "no compression has the number 5"),
        (23, b"\xff\xff\xff\xff", "batch.last_offset_delta", "-1, which is negative"),
        (62, b"\xff\xff\xff\xff\xff\xff\xff\xff", "record.timestamp_delta", "the bytes end within a varint"),
        (64, b"\xff\xff\xff\xff\xff", "record.offset_delta", "a varint of more than 32 bits"),
    ],
)
def test_what_is_no_record_is_named(at: int, new: bytes, field: str, reason: str) -> None:
    good = batch((b"k", b"v", []))
    fault = fault_of(sealed(good[:at] + new + good[at + len(new) :]))
    assert (fault.field, fault.reason) == (field, reason)


def test_a_checksum_that_does_not_agree_is_named_after_the_batch() -> None:
    bad = bytearray(batch((b"k", b"v", [])))
    bad[17] ^= 1
    *entries, fault = items_of(bytes(bad))
    assert isinstance(fault, Fault)
    assert (fault.field, fault.offset) == ("batch.crc", 17)
    assert any(isinstance(entry, Entry) and entry.value == b"v" for entry in entries)


def test_compressed_and_old_records_are_named_and_not_read() -> None:
    gzip = batch((b"k", b"v" * 100, []), compression=1)
    assert "attributes: 1 (gzip)" in shown(list(segment_sections(gzip)))
    assert "(compressed, not read)" in shown(list(segment_sections(gzip)))
    old = bytes(8) + struct.pack(">i", 14) + bytes(4) + b"\1" + bytes(9)
    assert "(magic 1, not read)" in shown(list(segment_sections(old)))
    assert not any(isinstance(item, Fault) for item in items_of(gzip + old))


def test_zeros_behind_the_last_batch_are_preallocated() -> None:
    *_, last = segment_sections(batch((b"k", b"v", [])) + bytes(5000))
    assert last.title == "5000 zero bytes, preallocated"
    assert list(last.items) == []


def test_metadata_records_are_taken_apart_and_their_secrets_hidden() -> None:
    config = {"resource_type": 2, "resource_name": "t", "name": "ssl.key.password", "value": "hunter2"}
    scram = {"name": "u", "salt": b"hunter2", "stored_key": b"hunter2", "server_key": b"hunter2"}
    values = [
        encode_metadata_record(CONFIG, 0, config),
        encode_metadata_record(CONFIG, 0, config | {"name": "retention.ms", "value": "5"}),
        encode_metadata_record(USER_SCRAM_CREDENTIAL, 0, scram),
    ]
    data = batch(*((None, value, []) for value in values))
    text = shown(list(segment_sections(data, is_metadata=True)))
    assert "type: 4 (ConfigRecord)" in text
    assert 'value: "5"' in text
    assert "hunter" not in text
    assert b"hunter".hex() not in text
    assert "WRONG" not in text


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (b"\2\4\0", "frame_version", "2; 1 is the only one"),
        (b"\1\4\0\2", "ConfigRecord.resource_name", "the bytes end within a varint"),
        (b"\1", "type", "the bytes end within a varint"),
    ],
)
def test_a_metadata_record_that_is_none_is_named(value: bytes, field: str, reason: str) -> None:
    fault = fault_of(batch((None, value, [])), is_metadata=True)
    assert (fault.field, fault.reason) == (field, reason)
    assert fault.offset >= 61


def test_a_metadata_record_of_a_later_kafka_is_opaque() -> None:
    text = shown(list(segment_sections(batch((None, b"\1\xff\1\0hunter2", [])), is_metadata=True)))
    assert "no table for record v0" in text
    assert "hunter" not in text
    assert "WRONG" not in text


@pytest.mark.parametrize("kind", ControlType)
def test_control_records_are_taken_apart(kind: ControlType) -> None:
    key, value = encode_control_record(kind, 0, {})
    text = shown(list(segment_sections(sealed(batch((key, value, [])), attributes=0x20))))
    assert "attributes: 32 (none, control)" in text
    assert "version: 0" in text
    assert "WRONG" not in text
    assert fault_of(sealed(batch((b"\0", value, [])), attributes=0x20)).field == "control_record.key"
    assert fault_of(sealed(batch((key, b"\0", [])), attributes=0x20)).reason == "2 bytes wanted, 1 there"


def fetched(records: bytes, topic: dict[str, Any]) -> list[Entry | Fault]:
    partition = {"records": records, "aborted_transactions": None}
    version = 12 if "topic" in topic else 13
    body = encode_response(1, version, {"responses": [topic | {"partitions": [partition]}]})
    payload = encode_response_header(ResponseHeader(correlation_id=1), 1, version) + body
    return list(response_section(struct.pack(">i", len(payload)) + payload, Api(1, version)).items)


def test_an_answer_may_end_within_a_batch() -> None:
    whole = batch((b"k", b"v", []))
    items = fetched(whole + whole[:-3], {"topic": "t"})
    assert not any(isinstance(item, Fault) for item in items)
    assert [item.note for item in items if isinstance(item, Entry) and item.name == "batch"] == [
        "",
        "goes on behind the end",
    ]


@pytest.mark.parametrize("topic", [{"topic": "__cluster_metadata"}, {"topic_id": bytes(15) + b"\1"}])
def test_the_metadata_log_in_an_answer_keeps_its_secrets(topic: dict[str, Any]) -> None:
    scram = encode_metadata_record(USER_SCRAM_CREDENTIAL, 0, {"name": "u", "salt": b"s", "stored_key": b"hunter2"})
    items = fetched(batch((None, scram, [])), topic)
    assert any(isinstance(item, Entry) and item.note == "UserScramCredentialRecord" for item in items)
    assert "hunter2" not in repr(items)
    assert not any(isinstance(item, Fault) for item in items)
