"""A large answer in chunks becomes what the whole answer would become, in as many bytes as its frame announced."""

import itertools
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec import CodecError, Truncated, decode_response
from codec.api_keys import ApiKey
from codec.headers import ConsistencyState, response_body_offset, stamp_response
from codec.walk import WALKED
from sidecar.core.addresses import NodePorts
from sidecar.core.apis import Kind, Trace
from sidecar.core.exchange import Request
from sidecar.core.ids import NodeId
from sidecar.core.long_answers import HEADER_BYTES_MAX, TAIL_BYTES_MAX, LongAnswer
from tests.unit.codec.test_walk import ADDRESSED, answer

STATE: Final = ConsistencyState(cluster_id="cluster", consistency_token=41)
RECORDS: Final = b"r" * 3000


def request(key: int, version: int) -> Request:
    return Request(api_key=key, api_version=version, correlation_id=7, kind=Kind.PLAIN, trace=Trace.NONE)


def node_ports(host: str) -> NodePorts:
    ports = NodePorts(19101, 19199, advertised_host=host)
    ports.assign(map(NodeId, (1, 2, 3)))
    return ports


def value_of(key: int, endpoints: list[dict[str, Any]]) -> Mapping[str, Any]:
    partition: dict[str, Any] = {"error_code": 6 if endpoints else 0}
    if key in (ApiKey.FETCH, ApiKey.SHARE_FETCH):
        partition["records"] = RECORDS
    name = "partition_responses" if key == ApiKey.PRODUCE else "partitions"
    return {"responses": [{name: [partition] * 3}], "node_endpoints": endpoints}


def endpoint(node_id: int, host: str) -> dict[str, Any]:
    return {"node_id": node_id, "host": host, "port": 9092, "rack": None}


def passed(
    key: int, version: int, payload: bytes, cuts: Iterable[int], *, host: str = "127.0.0.1", takes_state: bool = False
) -> tuple[bytes, LongAnswer]:
    """All that goes to the client, and the answer; nothing is left when its brokers are asked for."""
    long = LongAnswer(request(key, version), len(payload), takes_state=takes_state)
    sent = long.begin()
    places = [0, *sorted(cuts), len(payload)]
    for start, end in itertools.pairwise(places):
        sent += long.feed(payload[start:end])
    assert long.left == 0
    assert all(address.port == 9092 for address in long.named())
    return sent + long.last(node_ports(host)), long


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(ADDRESSED),
    st.lists(st.text("abc.", min_size=1, max_size=30), max_size=3),
    st.text("xy", min_size=1, max_size=30),
    st.booleans(),
    st.data(),
)
def test_any_chunks_of_any_answer(
    api: tuple[int, int], hosts: list[str], ours: str, stamped: bool, data: st.DataObject
) -> None:
    endpoints = [endpoint(node_id, host) for node_id, host in enumerate(hosts, 1)]
    bare, _ = answer(*api, value_of(api[0], endpoints))
    payload = stamp_response(bare, *api, STATE) if stamped else bare
    cuts = data.draw(st.lists(st.integers(0, len(payload)), max_size=8))
    sent, long = passed(*api, payload, cuts, host=ours, takes_state=True)
    assert (long.state, long.leader_changed) == (STATE if stamped else None, bool(hosts))
    (size,) = struct.unpack_from(">i", sent)
    assert size == len(sent) - 4 == len(bare)
    body = decode_response(*api, sent, 4 + response_body_offset(sent[4:], *api))
    got = [(e["node_id"], e["host"], e["port"]) for e in body.get("node_endpoints", ())]
    assert got == [(node_id, ours, 19100 + node_id) for node_id in range(1, len(got) + 1)]
    assert body["responses"] == decode_response(*api, bare, response_body_offset(bare, *api))["responses"]


@pytest.mark.parametrize("key", sorted({ApiKey.DESCRIBE_CONFIGS, *WALKED}))
def test_an_answer_that_names_nobody_passes_as_it_came(key: ApiKey) -> None:
    version = 2 if key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE) else 8 if key in WALKED else 4
    payload, _ = answer(key, version, value_of(key, []) if key in WALKED else {})
    for chunk_bytes in (1, 7, 1000, 10_000):
        sent, long = passed(key, version, payload, range(chunk_bytes, len(payload), chunk_bytes))
        assert sent == struct.pack(">i", len(payload)) + payload
        assert not long.leader_changed


def test_next_to_nothing_is_kept() -> None:
    payload, _ = answer(ApiKey.FETCH, 17, value_of(ApiKey.FETCH, [endpoint(1, "broker")]))
    long = LongAnswer(request(ApiKey.FETCH, 17), len(payload), takes_state=True)
    held = 0
    for start in range(0, len(payload), 50):
        long.feed(payload[start : start + 50])
        held = max(held, long.held_bytes)
    assert held < 100


def test_a_header_that_never_ends_is_refused() -> None:
    long = LongAnswer(request(ApiKey.FETCH, 17), 10**8, takes_state=True)
    begun = bytes(4) + b"\x01\x05" + b"\xff\xff\xff\x7f"
    assert long.feed(begun) == b""
    assert long.feed(bytes(HEADER_BYTES_MAX // 2)) == b""
    with pytest.raises(CodecError):
        long.feed(bytes(HEADER_BYTES_MAX // 2))


def test_a_tail_that_never_ends_is_refused() -> None:
    payload, _ = answer(ApiKey.FETCH, 17, value_of(ApiKey.FETCH, []))
    long = LongAnswer(request(ApiKey.FETCH, 17), 10**8, takes_state=False)
    long.feed(payload[:-1] + b"\x01\x05\xff\xff\xff\x7f")
    with pytest.raises(CodecError, match="behind the partitions"):
        long.feed(bytes(TAIL_BYTES_MAX))


def test_an_answer_that_ends_too_early_is_refused() -> None:
    payload, _ = answer(ApiKey.FETCH, 17, value_of(ApiKey.FETCH, []))
    for end in (4, 20, len(payload) - 1):
        for takes_state in (True, False):
            long = LongAnswer(request(ApiKey.FETCH, 17), end, takes_state=takes_state)
            long.feed(payload[:end])
            with pytest.raises(Truncated):
                long.named()


def test_bytes_behind_the_tail_are_refused() -> None:
    payload, _ = answer(ApiKey.FETCH, 17, value_of(ApiKey.FETCH, []))
    long = LongAnswer(request(ApiKey.FETCH, 17), len(payload) + 1, takes_state=False)
    long.feed(payload + b"\0")
    with pytest.raises(CodecError, match="left over"):
        long.named()
