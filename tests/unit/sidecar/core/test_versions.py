"""What clients are offered: what the broker offers, less what could not be passed on, and all other bytes unchanged."""

from typing import Any, Final

import pytest

from codec import decode_response, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header, response_body_offset
from codec.registry import known_versions
from sidecar.core.versions import READ_HERE, is_unreadable, is_unreadable_offer, narrow_offer, refuse_offer

KEY: Final = ApiKey.API_VERSIONS
UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION)


def offered(versions: dict[int, tuple[int, int]], api_version: int = 3, **more: Any) -> bytes:
    apis = [{"api_key": k, "min_version": low, "max_version": high} for k, (low, high) in versions.items()]
    header = encode_response_header(ResponseHeader(correlation_id=7), KEY, api_version)
    return header + encode_response(KEY, api_version, {"error_code": 0, "api_keys": apis, **more})


def narrowed(versions: dict[int, tuple[int, int]], api_version: int = 3) -> dict[int, tuple[int, int]]:
    payload = narrow_offer(offered(versions, api_version), api_version, 4)
    body = decode_response(KEY, api_version, payload, 4)
    return {api["api_key"]: (api["min_version"], api["max_version"]) for api in body["api_keys"]}


def newest(key: int) -> int:
    versions = known_versions(key)
    assert versions is not None
    return versions[-1]


@pytest.mark.row("4.1")
def test_a_broker_of_today_is_passed_on_whole() -> None:
    today = {int(key): (found[0], found[-1]) for key in ApiKey if (found := known_versions(key))}
    payload = offered(today)
    assert narrow_offer(payload, 3, 4) is payload
    assert today[ApiKey.FETCH][1] >= 13
    assert today[ApiKey.METADATA][1] >= 10, "topics by id, which Fetch from v13 on needs"
    assert today[ApiKey.PRODUCE][1] >= 12, "transactions of Kafka 4"


@pytest.mark.row("4.1")
@pytest.mark.row("4.2")
def test_a_broker_of_tomorrow_is_cut_where_addresses_could_not_be_found_and_nowhere_else() -> None:
    tomorrow = {int(key): (0, 99) for key in ApiKey} | {12345: (0, 7)}
    found = narrowed(tomorrow)
    assert found.keys() == tomorrow.keys()
    for key, (low, high) in found.items():
        assert low == 0, "clients judge by the lowest version too"
        assert high == (newest(key) if key in READ_HERE else tomorrow[key][1])
        assert not is_unreadable(key, high)
    assert found[ApiKey.METADATA][1] >= 10 or found[ApiKey.FETCH][1] < 13


@pytest.mark.row("4.1")
def test_an_api_without_a_version_that_could_be_passed_on_is_not_offered() -> None:
    assert narrowed({ApiKey.FETCH: (newest(ApiKey.FETCH) + 1, 99), ApiKey.HEARTBEAT: (90, 99)}) == {12: (90, 99)}


@pytest.mark.row("4.3")
@pytest.mark.parametrize("asked", [0, 3, 4])
def test_the_error_is_read_before_the_body_which_may_be_that_of_version_0(asked: int) -> None:
    header = encode_response_header(ResponseHeader(correlation_id=7), KEY, asked)
    body = {"error_code": UNSUPPORTED, "api_keys": [{"api_key": KEY, "min_version": 0, "max_version": 3}]}
    payload = header + encode_response(KEY, 0, body)
    assert response_body_offset(payload, KEY, asked) == 4, "its header has no tagged fields in any version"
    assert narrow_offer(payload, asked, 4) is payload


@pytest.mark.row("4.3")
def test_a_client_newer_than_this_sidecar_is_told_what_to_ask() -> None:
    assert is_unreadable_offer(KEY, newest(KEY) + 1)
    assert not is_unreadable_offer(KEY, newest(KEY))
    payload = refuse_offer(9)
    assert payload[:4] == b"\0\0\0\t"
    body = decode_response(KEY, 0, payload, 4)
    assert body["error_code"] == UNSUPPORTED
    assert [(a["api_key"], a["max_version"]) for a in body["api_keys"]] == [(KEY, newest(KEY))]


@pytest.mark.row("4.4")
def test_tagged_fields_that_are_absent_stay_absent_when_the_offer_is_cut() -> None:
    tomorrow = {int(ApiKey.FETCH): (4, 99), int(ApiKey.HEARTBEAT): (0, 4)}
    payload = narrow_offer(offered(tomorrow), 3, 4)
    assert len(payload) == len(offered(tomorrow))
    assert payload[-1:] == b"\0", "no tagged field at the end, and so no explicit default"


@pytest.mark.row("4.7")
def test_tagged_fields_that_nobody_knows_stay_when_the_offer_is_cut() -> None:
    tomorrow = {int(ApiKey.FETCH): (4, 99), int(ApiKey.HEARTBEAT): (0, 4)}
    payload = narrow_offer(offered(tomorrow, unknown_tags={77: b"new"}), 3, 4)
    assert decode_response(KEY, 3, payload, 4)["unknown_tags"] == {77: b"new"}
