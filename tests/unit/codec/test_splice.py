"""One array of an answer rewritten, and every other byte left as the broker sent it."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec import decode_response, encode_response
from codec.api_keys import ApiKey
from codec.errors import CodecError, Truncated
from codec.headers import ResponseHeader, encode_response_header
from codec.registry import known_versions, response_table
from codec.splice import Rewrite, replace_api_keys, replace_brokers, replace_coordinators
from tests.support.message_values import values

SPLICED: Final = [
    (key, version)
    for key in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS)
    for version in known_versions(key) or ()
]


def answer(key: int, version: int, value: Mapping[str, Any]) -> tuple[bytes, int]:
    header = encode_response_header(ResponseHeader(correlation_id=7), key, version)
    return header + encode_response(key, version, value), len(header)


def splice(key: int, version: int, payload: bytes, body_offset: int, rewrite: Rewrite) -> bytes:
    match key:
        case ApiKey.FIND_COORDINATOR:
            return replace_coordinators(payload, version, body_offset, rewrite)
        case ApiKey.API_VERSIONS:
            return replace_api_keys(payload, version, body_offset, rewrite)
        case _:
            return replace_brokers(payload, key, version, body_offset, rewrite)


def elements_of(key: int, version: int, value: dict[str, Any]) -> list[dict[str, Any]]:
    """The elements that are rewritten, the same objects as in the value where there is an array."""
    if key == ApiKey.FIND_COORDINATOR and version < 4:
        return [{name: value[name] for name in ("node_id", "host", "port")}]
    name = {ApiKey.FIND_COORDINATOR: "coordinators", ApiKey.API_VERSIONS: "api_keys"}.get(ApiKey(key), "brokers")
    return list(value[name])


def to_loopback(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for element in elements:
        if "host" in element:
            element |= {"host": "127.0.0.1", "port": 9100}
        else:
            element["max_version"] = 0
    return elements


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SPLICED), st.data())
def test_the_array_changes_and_nothing_else(api: tuple[ApiKey, int], data: st.DataObject) -> None:
    value = data.draw(values(response_table(api[0]), api[1], (("endpoint_type", st.just(1)),)))
    payload, body_offset = answer(*api, value)
    seen: list[dict[str, Any]] = []

    def rewrite(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen.extend(dict(element) for element in elements)
        return to_loopback(elements)

    spliced = splice(*api, payload, body_offset, rewrite)
    assert seen == elements_of(*api, value)
    decoded = decode_response(*api, spliced, body_offset)
    assert elements_of(*api, decoded) == to_loopback([dict(element) for element in seen])
    back = splice(*api, spliced, body_offset, lambda elements: [dict(element) for element in seen])
    assert back == payload


@pytest.mark.parametrize(("key", "version"), SPLICED)
def test_an_unchanged_answer_is_the_same_object(key: ApiKey, version: int) -> None:
    payload, body_offset = answer(key, version, {})
    assert splice(key, version, payload, body_offset, lambda elements: elements) is payload


def test_what_lies_behind_the_array_is_not_looked_at() -> None:
    start, body_offset = answer(ApiKey.METADATA, 12, {"brokers": [{"node_id": 1, "host": "b", "port": 9092}]})
    cut = start[: start.index(b"b") + len("b") + 6]  # port, rack, and the broker's tagged fields
    payload = cut + b"\xff\xff anything at all"
    spliced = replace_brokers(payload, ApiKey.METADATA, 12, body_offset, to_loopback)
    assert spliced.endswith(b"\xff\xff anything at all")
    assert b"127.0.0.1" in spliced


def test_explicit_defaults_and_unknown_tags_stay() -> None:
    """A broker may write a default that Kafka would leave out; clients have seen it so far, so they go on seeing it."""
    body = bytes.fromhex("0000 02 0003 0000 000c 00 00000000 02 01 08 ffffffffffffffff 63 01 aa")
    spliced = replace_api_keys(bytes(4) + body, 3, 4, to_loopback)
    assert spliced.hex(" ") == (bytes(4) + body.replace(b"\x00\x0c", b"\x00\x00")).hex(" ")


def test_elements_may_be_dropped_and_added() -> None:
    payload, body_offset = answer(ApiKey.API_VERSIONS, 0, {"api_keys": [{"api_key": key} for key in (0, 1, 78, 79)]})
    visible = replace_api_keys(payload, 0, body_offset, lambda keys: [key for key in keys if key["api_key"] < 78])
    assert [key["api_key"] for key in decode_response(ApiKey.API_VERSIONS, 0, visible, body_offset)["api_keys"]] == [
        0,
        1,
    ]
    more = replace_api_keys(visible, 0, body_offset, lambda keys: [*keys, {"api_key": 3}])
    assert len(decode_response(ApiKey.API_VERSIONS, 0, more, body_offset)["api_keys"]) == 3


@pytest.mark.parametrize("version", [1, 2])
def test_an_answer_that_lists_controllers_is_left_alone(version: int) -> None:
    brokers = [{"broker_id": 3001, "host": "controller", "port": 9093}]
    for endpoint_type, rewritten in ((1, True), (2, False)):
        value = {"endpoint_type": endpoint_type, "error_message": "m", "brokers": brokers}
        payload, body_offset = answer(ApiKey.DESCRIBE_CLUSTER, version, value)
        spliced = replace_brokers(payload, ApiKey.DESCRIBE_CLUSTER, version, body_offset, to_loopback)
        assert (spliced is payload) == (not rewritten)


def test_a_flat_coordinator_is_exactly_one() -> None:
    payload, body_offset = answer(ApiKey.FIND_COORDINATOR, 3, {"node_id": 1, "host": "b", "port": 9092})
    with pytest.raises(ValueError, match="unpack"):
        replace_coordinators(payload, 3, body_offset, lambda coordinators: [])


def test_bytes_that_end_before_the_array_does_are_truncated() -> None:
    value = {"brokers": [{"node_id": 1, "host": "broker", "port": 9092}], "cluster_id": "c"}
    payload, body_offset = answer(ApiKey.METADATA, 12, value)
    end = payload.index(b"broker") + len("broker") + 6
    for length in range(body_offset, end):
        with pytest.raises(Truncated):
            replace_brokers(payload[:length], ApiKey.METADATA, 12, body_offset, to_loopback)
    assert replace_brokers(payload[:end], ApiKey.METADATA, 12, body_offset, to_loopback) != payload[:end]


def test_a_version_without_a_table_is_refused() -> None:
    with pytest.raises(CodecError, match="no version 14"):
        replace_brokers(bytes(9), ApiKey.METADATA, 14, 5, to_loopback)
    with pytest.raises(CodecError, match="no version 3"):
        replace_brokers(bytes(9), ApiKey.DESCRIBE_CLUSTER, 3, 5, to_loopback)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SPLICED), st.binary(max_size=60))
def test_nothing_but_codec_errors_on_arbitrary_bytes(api: tuple[ApiKey, int], payload: bytes) -> None:
    try:
        assert isinstance(splice(*api, payload, 0, to_loopback), bytes)
    except CodecError:
        return
