"""The walk over Produce and Fetch answers: what it finds, and that a patched answer differs in its tail only."""

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
from codec.walk import WALKED as WALKED_APIS
from codec.walk import Walk, node_endpoints, replace_node_endpoints
from tests.support.message_values import values

WALKED: Final = [(key, version) for key in sorted(WALKED_APIS) for version in known_versions(key) or ()]
ADDRESSED: Final = (
    [(ApiKey.PRODUCE, v) for v in (10, 13)]
    + [(ApiKey.FETCH, v) for v in (16, 18)]
    + [(key, v) for key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE) for v in (0, 1, 2)]
)
ENDPOINT: Final = {"node_id": 1, "host": "127.0.0.1", "port": 9101, "rack": None}
MOVED: Final = {"node_id": 2, "host": "broker-2.internal", "port": 9092, "rack": "a"}


def answer(key: int, version: int, value: Mapping[str, Any]) -> tuple[bytes, int]:
    header = encode_response_header(ResponseHeader(correlation_id=7), key, version)
    return header + encode_response(key, version, value), len(header)


def walk(key: int, version: int, value: Mapping[str, Any]) -> tuple[bytes, Walk]:
    payload, body_offset = answer(key, version, value)
    return payload, node_endpoints(payload, key, version, body_offset)


def partitions(key: int, value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    name = "partition_responses" if key == ApiKey.PRODUCE else "partitions"
    return [partition for topic in value["responses"] for partition in topic[name]]


def fetch(error_code: int, **more: Any) -> dict[str, Any]:
    partition = {"error_code": error_code, "records": b"r" * 300}
    return {"responses": [{"topic": "t", "partitions": [{"error_code": 0}, partition]}], **more}


def produce(error_code: int, **more: Any) -> dict[str, Any]:
    return {"responses": [{"name": "t", "partition_responses": [{"error_code": error_code}]}], **more}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WALKED), st.data())
def test_the_walk_finds_what_a_decoder_finds(api: tuple[ApiKey, int], data: st.DataObject) -> None:
    value = data.draw(values(response_table(api[0]), api[1]))
    _, found = walk(*api, value)
    codes = {p.get(name, 0) for p in partitions(api[0], value) for name in ("error_code", "acknowledge_error_code")}
    assert found.error_codes == codes - {0}
    assert found.endpoints == tuple(value.get("node_endpoints", ()))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ADDRESSED), st.data())
def test_replaced_endpoints_change_nothing_else(api: tuple[ApiKey, int], data: st.DataObject) -> None:
    value = data.draw(values(response_table(api[0]), api[1]))
    wanted = data.draw(st.lists(st.sampled_from([ENDPOINT, MOVED]), max_size=2))
    payload, found = walk(*api, value)
    replaced = replace_node_endpoints(payload, found, wanted)
    body_offset = len(encode_response_header(ResponseHeader(correlation_id=7), *api))
    assert decode_response(*api, replaced, body_offset) == value | {"node_endpoints": wanted}
    assert replaced[: found.tail_start] == payload[: found.tail_start]


@pytest.mark.parametrize(("key", "version"), WALKED)
def test_a_walk_over_an_answer_that_is_cut_short_or_too_long_fails(key: ApiKey, version: int) -> None:
    value = produce(6) if key == ApiKey.PRODUCE else fetch(6)
    payload, body_offset = answer(key, version, value | {"node_endpoints": [MOVED]})
    for length in range(body_offset, len(payload)):
        with pytest.raises(Truncated):
            node_endpoints(payload[:length], key, version, body_offset)
    with pytest.raises(CodecError, match="1 bytes left over"):
        node_endpoints(payload + b"\0", key, version, body_offset)


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 72, 74, 75, 100, 103])
def test_errors_that_speak_of_a_leader(code: int) -> None:
    for version in (0, 4, 11, 18):
        found = walk(ApiKey.FETCH, version, fetch(code))[1]
        assert (found.error_codes, found.leader_changed) == (frozenset({code}), True)
    for version in (0, 2, 5, 8, 9, 13):
        found = walk(ApiKey.PRODUCE, version, produce(code))[1]
        assert (found.error_codes, found.leader_changed) == (frozenset({code}), True)


@pytest.mark.parametrize("code", [0, 1, 7, 29, -1])
def test_errors_that_do_not(code: int) -> None:
    found = walk(ApiKey.FETCH, 16, fetch(code))[1]
    assert (found.error_codes, found.leader_changed) == (frozenset({code} - {0}), False)


@pytest.mark.parametrize("name", ["error_code", "acknowledge_error_code"])
def test_share_fetch_answers_have_two_errors_a_partition(name: str) -> None:
    value = {"responses": [{"partitions": [{name: 6, "records": b"r"}]}]}
    for version in (0, 1, 2):
        found = walk(ApiKey.SHARE_FETCH, version, value)[1]
        assert (found.error_codes, found.leader_changed) == (frozenset({6}), True)


def test_an_array_of_endpoints_is_replaced_where_it_stands() -> None:
    value = {"node_endpoints": [MOVED], "unknown_tags": {9: b"\xaa"}}
    payload, found = walk(ApiKey.SHARE_ACKNOWLEDGE, 1, value)
    assert found.endpoints == (MOVED,)
    tail = replace_node_endpoints(payload, found, [ENDPOINT])[found.tail_start :]
    assert tail.hex(" ") == "02 00 00 00 01 0a 31 32 37 2e 30 2e 30 2e 31 00 00 23 8d 00 00 01 09 01 aa"
    assert replace_node_endpoints(payload, found, [])[found.tail_start :].hex(" ") == "01 01 09 01 aa"


def test_the_top_level_error_of_a_fetch_is_not_a_partitions() -> None:
    assert walk(ApiKey.FETCH, 16, fetch(0) | {"error_code": 70})[1].error_codes == frozenset()


def test_a_replaced_tail_byte_by_byte() -> None:
    payload, found = walk(ApiKey.PRODUCE, 10, produce(6, node_endpoints=[MOVED], unknown_tags={9: b"\xaa"}))
    tail = replace_node_endpoints(payload, found, [ENDPOINT])[found.tail_start :]
    assert tail.hex(" ") == "02 00 15 02 00 00 00 01 0a 31 32 37 2e 30 2e 30 2e 31 00 00 23 8d 00 00 09 01 aa"


def test_endpoints_may_be_dropped_and_added() -> None:
    payload, found = walk(ApiKey.FETCH, 16, fetch(6, node_endpoints=[MOVED]))
    bare, without = walk(ApiKey.FETCH, 16, fetch(6))
    assert replace_node_endpoints(payload, found, []) == bare
    assert replace_node_endpoints(bare, without, [MOVED]) == payload
    assert replace_node_endpoints(bare, without, []) is bare


def test_a_version_without_endpoints_takes_none() -> None:
    payload, found = walk(ApiKey.FETCH, 15, fetch(6))
    assert replace_node_endpoints(payload, found, []) is payload
    with pytest.raises(CodecError, match="version 15 has none"):
        replace_node_endpoints(payload, found, [ENDPOINT])


def test_an_endpoint_that_does_not_fit_is_refused() -> None:
    payload, found = walk(ApiKey.FETCH, 16, fetch(6))
    with pytest.raises(CodecError):
        replace_node_endpoints(payload, found, [ENDPOINT | {"port": 2**31}])


def test_endpoints_must_fill_their_tagged_field() -> None:
    payload, found = walk(ApiKey.FETCH, 16, fetch(6))
    broken = payload[: found.tail_start] + bytes.fromhex("01 00 02 01 00")
    with pytest.raises(CodecError, match="node_endpoints"):
        node_endpoints(broken, ApiKey.FETCH, 16, 5)


def test_tag_0_of_a_version_without_endpoints_is_not_read() -> None:
    payload, found = walk(ApiKey.FETCH, 15, fetch(6))
    strange = payload[: found.tail_start] + bytes.fromhex("01 00 02 ffff")
    assert node_endpoints(strange, ApiKey.FETCH, 15, 5).endpoints == ()


@pytest.mark.parametrize(("key", "version"), [(ApiKey.FETCH, 19), (ApiKey.PRODUCE, 14), (ApiKey.METADATA, 12)])
def test_what_cannot_be_walked_is_refused(key: ApiKey, version: int) -> None:
    with pytest.raises(CodecError, match="no "):
        node_endpoints(bytes(10), key, version, 5)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(WALKED), st.binary(max_size=80))
def test_nothing_but_codec_errors_on_arbitrary_bytes(api: tuple[ApiKey, int], payload: bytes) -> None:
    try:
        found = node_endpoints(payload, *api, 0)
    except CodecError:
        return
    assert replace_node_endpoints(payload, found, found.endpoints) is not None
