"""What real clients and real brokers said to each other: read, and written again byte for byte.

`captured/CLIENT-kafka-VERSION.json` was recorded by `python -m tests.support.capture`: the client with its version, the
broker's version, and one frame of each API, version and direction, with the client's call that caused it.
"""

import json
import struct
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from codec import decode_request, decode_response, encode_request, encode_response
from codec.api_keys import ApiKey
from codec.headers import (
    encode_request_header,
    encode_response_header,
    read_request_header,
    read_response_header,
)
from codec.inspect import Api, Entry, Section, request_section, response_section
from codec.reference import build, parse
from codec.registry import request_table, response_table

FOLDER: Final = Path(__file__).parent / "captured"
CLIENTS: Final = ("aiokafka", "franz-go", "java", "kafka-python", "kafkajs", "librdkafka")
KAFKAS: Final = ("3.9.1", "4.4.0")


class Frame(NamedTuple):
    """One frame without its size, and where it comes from."""

    client: str
    kafka: str
    call: str
    direction: str
    api_key: int
    api_version: int
    payload: bytes

    def __str__(self) -> str:
        api = ApiKey(self.api_key).name.lower()
        return f"{self.client.split()[0]}-{self.kafka}-{api}-v{self.api_version}-{self.direction}"


def load(path: Path) -> list[Frame]:
    captured: dict[str, Any] = json.loads(path.read_text())
    return [
        Frame(
            captured["client"],
            captured["kafka"],
            frame["call"],
            frame["direction"],
            frame["api_key"],
            0 if is_refusal(frame) else frame["api_version"],
            bytes.fromhex(frame["hex"]),
        )
        for frame in captured["frames"]
    ]


def is_refusal(frame: dict[str, Any]) -> bool:
    """Whether it is a broker's answer to an ApiVersions newer than itself, which it writes as v0 (KIP-511)."""
    refusal: str = frame["hex"][8:12]
    return (frame["api_key"], frame["direction"], refusal) == (ApiKey.API_VERSIONS, "response", "0023")


FRAMES: Final = [frame for path in sorted(FOLDER.glob("*.json")) for frame in load(path)]


def split(frame: Frame) -> tuple[Any, bytes, int]:
    """The header read, the header written again, and where the body begins."""
    key, version = frame.api_key, frame.api_version
    if frame.direction == "request":
        header, offset = read_request_header(frame.payload)
        assert (header.api_key, header.api_version) == (key, version)
        return header, encode_request_header(header), offset
    answer, offset = read_response_header(frame.payload, key, version)
    return answer, encode_response_header(answer, key, version), offset


def decode(frame: Frame, payload: bytes, offset: int) -> dict[str, Any]:
    read = decode_request if frame.direction == "request" else decode_response
    return read(frame.api_key, frame.api_version, payload, offset)


def encode(frame: Frame, body: dict[str, Any]) -> bytes:
    written = encode_request if frame.direction == "request" else encode_response
    return written(frame.api_key, frame.api_version, body)


def section_of(frame: Frame) -> Section:
    whole = struct.pack(">i", len(frame.payload)) + frame.payload
    if frame.direction == "request":
        return request_section(whole)
    return response_section(whole, Api(frame.api_key, frame.api_version))


def test_every_client_spoke_to_every_kafka() -> None:
    assert {(frame.client.split()[0], frame.kafka) for frame in FRAMES} == {(c, k) for c in CLIENTS for k in KAFKAS}
    for client in CLIENTS:
        for kafka in KAFKAS:
            said = {(f.api_key, f.direction) for f in FRAMES if f.client.split()[0] == client and f.kafka == kafka}
            for api in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.PRODUCE, ApiKey.FETCH):
                assert {(api, "request"), (api, "response")} <= said, (client, kafka, api)
    assert len(FRAMES) > 300


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_a_frame_is_read_and_written_again(frame: Frame) -> None:
    _, header, offset = split(frame)
    body = decode(frame, frame.payload, offset)
    assert header + encode(frame, body) == frame.payload
    table = (request_table if frame.direction == "request" else response_table)(frame.api_key)
    assert parse(table, frame.api_version, frame.payload[offset:]) == body
    assert build(table, frame.api_version, body) == frame.payload[offset:]


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_a_frame_is_shown_without_fault(frame: Frame) -> None:
    at = 0
    for item in section_of(frame).items:
        assert isinstance(item, Entry)
        assert item.start == at
        at = item.end
    assert at == 4 + len(frame.payload)


def ends_without_tags(frame: Frame) -> bool:
    """Whether the last byte is an empty section of tags of the whole body."""
    *_, last = section_of(frame).items
    return isinstance(last, Entry) and (last.name, last.depth, last.note) == ("tags", 1, "none")


ENDS_WITHOUT_TAGS: Final = [frame for frame in FRAMES if ends_without_tags(frame)]


@pytest.mark.parametrize("frame", ENDS_WITHOUT_TAGS, ids=str)
def test_a_tag_of_a_later_kafka_survives(frame: Frame) -> None:
    payload = frame.payload[:-1] + bytes.fromhex("01 fa01 02 beef")
    _, header, offset = split(frame)
    body = decode(frame, payload, offset)
    assert body["unknown_tags"] == {250: b"\xbe\xef"}
    assert header + encode(frame, body) == payload


def test_a_refused_version_of_api_versions_was_captured() -> None:
    refused = [frame for frame in FRAMES if (frame.api_key, frame.api_version) == (ApiKey.API_VERSIONS, 0)]
    assert [decode(frame, frame.payload, 4)["error_code"] for frame in refused if frame.client.startswith("franz")] == [
        35
    ]


def test_most_flexible_frames_could_be_given_a_tag() -> None:
    assert len(ENDS_WITHOUT_TAGS) > 100
