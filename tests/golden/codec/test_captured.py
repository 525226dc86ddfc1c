"""Frames captured between real clients and real brokers: read, and written again byte for byte.

Each JSON file beside this test is one frame without its size. `provenance` says who sent it; `body` was compared with
what kio reads when the frame was captured. Bytes stand as {"$hex": ...}.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from codec import decode_request, decode_response, encode_request, encode_response
from codec.api_keys import ApiKey
from codec.headers import (
    encode_request_header,
    encode_response_header,
    read_request_header,
    read_response_header,
    request_body_offset,
    response_body_offset,
)
from codec.reference import build, parse
from codec.registry import request_table, response_table
from codec.splice import replace_brokers
from codec.walk import node_endpoints, replace_node_endpoints

FRAMES: Final = sorted(Path(__file__).parent.glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    captured: dict[str, Any] = json.loads(path.read_text(), object_hook=_bytes)
    return captured | {"payload": bytes.fromhex(captured["hex"])}


def _bytes(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["$hex"]) if "$hex" in value else value


def named(part: str) -> list[Path]:
    return [path for path in FRAMES if part in path.name]


BROKER_LISTS: Final = [path for path in named("-3-v1") + named("-60-v") if path.name.startswith("broker")]


def test_the_frames_are_there() -> None:
    assert len(FRAMES) >= 25
    assert len(named("moved-0")) >= 2
    assert len(named("moved-1")) >= 2
    assert len(BROKER_LISTS) >= 4


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_a_captured_frame_is_read_and_written_again(path: Path) -> None:
    frame = load(path)
    payload, key, version = frame["payload"], frame["api_key"], frame["api_version"]
    if frame["direction"] == "request":
        header, body_offset = read_request_header(payload)
        assert body_offset == request_body_offset(payload)
        assert (header.api_key, header.api_version, header.client_id) == (key, version, frame["header"]["client_id"])
        assert decode_request(key, version, payload, body_offset) == frame["body"]
        assert encode_request_header(header) + encode_request(key, version, frame["body"]) == payload
        table = request_table(key)
    else:
        answer, body_offset = read_response_header(payload, key, version)
        assert body_offset == response_body_offset(payload, key, version)
        assert answer.correlation_id == frame["header"]["correlation_id"]
        assert decode_response(key, version, payload, body_offset) == frame["body"]
        assert encode_response_header(answer, key, version) + encode_response(key, version, frame["body"]) == payload
        table = response_table(key)
    assert parse(table, version, payload[body_offset:]) == frame["body"]
    assert build(table, version, frame["body"]) == payload[body_offset:]


@pytest.mark.parametrize("path", named("moved-0-v1") + named("moved-1-v1"), ids=lambda path: path.stem)
def test_the_walk_over_an_answer_from_a_broker_that_does_not_lead(path: Path) -> None:
    frame = load(path)
    payload, key, version = frame["payload"], frame["api_key"], frame["api_version"]
    walk = node_endpoints(payload, key, version, response_body_offset(payload, key, version))
    assert (walk.error_codes, walk.leader_changed) == (frozenset({6}), True)
    assert list(walk.endpoints) == frame["body"].get("node_endpoints", [])
    if walk.endpoints:
        (moved,) = walk.endpoints
        replaced = replace_node_endpoints(payload, walk, [moved | {"port": 1}])
        assert replaced == payload.replace(moved["port"].to_bytes(4, "big"), (1).to_bytes(4, "big"))


@pytest.mark.parametrize("path", BROKER_LISTS, ids=lambda path: path.stem)
def test_brokers_of_a_captured_answer_are_replaced_in_place(path: Path) -> None:
    frame = load(path)
    payload, key, version = frame["payload"], frame["api_key"], frame["api_version"]

    def move(brokers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [broker | {"port": broker["port"] ^ 0x0F0F} for broker in brokers]

    once = _replace(payload, key, version, move)
    assert once != payload
    assert len(once) == len(payload)
    assert _replace(once, key, version, move) == payload


def _replace(
    payload: bytes, key: ApiKey, version: int, move: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> bytes:
    return replace_brokers(payload, key, version, response_body_offset(payload, key, version), move)


def test_a_brokers_api_versions_carry_the_offset_of_its_metadata_image() -> None:
    for path in named("broker-4.4.0-18-v4") + named("broker-3.9.1-18-v3"):
        body: Mapping[str, Any] = load(path)["body"]
        assert body["error_code"] == 0
        assert body["finalized_features_epoch"] > 0
