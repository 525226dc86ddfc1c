"""The construct twin on its own; that it equals the compiled form is shown in tests/properties."""

import pytest

from codec.api_keys import ApiKey
from codec.errors import CodecError
from codec.reference import build, parse
from codec.registry import request_table, response_table

HANDSHAKE = request_table(ApiKey.SASL_HANDSHAKE)
VERSIONS = request_table(ApiKey.API_VERSIONS)


def test_a_body_is_parsed_and_built() -> None:
    body = bytes.fromhex("0005 504c41494e")
    assert parse(HANDSHAKE, 1, body) == {"mechanism": "PLAIN"}
    assert build(HANDSHAKE, 1, {"mechanism": "PLAIN"}) == body


@pytest.mark.parametrize(
    "body",
    [
        "0005 504c41494e 00",  # one byte too many
        "0005 504c4149",  # one too few
        "ffff",  # null
        "0001 ff",  # not UTF-8
    ],
)
def test_what_is_no_body_is_refused(body: str) -> None:
    with pytest.raises(CodecError, match="SASL_HANDSHAKE request"):
        parse(HANDSHAKE, 1, bytes.fromhex(body))


@pytest.mark.parametrize("count", ["808080808000", "ffffffff10", "ffffffffff01"])
def test_varints_have_five_bytes_and_32_bits(count: str) -> None:
    with pytest.raises(CodecError):
        parse(VERSIONS, 3, bytes.fromhex(f"01 01 {count}"))
    assert parse(VERSIONS, 3, bytes.fromhex("01 01 8080808000")) == parse(VERSIONS, 3, bytes.fromhex("01 01 00"))


@pytest.mark.parametrize(
    "value", [{"mechanism": None}, {"mechanism": "x" * 40000}, {"mechanism": 5}, {"mechanism": "\ud800"}]
)
def test_a_value_that_does_not_fit_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(CodecError):
        build(HANDSHAKE, 1, value)


def test_a_version_without_a_table_is_refused() -> None:
    with pytest.raises(CodecError, match="no version 14"):
        parse(response_table(ApiKey.METADATA), 14, b"")
