"""Headers with a ConsistencyState, byte by byte, from the layout in the proposal.

No released broker writes them; the bytes below were written by hand, field after field.
"""

from typing import Final

from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    encode_request_header,
    encode_response_header,
    read_request_header,
    read_response_header,
)

STATE: Final = ConsistencyState(cluster_id="Some-Cluster-Id", consistency_token=1099511627776)

REQUEST: Final = [
    ("api_key: Metadata", "00 03"),
    ("api_version", "00 0d"),
    ("correlation_id", "00 00 00 2a"),
    ("client_id, its length an int16 even here", "00 03 61 70 70"),
    ("two tagged fields", "02"),
    ("tag 0: ConsistencyState", "00"),
    ("25 bytes", "19"),
    ("cluster_id, 15 bytes", "10 53 6f 6d 65 2d 43 6c 75 73 74 65 72 2d 49 64"),
    ("consistency_token", "00 00 01 00 00 00 00 00"),
    ("no tagged fields in the struct", "00"),
    ("tag 200, which nobody knows", "c8 01"),
    ("2 bytes", "02"),
    ("content", "be ef"),
]

RESPONSE: Final = [
    ("correlation_id", "00 00 00 2a"),
    ("two tagged fields", "02"),
    ("tag 0: ConsistencyState", "00"),
    ("10 bytes", "0a"),
    ("cluster_id: null", "00"),
    ("consistency_token: none", "ff ff ff ff ff ff ff ff"),
    ("no tagged fields in the struct", "00"),
    ("tag 7, which nobody knows", "07"),
    ("0 bytes", "00"),
]


def joined(parts: list[tuple[str, str]]) -> bytes:
    return bytes.fromhex("".join(encoded for _, encoded in parts))


def test_a_request_header_with_a_state_and_an_unknown_tag() -> None:
    header = RequestHeader(
        api_key=3,
        api_version=13,
        correlation_id=42,
        client_id="app",
        consistency_state=STATE,
        unknown_tags={200: b"\xbe\xef"},
    )
    encoded = joined(REQUEST)
    assert encode_request_header(header) == encoded
    assert read_request_header(encoded) == (header, len(encoded))


def test_a_response_header_with_an_empty_state_and_an_unknown_tag() -> None:
    header = ResponseHeader(correlation_id=42, consistency_state=ConsistencyState(), unknown_tags={7: b""})
    encoded = joined(RESPONSE)
    assert encode_response_header(header, 3, 13) == encoded
    assert read_response_header(encoded, 3, 13) == (header, len(encoded))
