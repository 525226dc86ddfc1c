"""Metadata records in their frames, byte by byte, and what is refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec.errors import CodecError
from codec.log_records import settings as setting_tables
from codec.log_records import topics
from codec.metadata_records import METADATA_TABLES, decode_metadata_record, encode_metadata_record
from codec.schema import Record
from tests.support.message_values import values

TOPIC_ID = bytes(range(16))
VERSIONED = [
    (table, version)
    for table in METADATA_TABLES.values()
    for version in range(table.versions.first, table.versions.last + 1)
]


def test_a_topic_byte_by_byte() -> None:
    encoded = encode_metadata_record(topics.TOPIC, 0, {"name": "orders", "topic_id": TOPIC_ID})
    assert encoded.hex(" ") == f"01 02 00 07 6f 72 64 65 72 73 {TOPIC_ID.hex(' ')} 00"
    read = decode_metadata_record(encoded)
    assert (read.table, read.version, read.value) == (topics.TOPIC, 0, {"name": "orders", "topic_id": TOPIC_ID})


def test_a_record_without_fields() -> None:
    assert encode_metadata_record(setting_tables.NO_OP, 0, {}) == bytes.fromhex("01 14 00 00")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(VERSIONED), st.data())
def test_every_record_in_every_version_survives(table: tuple[Record, int], data: st.DataObject) -> None:
    value: dict[str, Any] = data.draw(values(*table))
    read = decode_metadata_record(encode_metadata_record(*table, value))
    assert (read.table, read.version, read.value) == (*table, value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "frame_version at byte 0: the bytes end within a varint"),
        ("00 14 00 00", "frame_version at byte 0: 0; 1 is the only one"),
        ("01 06 00 00", "type at byte 1: no metadata record of type 6"),
        ("01 14 01 00", "NoOpRecord at byte 0: no version 1; the table has 0 to 0"),
        ("01 14 00 00 00", "NoOpRecord at byte 4: 1 bytes left over"),
    ],
)
def test_what_is_refused(value: str, said: str) -> None:
    with pytest.raises(CodecError) as error:
        decode_metadata_record(bytes.fromhex(value))
    assert str(error.value) == said
