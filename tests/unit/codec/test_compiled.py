"""What the compiled closures do, rule by rule; that they equal their twin is shown in tests/properties."""

import struct
from typing import Any

import pytest

from codec import decode_request, decode_response, encode_request, encode_response
from codec.api_keys import ApiKey
from codec.compiled import decoder, encoder
from codec.errors import CodecError, Truncated
from codec.schema import BOOL, INT8, INT32, RECORDS, STRING, UUID, Message, array, field, request
from codec.schema import struct as struct_of

PLAIN = request(
    ApiKey.METADATA,
    "0-3",
    field("id", INT32, default=-1),
    field("name", STRING, nullable="1+"),
    array("numbers", INT32, nullable="1+", default=None),
    array("parts", field("index", INT8), field("on", BOOL), versions="2+"),
    field("records", RECORDS, "3+", nullable=True),
    flexible=None,
)
FLEXIBLE = request(
    ApiKey.METADATA,
    "0-1",
    field("id", INT32),
    struct_of("leader", field("node", INT32, default=-1), field("epoch", INT32, default=-1), tag=0),
    field("label", STRING, nullable=True, tag=1, default=None),
    struct_of("cursor", field("topic", STRING), nullable=True, default=None),
    array("ids", UUID),
    field("late", INT32, "1+", tag=3, default=7),
    flexible="0+",
)


def decode(message: Message, version: int, body: str) -> dict[str, Any]:
    value, end = decoder(message, version)(bytes.fromhex(body), 0)
    assert end == len(body.replace(" ", "")) // 2
    return value


def test_plain_lengths() -> None:
    value = {"id": 1, "name": "ab", "numbers": [1, -1], "parts": [{"index": 3, "on": True}], "records": b"\x00"}
    body = "00000001 0002 6162 00000002 00000001ffffffff 00000001 0301 00000001 00"
    assert encoder(PLAIN, 3)(value).hex() == body.replace(" ", "")
    assert decode(PLAIN, 3, body) == value


def test_plain_nulls() -> None:
    value: dict[str, Any] = {"id": -1, "name": None, "numbers": None, "parts": [], "records": None}
    body = "ffffffff ffff ffffffff 00000000 ffffffff"
    assert encoder(PLAIN, 3)(value).hex() == body.replace(" ", "")
    assert decode(PLAIN, 3, body) == value


def test_any_negative_length_is_null_as_in_kafka() -> None:
    assert decode(PLAIN, 1, "ffffffff 8000 fffffffe")["name"] is None
    assert decode(FLEXIBLE, 0, "00000000 80 01 00")["cursor"] is None
    assert decode(FLEXIBLE, 0, "00000000 00 02 61 00 01 00")["cursor"] == {"topic": "a"}


def test_null_where_it_is_not_allowed_is_refused_both_ways() -> None:
    with pytest.raises(CodecError, match="null") as caught:
        decode(PLAIN, 0, "00000000 ffff 00000000")
    assert (caught.value.field, caught.value.offset) == ("name", 4)
    with pytest.raises(CodecError, match="null"):
        encoder(PLAIN, 0)({"name": None, "numbers": []})
    with pytest.raises(CodecError, match="null"):
        encoder(PLAIN, 0)({"name": "a"})  # numbers default to null, which v0 does not allow


def test_fields_of_other_versions_are_absent_and_ignored() -> None:
    assert set(decode(PLAIN, 1, "00000000 ffff ffffffff")) == {"id", "name", "numbers"}
    assert encoder(PLAIN, 1)({"id": 0, "records": b"x", "parts": "nonsense"}).hex() == "00000000" + "0000" + "ffffffff"


def test_a_missing_key_takes_the_default() -> None:
    assert encoder(PLAIN, 3)({}).hex() == "ffffffff" + "0000" + "ffffffff" + "00000000" + "00000000"


def test_any_byte_but_zero_is_true() -> None:
    assert decode(PLAIN, 2, "00000000 0000 00000000 00000002 0102 0100")["parts"] == [
        {"index": 1, "on": True},
        {"index": 1, "on": False},
    ]


def test_compact_lengths_and_tagged_fields() -> None:
    value = {
        "id": 5,
        "cursor": {"topic": "a"},
        "ids": [bytes(range(16))],
        "leader": {"node": 2, "epoch": -1},
        "label": "x",
        "late": 9,
        "unknown_tags": {200: b"\xfe"},
    }
    body = (
        "00000005 01 02 61 00 02 000102030405060708090a0b0c0d0e0f"
        " 04 00 09 00000002ffffffff00 01 02 0278 03 04 00000009 c801 01 fe"
    )
    assert encoder(FLEXIBLE, 1)(value).hex() == body.replace(" ", "")
    assert decode(FLEXIBLE, 1, body) == value


def test_absent_tagged_fields_have_their_defaults_and_defaults_are_not_written() -> None:
    value: dict[str, Any] = {
        "id": 0,
        "cursor": None,
        "ids": [],
        "leader": {"node": -1, "epoch": -1},
        "label": None,
        "late": 7,
    }
    body = "00000000 ff 01 00"
    assert decode(FLEXIBLE, 1, body) == value
    assert encoder(FLEXIBLE, 1)(value).hex() == body.replace(" ", "")
    assert encoder(FLEXIBLE, 1)({"leader": {"node": -1}}).hex() == body.replace(" ", "")


def test_default_values_are_fresh_each_time() -> None:
    first = decode(FLEXIBLE, 1, "00000000 ff 01 00")
    first["leader"]["node"] = 99
    first["ids"].append(b"")
    assert decode(FLEXIBLE, 1, "00000000 ff 01 00")["leader"] == {"node": -1, "epoch": -1}


def test_a_tag_of_a_later_version_is_unknown_in_an_earlier_one() -> None:
    assert decode(FLEXIBLE, 0, "00000000 ff 01 01 03 04 00000009")["unknown_tags"] == {3: bytes.fromhex("00000009")}


def test_tags_in_any_order_are_read_and_written_in_ascending_order() -> None:
    value = decode(FLEXIBLE, 1, "00000000 ff 01 02 05 01 aa 03 04 00000009")
    assert (value["late"], value["unknown_tags"]) == (9, {5: b"\xaa"})
    assert encoder(FLEXIBLE, 1)(value).hex() == "00000000 ff 01 02 03 04 00000009 05 01 aa".replace(" ", "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("00000000 ff 01 02 05 00 05 00", "tag 5 twice"),
        ("00000000 ff 01 01 03 05 00000009 00", "announced 5 bytes and has 4"),
        ("00000000 ff 01 01 03 03 00000009", "announced 3 bytes and has 4"),
    ],
)
def test_malformed_tagged_fields_are_refused(body: str, reason: str) -> None:
    with pytest.raises(CodecError, match=reason):
        decoder(FLEXIBLE, 1)(bytes.fromhex(body), 0)


def test_a_count_is_compared_with_what_is_left_before_anything_is_made() -> None:
    many = struct.pack(">i", 2**31 - 1)
    with pytest.raises(Truncated, match="2147483647 elements announced, 0 bytes left") as caught:
        decoder(PLAIN, 1)(b"\0\0\0\0\0\0" + many, 0)
    assert (caught.value.field, caught.value.offset) == ("numbers", 6)
    with pytest.raises(Truncated, match="elements announced"):
        decoder(FLEXIBLE, 0)(bytes.fromhex("00000000 ff ffffffff0f") + bytes(100), 0)


def test_an_error_names_the_field_and_the_byte() -> None:
    with pytest.raises(Truncated) as caught:
        decode_request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, bytes.fromhex("01 000007d0 01 02 61 0000"))
    assert (caught.value.field, caught.value.offset) == ("cursor.partition_index", 8)
    assert str(caught.value) == "cursor.partition_index at byte 8: 4 bytes wanted, 2 left"


def test_an_error_inside_a_run_of_fields_names_the_one_that_is_missing() -> None:
    with pytest.raises(Truncated) as caught:
        decode_response(ApiKey.FETCH, 7, bytes(8))
    assert (caught.value.field, caught.value.offset) == ("session_id", 6)


@pytest.mark.parametrize(
    ("value", "field_name"),
    [
        ({"id": 2**31}, "id"),
        ({"id": "1"}, "id"),
        ({"id": None}, "id"),
        ({"name": b"bytes"}, "name"),
        ({"name": "x" * 40000}, "name"),
        ({"numbers": [1, 2**40]}, "numbers"),
        ({"parts": [{"index": 128}]}, "parts.index/on"),
        ({"records": "text"}, "records"),
        ({"records": 3}, "records"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_name_of_its_field(
    value: dict[str, Any], field_name: str
) -> None:
    with pytest.raises(CodecError) as caught:
        encoder(PLAIN, 3)({"numbers": [], **value})
    assert caught.value.field == field_name


@pytest.mark.parametrize("value", [{"parts": [None]}, {"parts": 3}, {"numbers": 3}, {"parts": ["text"]}])
def test_a_value_of_another_shape_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(CodecError, match="another shape"):
        encoder(PLAIN, 3)(value)


@pytest.mark.parametrize("uuid", [b"", bytes(15), bytes(17), "0" * 16, None])
def test_a_uuid_is_16_bytes(uuid: Any) -> None:
    with pytest.raises(CodecError, match="16 bytes"):
        encoder(FLEXIBLE, 0)({"ids": [uuid]})
    with pytest.raises(CodecError, match="16 bytes"):
        encode_request(ApiKey.METADATA, 12, {"topics": [{"topic_id": uuid, "name": "a"}]})


def test_a_known_tag_is_not_passed_off_as_an_unknown_one() -> None:
    with pytest.raises(CodecError, match=r"tags \[0\] have names"):
        encoder(FLEXIBLE, 0)({"unknown_tags": {0: b""}})


def test_a_version_without_a_table_is_refused() -> None:
    with pytest.raises(CodecError, match="no version 14; the table has 0 to 13"):
        decode_request(ApiKey.METADATA, 14, b"")
    with pytest.raises(CodecError, match="no version -1"):
        encode_response(ApiKey.METADATA, -1, {})
    with pytest.raises(CodecError, match="no table for API key 11"):
        decode_response(ApiKey.JOIN_GROUP, 0, b"")


def test_bytes_left_over_are_refused() -> None:
    body = encode_request(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    assert decode_request(ApiKey.SASL_HANDSHAKE, 1, b"head" + body, 4) == {"mechanism": "PLAIN"}
    with pytest.raises(CodecError, match="1 bytes left over"):
        decode_request(ApiKey.SASL_HANDSHAKE, 1, body + b"x")


def test_closures_are_made_once() -> None:
    assert decoder(PLAIN, 1) is decoder(PLAIN, 1)
    assert encoder(PLAIN, 1) is not encoder(PLAIN, 2)
