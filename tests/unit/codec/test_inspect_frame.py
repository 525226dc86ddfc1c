"""Trees of frames: every byte once, the decoder's values, its judgement, and no credential."""

import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codec import encode_request, encode_response
from codec.api_keys import ApiKey
from codec.compiled import decoder, encoder
from codec.errors import CodecError
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    encode_request_header,
    encode_response_header,
)
from codec.inspect import Api, Entry, Fault, Section, UnreadableInput, request_section, response_section, sections
from codec.inspect.body import BodyReader
from codec.inspect.model import SECRET
from codec.inspect.render import line
from codec.inspect.secrets import SECRET_FIELDS
from codec.registry import known_versions
from codec.schema import Array, Message, Struct
from tests.support.message_values import every_table, messages

MODEST = settings(max_examples=150, deadline=None)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request(api_key: int, version: int, value: dict[str, Any], **header: Any) -> bytes:
    start = encode_request_header(
        RequestHeader(api_key=api_key, api_version=version, **{"correlation_id": 7, "client_id": "app", **header})
    )
    return framed(start + encode_request(api_key, version, value))


def response(api_key: int, version: int, value: dict[str, Any]) -> bytes:
    header = encode_response_header(ResponseHeader(correlation_id=7), api_key, version)
    return framed(header + encode_response(api_key, version, value))


def shown(section: Section) -> list[str]:
    return [section.title, *(line(item, section) for item in section.items)]


def fault_of(section: Section) -> Fault:
    *entries, fault = section.items
    assert not any(isinstance(entry, Fault) for entry in entries)
    assert isinstance(fault, Fault)
    return fault


def entries_of(message: Message, version: int, body: bytes) -> list[Entry]:
    reader = BodyReader(version, flexible=message.is_flexible(version))
    return list(reader.struct(message.body, body, 0))


class Nested:
    """Entries as nested values, so that they can be encoded again."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.at = 0

    def fields(self, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for entry in self.level(depth):
            if entry.name != "tags":
                value[entry.name] = self.value(entry)
                continue
            for tagged in self.level(depth + 1):
                if tagged.note == "unknown":
                    value.setdefault("unknown_tags", {})[int(tagged.name.split()[1])] = tagged.value
                else:
                    value |= {known.name: self.value(known) for known in self.level(depth + 2)}
        return value

    def value(self, entry: Entry) -> Any:
        if not entry.is_parts:
            return entry.value
        if "element" in entry.note:
            return [self.value(element) for element in self.level(entry.depth + 1)]
        return self.fields(entry.depth + 1)

    def level(self, depth: int) -> Iterator[Entry]:
        while self.at < len(self.entries) and self.entries[self.at].depth == depth:
            self.at += 1
            yield self.entries[self.at - 1]


@MODEST
@given(messages())
def test_a_tree_has_every_byte_once_and_the_values_that_were_written(case: tuple[Message, int, dict[str, Any]]) -> None:
    message, version, value = case
    body = encoder(message, version)(value)
    entries = entries_of(message, version, body)
    at = 0
    for entry in entries:
        assert entry.start == at
        at = entry.end
    assert at == len(body)
    nested = Nested(entries)
    assert encoder(message, version)(nested.fields(0)) == body
    assert nested.at == len(entries)


@MODEST
@given(messages(), st.data())
def test_damaged_bodies_are_judged_as_the_decoder_judges_them(
    case: tuple[Message, int, dict[str, Any]], data: st.DataObject
) -> None:
    message, version, value = case
    body = bytearray(encoder(message, version)(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    assert judged(message, version, bytes(body)) == judged_by_decoder(message, version, bytes(body))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(every_table()), st.binary(max_size=60))
def test_arbitrary_bytes_are_judged_as_the_decoder_judges_them(table: tuple[Message, int], body: bytes) -> None:
    assert judged(*table, body) == judged_by_decoder(*table, body)


def judged(message: Message, version: int, body: bytes) -> tuple[int, str]:
    try:
        entries = entries_of(message, version, body)
    except CodecError as error:
        return error.offset, error.field
    return entries[-1].end if entries else 0, "whole"


def judged_by_decoder(message: Message, version: int, body: bytes) -> tuple[int, str]:
    try:
        return decoder(message, version)(body, 0)[1], "whole"
    except CodecError as error:
        # The decoder names a tagged field of the wrong size as a part of its section.
        return error.offset, error.field.replace("unknown_tags.", "")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 95), st.integers(-1, 20))
@example(b"", 0, 0)
def test_a_frame_of_arbitrary_bytes_ends_its_tree_with_a_fault_or_with_its_bytes(
    frame: bytes, api_key: int, version: int
) -> None:
    for section in (request_section(frame), response_section(frame, Api(api_key, version))):
        *_, last = section.items
        assert isinstance(last, Fault) or last.end == len(frame)
        assert line(last, section)


def test_a_request_with_a_state_in_its_header() -> None:
    state = ConsistencyState(cluster_id="c", consistency_token=5)
    frame = request(ApiKey.METADATA, 13, {"topics": None}, consistency_state=state, unknown_tags={9: b"\xff"})
    assert shown(request_section(frame, where="here: ")) == [
        "here: request Metadata v13",
        "       0  00000022            size: 34",
        "       4                      header",
        "       4  0003                  api_key: 3 (Metadata)",
        "       6  000d                  api_version: 13",
        "       8  00000007              correlation_id: 7",
        '      12  0003617070            client_id: "app"',
        "      17  02                    tags: 2",
        "      18  000b                    tag 0: 11 bytes",
        "      20                            consistency_state",
        '      20  0263                        cluster_id: "c"',
        "      22  0000000000000005            consistency_token: 5",
        "      30  00                          tags: none",
        "      31  0901ff                  tag 9: 0xff (unknown)",
        "      34                      body",
        "      34  00                    topics: null",
        "      35  01                    allow_auto_topic_creation: true",
        "      36  00                    include_topic_authorized_operations: false",
        "      37  00                    tags: none",
    ]


def test_an_answer_names_its_error() -> None:
    answer = {"topics": [{"name": "t\n", "error_code": 3}], "brokers": []}
    lines = shown(response_section(response(ApiKey.METADATA, 1, answer), Api(3, 1)))
    assert "error_code: 3 (UNKNOWN_TOPIC_OR_PARTITION)" in "\n".join(lines)
    assert 'name: "t\\n"' in "\n".join(lines)


def test_a_refused_version_of_api_versions_is_read_as_v0() -> None:
    frame = response(ApiKey.API_VERSIONS, 0, {"error_code": 35, "api_keys": []})
    assert not any(isinstance(item, Fault) for item in response_section(frame, Api(ApiKey.API_VERSIONS, 4)).items)


def test_wrong_bytes_are_shown_up_to_the_fault() -> None:
    frame = request(ApiKey.DELETE_TOPICS, 1, {"topic_names": ["a", "b"], "timeout_ms": 1})
    broken = frame[:-5] + b"\xff" + frame[-4:]
    lines = shown(request_section(broken))
    fault = fault_of(request_section(broken))
    assert (fault.field, fault.reason) == ("topic_names", "not UTF-8")
    assert broken[fault.offset] == 0xFF
    assert lines[-1].endswith("WRONG topic_names: not UTF-8")
    assert any('[0]: "a"' in text for text in lines)


@pytest.mark.parametrize(
    ("frame", "field", "reason"),
    [
        (b"\0\0", "size", "4 bytes wanted, 2 there"),
        (b"\xff\xff\xff\xff", "size", "-1, which is negative"),
        (b"\0\0\0\x01\0", "header.api_key", "2 bytes wanted, 1 left"),
        (b"\x16\x03\x01\x02\x00\x01", "size", "this looks like a TLS handshake, not like a Kafka frame"),
        (b"GET / HTTP/1.1\r\n", "size", "this looks like HTTP, not like a Kafka frame"),
    ],
)
def test_what_is_no_frame_is_named(frame: bytes, field: str, reason: str) -> None:
    fault = fault_of(request_section(frame))
    assert (fault.field, fault.reason) == (field, reason)


def test_a_size_that_disagrees_is_a_fault() -> None:
    frame = request(ApiKey.API_VERSIONS, 0, {})
    longer = struct.pack(">i", len(frame)) + frame[4:]
    assert fault_of(request_section(longer)).reason == f"{len(frame)} bytes announced, {len(frame) - 4} there"
    assert fault_of(request_section(frame + b"\0\0")).reason == "2 bytes left over"
    opaque = encode_request_header(RequestHeader(api_key=999, api_version=1, correlation_id=1))
    assert fault_of(request_section(struct.pack(">i", 99) + opaque)).field == "size"


def test_a_body_without_a_table_is_no_fault() -> None:
    payload = encode_request_header(RequestHeader(api_key=999, api_version=1, correlation_id=1)) + b"\x01\x02"
    section = request_section(framed(payload))
    assert shown(section)[-1] == "      15  0102                body: 0x0102 (no table for API 999 v1)"


SECRET_VALUES: list[tuple[int, str, dict[str, Any]]] = [
    (ApiKey.SASL_AUTHENTICATE, "request", {"auth_bytes": b"hunter2"}),
    (ApiKey.SASL_AUTHENTICATE, "response", {"auth_bytes": b"hunter2"}),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        "request",
        {"upsertions": [{"name": "u", "salt": b"hunter2", "salted_password": b"hunter2"}]},
    ),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "response", {"tokens": [{"token_id": "t", "hmac": b"hunter2"}]}),
    (ApiKey.CREATE_DELEGATION_TOKEN, "response", {"hmac": b"hunter2"}),
    (ApiKey.RENEW_DELEGATION_TOKEN, "request", {"hmac": b"hunter2"}),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, "request", {"hmac": b"hunter2"}),
    (ApiKey.ENVELOPE, "request", {"request_data": b"hunter2", "request_principal": b"hunter2"}),
    (ApiKey.ENVELOPE, "response", {"response_data": b"hunter2"}),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "request",
        {"resources": [{"configs": [{"name": "ssl.keystore.password", "value": "hunter2"}]}]},
    ),
    (
        ApiKey.ALTER_CONFIGS,
        "request",
        {"resources": [{"configs": [{"name": "listener.name.x.sasl.jaas.config", "value": "hunter2"}]}]},
    ),
]


@pytest.mark.parametrize(("api_key", "direction", "value"), SECRET_VALUES)
def test_credentials_are_never_shown(api_key: int, direction: str, value: dict[str, Any]) -> None:
    for version in known_versions(api_key) or ():
        frame = (request if direction == "request" else response)(api_key, version, value)
        assert b"hunter2" in frame
        # Cut and damaged frames leak nothing either.
        cases = [frame, frame[:-1], frame[:4] + frame[4:].replace(b"hunter2", b"hunter2\xff"), frame + b"hunter2"]
        for case in cases:
            section = request_section(case) if direction == "request" else response_section(case, Api(api_key, version))
            text = "\n".join(shown(section))
            assert "hunter" not in text
            assert b"hunter".hex()[:8] not in text
        whole = request_section(frame) if direction == "request" else response_section(frame, Api(api_key, version))
        assert any(isinstance(item, Entry) and item.value is SECRET for item in whole.items)


def test_every_secret_api_that_has_a_table_has_these_fields() -> None:
    for api_key, names in SECRET_FIELDS.items():
        frames = [table for table, _ in every_table() if table.api_key == api_key]
        assert frames
        found = {name for table in frames for name in field_names(table)}
        assert names <= found


def field_names(message: Message) -> set[str]:
    names: set[str] = set()
    todo = [message.body]
    while todo:
        for field in todo.pop().fields:
            names.add(field.name)
            inner = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(inner, Struct):
                todo.append(inner)
    return names


def test_an_ordinary_config_is_shown() -> None:
    value = {"resources": [{"configs": [{"name": "retention.ms", "value": "60000"}]}]}
    frame = request(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, value)
    assert any('value: "60000"' in text for text in shown(request_section(frame)))


def test_text_has_one_frame_a_line() -> None:
    asked = request(ApiKey.API_VERSIONS, 0, {}).hex()
    answered = response(ApiKey.API_VERSIONS, 0, {"api_keys": []}).hex(" ")
    text = f"# comment\n\n#another\nrequest {asked}\nresponse 18 0 {answered}\n"
    found = list(sections(text.encode()))
    assert [section.title for section in found] == [
        "line 4: request ApiVersions v0",
        "line 5: response ApiVersions v0",
    ]
    assert not any(isinstance(item, Fault) for section in found for item in section.items)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nsomething 00", "line 2: a line is `request HEX` or `response KEY VERSION HEX`"),
        ("request", "line 1: a line is"),
        ("request 0g", "line 1: HEX has two hexadecimal digits a byte"),
        ("request 0", "line 1: HEX has two"),
        ("response x 0 00", "line 1: KEY is a number from 0 to 32767"),
        ("response 3 99999 00", "line 1: VERSION is a number"),
        ("request \u00e9", "byte 8 is no ASCII character"),
        ("", "no bytes; a text with frames, a pcap or a log segment is expected"),
    ],
)
def test_input_that_is_none_of_the_three_says_so(text: str, message: str) -> None:
    with pytest.raises(UnreadableInput, match=re.escape(message)):
        list(sections(text.encode()))
