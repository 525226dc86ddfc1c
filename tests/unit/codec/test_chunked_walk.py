"""The walk over chunks finds what the walk over the whole answer finds, wherever the chunks end."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec.api_keys import ApiKey
from codec.chunked_walk import ChunkedWalk
from codec.errors import CodecError, Truncated
from codec.headers import response_body_offset
from codec.registry import known_versions, response_table
from codec.walk import WALKED, Walk, node_endpoints, replace_node_endpoints
from tests.support.message_values import values
from tests.unit.codec.test_walk import MOVED, answer, fetch, produce

TABLES: Final = [(key, version) for key in sorted(WALKED) for version in known_versions(key) or ()]
HELD_BYTES_MAX: Final = 64


class Outcome:
    """What came of an answer in chunks."""

    def __init__(self, api: tuple[int, int], chunks: Iterable[bytes]) -> None:
        walk = ChunkedWalk(*api)
        self.forwarded, self.tail = b"", b""
        self.held_bytes = 0
        for chunk in chunks:
            passed = walk.feed(chunk)
            assert not (self.tail and passed), "the tail ends with the payload"
            self.forwarded += chunk[:passed]
            self.tail += chunk[passed:]
            self.held_bytes = max(self.held_bytes, walk.held_bytes)
        self.tail_start = walk.tail_start
        self.walk = walk.finish(self.tail)


def cut(payload: bytes, places: Iterable[int]) -> list[bytes]:
    at = [0, *sorted(places), len(payload)]
    return [payload[start:end] for start, end in itertools.pairwise(at)]


def same(whole: Walk, payload: bytes, outcome: Outcome) -> None:
    assert outcome.forwarded + outcome.tail == payload
    assert outcome.walk.error_codes == whole.error_codes
    assert outcome.walk.endpoints == whole.endpoints
    assert outcome.tail_start == (whole.tail_start if whole.tail_start >= 0 else len(payload))
    assert outcome.held_bytes <= HELD_BYTES_MAX
    if whole.tail_start >= 0 and outcome.walk.endpoints:
        patched = replace_node_endpoints(outcome.tail, outcome.walk, [MOVED])
        assert outcome.forwarded + patched == replace_node_endpoints(payload, whole, [MOVED])


@pytest.mark.parametrize(("key", "version"), TABLES)
def test_every_split_in_two_finds_the_same(key: ApiKey, version: int) -> None:
    values_of: Mapping[int, Mapping[str, Any]] = {
        ApiKey.PRODUCE: produce(6, node_endpoints=[MOVED], unknown_tags={9: b"\xaa" * 200}),
        ApiKey.FETCH: fetch(6, node_endpoints=[MOVED]),
    }
    share = {"responses": [{"partitions": [{"error_code": 6, "records": b"r" * 300}]}], "node_endpoints": [MOVED]}
    payload, body_offset = answer(key, version, values_of.get(key, share))
    whole = node_endpoints(payload, key, version, body_offset)
    for place in range(len(payload) + 1):
        same(whole, payload, Outcome((key, version), cut(payload, [place])))
    same(whole, payload, Outcome((key, version), [bytes((byte,)) for byte in payload]))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TABLES), st.data())
def test_any_answer_in_any_chunks(api: tuple[int, int], data: st.DataObject) -> None:
    value = data.draw(values(response_table(api[0]), api[1]))
    payload, body_offset = answer(*api, value)
    places = data.draw(st.lists(st.integers(0, len(payload)), max_size=6))
    same(node_endpoints(payload, *api, body_offset), payload, Outcome(api, cut(payload, places)))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TABLES), st.data())
def test_damaged_answers_are_judged_as_by_the_whole_walk(api: tuple[int, int], data: st.DataObject) -> None:
    payload = bytearray(answer(*api, data.draw(values(response_table(api[0]), api[1])))[0])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    damaged = bytes(payload)
    places = data.draw(st.lists(st.integers(0, len(damaged)), max_size=4))
    try:
        whole = node_endpoints(damaged, *api, response_body_offset(damaged, *api))
    except CodecError:
        with pytest.raises(CodecError):
            Outcome(api, cut(damaged, places))
        return
    same(whole, damaged, Outcome(api, cut(damaged, places)))


def test_records_are_passed_over_without_being_kept() -> None:
    payload, _ = answer(ApiKey.FETCH, 17, fetch(0) | {"responses": [{"partitions": [{"records": bytes(100_000)}]}]})
    outcome = Outcome((ApiKey.FETCH, 17), cut(payload, range(0, len(payload), 1000)))
    assert outcome.held_bytes <= HELD_BYTES_MAX
    assert outcome.tail == b"\0"


@pytest.mark.parametrize("version", [4, 11, 15, 16])
def test_an_answer_that_ends_early_is_truncated(version: int) -> None:
    payload, _ = answer(ApiKey.FETCH, version, fetch(6))
    for length in range(len(payload)):
        with pytest.raises(Truncated):
            Outcome((ApiKey.FETCH, version), [payload[:length]])


def test_offsets_count_from_the_start_of_the_payload() -> None:
    payload, _ = answer(ApiKey.FETCH, 16, {"responses": []})
    assert payload[-2:] == b"\x01\x00"
    broken = payload[:-2] + b"\xff" * 5
    for place in range(len(broken)):
        with pytest.raises(CodecError) as error:
            Outcome((ApiKey.FETCH, 16), cut(broken, [place]))
        assert error.value.offset == len(payload) - 2


def test_an_api_without_a_walk_is_refused() -> None:
    with pytest.raises(CodecError, match="no walk for API key 3"):
        ChunkedWalk(ApiKey.METADATA, 12)
