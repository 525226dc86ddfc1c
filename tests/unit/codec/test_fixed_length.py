"""A tail with other addresses keeps its length and its meaning, whatever the hosts are called."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec import decode_response
from codec.api_keys import ApiKey
from codec.errors import CodecError
from codec.fixed_length import FILLING_TAG, fit_node_endpoints
from codec.walk import node_endpoints, walk_tail
from tests.unit.codec.test_walk import ADDRESSED, answer

NAMES: Final = st.text("abcdefgh.-", min_size=1, max_size=20) | st.text("x", min_size=100, max_size=180)
ENDPOINTS: Final = st.lists(
    st.fixed_dictionaries({"host": NAMES, "port": st.integers(1, 65535), "rack": st.none() | NAMES}),
    min_size=1,
    max_size=20,
).map(lambda found: [{"node_id": node_id, **fields} for node_id, fields in enumerate(found, 1)])
UNKNOWN: Final = st.dictionaries(st.integers(5, 20000), st.binary(max_size=20), max_size=3)


def moved(key: int, version: int, endpoints: list[dict[str, Any]], unknown: dict[int, bytes]) -> tuple[bytes, int]:
    name = "partition_responses" if key == ApiKey.PRODUCE else "partitions"
    value = {"responses": [{name: [{"error_code": 6}]}], "node_endpoints": endpoints, "unknown_tags": unknown}
    return answer(key, version, value)


def rewritten(endpoints: list[dict[str, Any]], host: str, port: int = 19101) -> list[dict[str, Any]]:
    return [{**endpoint, "host": host, "port": port + at} for at, endpoint in enumerate(endpoints)]


def fitted(key: int, version: int, endpoints: list[dict[str, Any]], host: str, unknown: dict[int, bytes]) -> Any:
    """The decoded answer after its tail got other endpoints, its length checked."""
    payload, body_offset = moved(key, version, endpoints, unknown)
    whole = node_endpoints(payload, key, version, body_offset)
    tail = payload[whole.tail_start :]
    found = fit_node_endpoints(tail, walk_tail(tail, key, version, whole.error_codes), rewritten(endpoints, host))
    assert len(found) == len(tail)
    return decode_response(key, version, payload[: whole.tail_start] + found, body_offset)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ADDRESSED), ENDPOINTS, NAMES, UNKNOWN)
def test_any_tail_keeps_its_length_and_names_no_other_address(
    api: tuple[int, int], endpoints: list[dict[str, Any]], host: str, unknown: dict[int, bytes]
) -> None:
    body = fitted(*api, endpoints, host, unknown)
    wanted = rewritten(endpoints, host)
    got = body.get("node_endpoints", [])
    assert [(e["node_id"], e["host"], e["port"]) for e in got] == [
        (e["node_id"], e["host"], e["port"]) for e in wanted[: len(got)]
    ]
    assert all(mine["rack"] in (None, asked["rack"]) for mine, asked in zip(got, wanted, strict=False))
    kept = body.get("unknown_tags", {})
    assert {tag: kept[tag] for tag in unknown} == unknown
    assert all(FILLING_TAG - 3 <= tag <= FILLING_TAG for tag in kept.keys() - unknown.keys())


@pytest.mark.parametrize("api", ADDRESSED)
def test_room_of_three_bytes_and_more_is_filled(api: tuple[int, int]) -> None:
    for shorter in (0, *range(3, 160)):
        endpoint = {"node_id": 1, "host": "b" * (10 + shorter), "port": 9092, "rack": "r"}
        body = fitted(*api, [endpoint], "h" * 10, {})
        assert body["node_endpoints"] == [{"node_id": 1, "host": "h" * 10, "port": 19101, "rack": "r"}]


@pytest.mark.parametrize("api", ADDRESSED)
@pytest.mark.parametrize("longer", [-2, -1, 1, 2, 3])
def test_racks_make_room(api: tuple[int, int], longer: int) -> None:
    endpoint = {"node_id": 1, "host": "b" * 10, "port": 9092, "rack": "eu-west-1a"}
    body = fitted(*api, [endpoint], "h" * (10 + longer), {})
    assert [(e["host"], e["rack"]) for e in body["node_endpoints"]] == [("h" * (10 + longer), None)]


@pytest.mark.parametrize("api", ADDRESSED)
def test_endpoints_are_left_out_from_the_end_where_there_is_no_room(api: tuple[int, int]) -> None:
    endpoints = [{"node_id": n, "host": f"broker-{n}", "port": 9092, "rack": None} for n in range(1, 13)]
    body = fitted(*api, endpoints, "a-sidecar-with-a-long-name", {})
    left = [e["node_id"] for e in body["node_endpoints"]]
    assert left == list(range(1, len(left) + 1))
    assert 3 <= len(left) <= 6


@pytest.mark.parametrize("api", ADDRESSED)
def test_none_at_all_is_the_last_resort(api: tuple[int, int]) -> None:
    body = fitted(*api, [{"node_id": 1, "host": "b", "port": 9092, "rack": None}], "somewhat-longer", {})
    assert not body["node_endpoints"]


def test_a_filled_tail_byte_by_byte() -> None:
    tail = bytes.fromhex("01 00 10 02 00000002 05") + b"abcd" + bytes.fromhex("00002384 00 00")
    walk = walk_tail(tail, ApiKey.FETCH, 16, frozenset({6}))
    found = fit_node_endpoints(tail, walk, [{"node_id": 2, "host": "a", "port": 1, "rack": None}])
    assert found.hex(" ") == "02 00 0d 02 00 00 00 02 02 61 00 00 00 01 00 00 ff 7f 00"


def test_a_number_that_is_taken_is_left_alone() -> None:
    endpoint = {"node_id": 1, "host": "b" * 20, "port": 9092, "rack": None}
    body = fitted(ApiKey.FETCH, 17, [endpoint], "h", {FILLING_TAG: b"theirs"})
    assert body["unknown_tags"][FILLING_TAG] == b"theirs"
    assert set(body["unknown_tags"]) == {FILLING_TAG, FILLING_TAG - 1}


def test_an_endpoint_that_does_not_fit_its_fields_is_refused() -> None:
    tail = bytes.fromhex("01 00 10 02 00000002 05") + b"abcd" + bytes.fromhex("00002384 00 00")
    walk = walk_tail(tail, ApiKey.FETCH, 16, frozenset())
    with pytest.raises(CodecError):
        fit_node_endpoints(tail, walk, [{"node_id": 2, "host": "a", "port": 2**31, "rack": None}])
