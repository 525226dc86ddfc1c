"""Headers: peeking, taking apart, and ConsistencyState put in and out without touching another byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec.api_keys import ApiKey
from codec.errors import CodecError, Truncated
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    acks_of,
    client_id_of,
    encode_request_header,
    encode_response_header,
    peek_correlation_id,
    peek_request,
    put_request_correlation_id,
    read_request_header,
    read_response_header,
    request_body_offset,
    request_state,
    response_body_offset,
    response_state,
    stamp_request,
    stamp_response,
    strip_request,
    strip_response,
    with_response_correlation_id,
)

BODY = b"\x00\xffbody"
STATE = ConsistencyState(cluster_id="cluster", consistency_token=2**40)
CONTROLLED_SHUTDOWN_V0 = bytes.fromhex("0007 0000 00000009")
METADATA_V8 = bytes.fromhex("0003 0008 00000009 0003 617070")
METADATA_V12 = bytes.fromhex("0003 000c 00000009 0003 617070 00")
METADATA_V12_NULL = bytes.fromhex("0003 000c fffffff7 ffff 00")
METADATA_V12_TAGS = bytes.fromhex("0003 000c 00000009 0003 617070 02 05 01 aa c801 00")

HEADERS = [CONTROLLED_SHUTDOWN_V0, METADATA_V8, METADATA_V12, METADATA_V12_NULL, METADATA_V12_TAGS]

states = st.builds(
    ConsistencyState,
    cluster_id=st.none() | st.text(max_size=30),
    consistency_token=st.integers(-(2**63), 2**63 - 1),
)
unknown_tags = st.dictionaries(st.integers(1, 2**32 - 1), st.binary(max_size=4), max_size=3)
versions = st.sampled_from([(ApiKey.METADATA, 8), (ApiKey.METADATA, 12), (ApiKey.PRODUCE, 9), (777, 3)])


def test_peeking() -> None:
    assert peek_request(METADATA_V12_NULL + BODY) == (3, 12, -9)
    assert peek_correlation_id(bytes.fromhex("00000007") + BODY) == 7
    with pytest.raises(Truncated, match="8 bytes wanted, 7 there"):
        peek_request(METADATA_V8[:7])
    with pytest.raises(Truncated, match="4 bytes wanted, 3 there"):
        peek_correlation_id(bytes(3))


@pytest.mark.parametrize(
    ("payload", "client_id"),
    [(CONTROLLED_SHUTDOWN_V0, None), (METADATA_V8, "app"), (METADATA_V12, "app"), (METADATA_V12_NULL, None)],
)
def test_client_ids(payload: bytes, client_id: str | None) -> None:
    assert client_id_of(payload + BODY) == client_id


@pytest.mark.parametrize("header", HEADERS)
def test_the_body_is_found_behind_every_header(header: bytes) -> None:
    assert request_body_offset(header + BODY) == len(header)
    assert read_request_header(header + BODY)[1] == len(header)


@pytest.mark.parametrize("header", HEADERS)
def test_a_request_header_survives(header: bytes) -> None:
    assert encode_request_header(read_request_header(header)[0]) == header


@pytest.mark.parametrize("header", HEADERS)
def test_a_request_header_that_is_cut_short_is_truncated(header: bytes) -> None:
    for length in range(len(header)):
        with pytest.raises(Truncated):
            request_body_offset(header[:length])
        with pytest.raises(Truncated):
            read_request_header(header[:length])


def test_a_client_id_that_is_not_utf8_is_refused_only_where_it_is_read() -> None:
    payload = bytes.fromhex("0003 000c 00000009 0001 ff 00")
    assert request_body_offset(payload) == len(payload)
    with pytest.raises(CodecError, match="UTF-8"):
        client_id_of(payload)


def test_response_bodies_are_found() -> None:
    tagged = bytes.fromhex("00000007 01 05 01 aa")
    assert response_body_offset(bytes.fromhex("00000007 00") + BODY, ApiKey.METADATA, 12) == 5
    assert response_body_offset(tagged + BODY, ApiKey.METADATA, 12) == len(tagged)
    assert response_body_offset(bytes(4) + BODY, ApiKey.METADATA, 8) == 4
    assert response_body_offset(bytes(4) + BODY, ApiKey.API_VERSIONS, 4) == 4
    for length in range(len(tagged)):
        with pytest.raises(Truncated):
            response_body_offset(tagged[:length], ApiKey.METADATA, 12)
    with pytest.raises(Truncated):
        response_body_offset(bytes(3), ApiKey.METADATA, 8)


def test_a_request_gets_another_correlation_id_in_place() -> None:
    buffer = bytearray(b"size" + METADATA_V12 + BODY)
    put_request_correlation_id(buffer, 4, -1)
    assert buffer == b"size" + METADATA_V12[:4] + b"\xff" * 4 + METADATA_V12[8:] + BODY
    with pytest.raises(CodecError) as too_large:
        put_request_correlation_id(buffer, 4, 2**31)
    assert (too_large.value.offset, too_large.value.field) == (8, "request_header.correlation_id")
    with pytest.raises(CodecError):
        put_request_correlation_id(bytearray(METADATA_V12[:7]), 0, 1)


def test_an_answer_gets_another_correlation_id() -> None:
    assert with_response_correlation_id(bytes(4) + BODY, 258) == bytes.fromhex("00000102") + BODY
    with pytest.raises(CodecError):
        with_response_correlation_id(bytes(4), 2**31)


@given(states)
def test_a_stamped_request_carries_the_state_and_stripping_restores_every_byte(state: ConsistencyState) -> None:
    for header in (METADATA_V12, METADATA_V12_NULL, METADATA_V12_TAGS):
        stamped = stamp_request(header + BODY, state)
        assert request_state(stamped) == state
        assert stamped[request_body_offset(stamped) :] == BODY
        assert strip_request(stamped) == header + BODY
        assert request_state(header + BODY) is None


@given(states, states)
def test_stamping_replaces(first: ConsistencyState, second: ConsistencyState) -> None:
    once = stamp_request(METADATA_V12_TAGS + BODY, second)
    assert stamp_request(stamp_request(METADATA_V12_TAGS + BODY, first), second) == once
    answer = bytes.fromhex("00000007 01 05 01 aa") + BODY
    once = stamp_response(answer, ApiKey.METADATA, 12, second)
    assert stamp_response(stamp_response(answer, ApiKey.METADATA, 12, first), ApiKey.METADATA, 12, second) == once


def test_a_header_without_tagged_fields_is_left_alone() -> None:
    for header in (CONTROLLED_SHUTDOWN_V0, METADATA_V8):
        payload = header + BODY
        assert stamp_request(payload, STATE) is payload
        assert strip_request(payload) is payload
        assert request_state(payload) is None
    answer = bytes(4) + BODY
    for key, version in ((ApiKey.METADATA, 8), (ApiKey.API_VERSIONS, 4)):
        assert stamp_response(answer, key, version, STATE) is answer
        assert strip_response(answer, key, version) is answer
        assert response_state(answer, key, version) is None


def test_other_tagged_fields_stay() -> None:
    header, _ = read_request_header(stamp_request(METADATA_V12_TAGS, STATE))
    assert (header.consistency_state, header.unknown_tags) == (STATE, {5: b"\xaa", 200: b""})
    answer, _ = read_response_header(
        stamp_response(bytes.fromhex("00000007 01 05 01 aa"), ApiKey.METADATA, 12, STATE), ApiKey.METADATA, 12
    )
    assert (answer.correlation_id, answer.consistency_state, answer.unknown_tags) == (7, STATE, {5: b"\xaa"})


@given(states)
def test_a_stamped_answer_carries_the_state(state: ConsistencyState) -> None:
    answer = bytes.fromhex("00000007 00") + BODY
    stamped = stamp_response(answer, ApiKey.METADATA, 12, state)
    assert response_state(stamped, ApiKey.METADATA, 12) == state
    assert strip_response(stamped, ApiKey.METADATA, 12) == answer


def test_a_state_with_tagged_fields_of_its_own_is_read() -> None:
    payload = bytes.fromhex("0003 000c 00000009 ffff 01 00 0d 00 0000000000000005 01 07 01 ff")
    assert request_state(payload) == ConsistencyState(cluster_id=None, consistency_token=5)


@pytest.mark.parametrize(
    "content",
    ["", "00", "00 00000000000005", "00 0000000000000005", "00 0000000000000005 00 00", "05 61 0000000000000005 00"],
)
def test_a_malformed_state_is_refused_where_it_is_read_and_can_still_be_stripped(content: str) -> None:
    inner = bytes.fromhex(content)
    payload = bytes.fromhex("0003 000c 00000009 ffff 01 00") + bytes((len(inner),)) + inner + BODY
    with pytest.raises(CodecError) as caught:
        request_state(payload)
    assert caught.value.offset >= 13
    assert strip_request(payload) == METADATA_V12_NULL[:4] + bytes.fromhex("00000009 ffff 00") + BODY


@given(versions, st.none() | st.text(max_size=20), st.none() | states, unknown_tags)
def test_request_headers_survive(
    api: tuple[int, int], client_id: str | None, state: ConsistencyState | None, tags: dict[int, bytes]
) -> None:
    flexible = api != (ApiKey.METADATA, 8)
    header = RequestHeader(
        api_key=api[0],
        api_version=api[1],
        correlation_id=5,
        client_id=client_id,
        consistency_state=state if flexible else None,
        unknown_tags=tags if flexible else {},
    )
    encoded = encode_request_header(header)
    assert read_request_header(encoded + BODY) == (header, len(encoded))


@given(versions, st.none() | states, unknown_tags)
def test_response_headers_survive(api: tuple[int, int], state: ConsistencyState | None, tags: dict[int, bytes]) -> None:
    flexible = api != (ApiKey.METADATA, 8)
    header = ResponseHeader(
        correlation_id=-5, consistency_state=state if flexible else None, unknown_tags=tags if flexible else {}
    )
    encoded = encode_response_header(header, *api)
    assert read_response_header(encoded + BODY, *api) == (header, len(encoded))


def test_what_does_not_fit_in_a_header_is_refused() -> None:
    with pytest.raises(CodecError):
        encode_request_header(RequestHeader(api_key=2**15, api_version=0, correlation_id=0))
    with pytest.raises(CodecError):
        encode_request_header(RequestHeader(api_key=3, api_version=0, correlation_id=0, client_id="x" * 40000))
    with pytest.raises(CodecError, match="not an unknown one"):
        encode_request_header(RequestHeader(api_key=3, api_version=12, correlation_id=0, unknown_tags={0: b""}))
    with pytest.raises(CodecError):
        encode_response_header(ResponseHeader(correlation_id=2**31), 3, 12)
    with pytest.raises(CodecError):
        stamp_request(METADATA_V12, ConsistencyState(consistency_token=2**63))


@given(st.binary(max_size=40))
def test_nothing_but_codec_errors_on_arbitrary_bytes(payload: bytes) -> None:
    for read in (request_body_offset, client_id_of, request_state, strip_request, read_request_header):
        try:
            read(payload)
        except CodecError:
            continue
    for key, version in ((3, 12), (3, 8), (18, 3)):
        for answer in (response_body_offset, response_state, strip_response, read_response_header):
            try:
                answer(payload, key, version)
            except CodecError:
                continue


PRODUCE = "0000 {:04x} 00000001 ffff"
ACKS = [
    *[(version, "0001 000005dc 00000000", 1) for version in (0, 1, 2)],
    *[(version, "ffff 0000 000005dc 00000000", 0) for version in (3, 8)],
    *[(version, "0003 747831 ffff 000005dc 00000000", -1) for version in (3, 8)],
    *[(version, "00 0000 000005dc 01 00", 0) for version in (9, 13, 99)],
    *[(version, "04 747831 ffff 000005dc 01 00", -1) for version in (9, 13, 99)],
]


@pytest.mark.parametrize(("version", "body", "acks"), ACKS)
def test_acks_by_layout_family(version: int, body: str, acks: int) -> None:
    header = bytes.fromhex(PRODUCE.format(version)) + (b"\0" if version >= 9 else b"")
    payload = header + bytes.fromhex(body)
    assert request_body_offset(payload) == len(header)
    assert acks_of(payload, len(header)) == acks
    enough = next(n for n in range(len(header), len(payload)) if answers(payload[:n], len(header)))
    for length in range(len(header), enough):
        with pytest.raises(Truncated):
            acks_of(payload[:length], len(header))
    for length in range(enough, len(payload)):
        assert acks_of(payload[:length], len(header)) == acks


def answers(prefix: bytes, body_offset: int) -> bool:
    try:
        acks_of(prefix, body_offset)
    except Truncated:
        return False
    return True
