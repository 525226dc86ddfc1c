"""Which tables exist, and header versions of everything; the differential tests compare them with Kafka's."""

import pytest

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.registry import (
    first_flexible_version,
    known_versions,
    request_header_version,
    request_table,
    response_header_version,
    response_table,
)


def test_known_versions() -> None:
    assert known_versions(ApiKey.METADATA) == range(14)
    assert known_versions(ApiKey.FETCH) == range(19)
    assert known_versions(ApiKey.JOIN_GROUP) is None
    assert known_versions(999) is None
    assert known_versions(-1) is None


def test_tables_are_where_they_belong() -> None:
    for key in ApiKey:
        if known_versions(key):
            assert (request_table(key).api_key, request_table(key).direction) == (key, "request")
            assert (response_table(key).api_key, response_table(key).direction) == (key, "response")
    with pytest.raises(KeyError):
        request_table(ApiKey.JOIN_GROUP)


@pytest.mark.parametrize(
    ("api_key", "api_version", "request_header", "response_header"),
    [
        (ApiKey.METADATA, 8, 1, 0),
        (ApiKey.METADATA, 9, 2, 1),
        (ApiKey.METADATA, 99, 2, 1),
        (ApiKey.API_VERSIONS, 0, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.SASL_HANDSHAKE, 2, 2, 1),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.OFFSET_DELETE, 1, 2, 1),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKey.VOTE, 0, 2, 1),
        (500, 0, 2, 1),
        (-1, -1, 1, 0),
    ],
)
def test_header_versions(api_key: int, api_version: int, request_header: int, response_header: int) -> None:
    assert request_header_version(api_key, api_version) == request_header
    assert response_header_version(api_key, api_version) == response_header


def test_first_flexible_version() -> None:
    assert first_flexible_version(ApiKey.FETCH) == 12
    assert first_flexible_version(ApiKey.DESCRIBE_CLUSTER) == 0
    assert first_flexible_version(500) == 0


def test_retriable_errors() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.TOPIC_ALREADY_EXISTS.retriable
    assert not ErrorCode.NONE.retriable
