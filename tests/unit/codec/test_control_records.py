"""Control records: keys and values byte by byte, and what is refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec.control_records import (
    CONTROL_TABLES,
    ControlType,
    control_type_of,
    decode_control_record,
    encode_control_record,
)
from codec.errors import CodecError
from tests.support.message_values import values

VERSIONED = [
    (ControlType(type_id), version)
    for type_id, table in CONTROL_TABLES.items()
    for version in range(table.versions.first, table.versions.last + 1)
]


def test_a_change_of_leaders_byte_by_byte() -> None:
    key, value = encode_control_record(
        ControlType.LEADER_CHANGE, 0, {"leader_id": 3, "voters": [{"voter_id": 3}], "granting_voters": []}
    )
    assert key.hex(" ") == "00 00 00 02"
    assert value.hex(" ") == "00 00 00 00 00 03 02 00 00 00 03 00 01 00"


def test_a_marker_has_its_version_in_front() -> None:
    key, value = encode_control_record(ControlType.COMMIT, 0, {"coordinator_epoch": 7})
    assert (key.hex(" "), value.hex(" ")) == ("00 00 00 01", "00 00 00 00 00 07")
    assert decode_control_record(key, value).value == {"coordinator_epoch": 7}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(VERSIONED), st.data())
def test_every_record_in_every_version_survives(kind: tuple[ControlType, int], data: st.DataObject) -> None:
    value: dict[str, Any] = data.draw(values(CONTROL_TABLES[kind[0]], kind[1]))
    if "version" in value:
        value["version"] = kind[1]
    read = decode_control_record(*encode_control_record(*kind, value))
    assert (read.type, read.version, read.value) == (*kind, value)


def test_a_type_of_the_future_can_be_told() -> None:
    assert control_type_of(bytes.fromhex("0000 0007")) == 7


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (None, b"", "control_record.key at byte 0: 4 bytes wanted, 0 there"),
        ("0000", b"", "control_record.key at byte 0: 4 bytes wanted, 2 there"),
        ("ffff 0002", b"", "control_record.key at byte 0: version -1"),
        ("0000 0007", b"", "control_record.type at byte 2: no control record of type 7"),
        ("0000 0004", None, "SnapshotFooterRecord.version at byte 0: 2 bytes wanted, 0 there"),
        ("0000 0004", bytes.fromhex("0001 00"), "SnapshotFooterRecord at byte 0: no version 1; the table has 0 to 0"),
        ("0000 0004", bytes.fromhex("0000 00 00"), "SnapshotFooterRecord at byte 3: 1 bytes left over"),
    ],
)
def test_what_is_refused(key: str | None, value: bytes | None, said: str) -> None:
    with pytest.raises(CodecError) as error:
        decode_control_record(None if key is None else bytes.fromhex(key), value)
    assert str(error.value) == said
