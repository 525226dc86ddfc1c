"""ConsistencyState in headers: seen, stamped, and complaints found wherever an API puts its errors."""

from collections.abc import Mapping
from typing import Any

import pytest

from codec import encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import (
    ConsistencyState,
    ResponseHeader,
    encode_response_header,
    encode_state,
)
from sidecar.core.bounds import Bound
from sidecar.core.ids import NodeId
from sidecar.core.states import STALE_METADATA, Complaint, complaint_in, stamp_of, state_in
from sidecar.core.view import Broker

STATE = ConsistencyState(cluster_id="the-cluster", consistency_token=42)
NODE = NodeId(1)
INCONSISTENT = int(ErrorCode.INCONSISTENT_CLUSTER_ID)


def payload(api_key: int, api_version: int, body: Mapping[str, Any], state: ConsistencyState | None = None) -> bytes:
    header = ResponseHeader(correlation_id=7, consistency_state=state)
    return encode_response_header(header, api_key, api_version) + encode_response(api_key, api_version, body)


REFUSALS: list[tuple[ApiKey, int, dict[str, Any]]] = [
    (ApiKey.METADATA, 13, {"error_code": 0}),
    (ApiKey.METADATA, 12, {"topics": [{"name": "a", "error_code": 0}]}),
    (ApiKey.DESCRIBE_ACLS, 3, {"error_code": 0}),
    (ApiKey.DESCRIBE_CONFIGS, 4, {"results": [{"resource_type": 2, "resource_name": "a", "error_code": 0}]}),
    (ApiKey.DESCRIBE_LOG_DIRS, 4, {"error_code": 0}),
    (ApiKey.DESCRIBE_LOG_DIRS, 2, {"results": [{"error_code": 0, "log_dir": ""}]}),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"error_code": 0}),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"error_code": 0, "entries": None}),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"error_code": 0}),
    (ApiKey.DESCRIBE_CLUSTER, 2, {"error_code": 0}),
    (ApiKey.LIST_CONFIG_RESOURCES, 1, {"error_code": 0}),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": "a", "error_code": 0}]}),
]


def with_error(body: dict[str, Any], code: int) -> dict[str, Any]:
    """The body with its one error code replaced."""
    if "error_code" in body:
        return {**body, "error_code": code}
    ((name, (item,)),) = body.items()
    return {name: [{**item, "error_code": code}]}


@pytest.mark.parametrize(("api_key", "api_version", "body"), REFUSALS, ids=[f"{k.name}-v{v}" for k, v, _ in REFUSALS])
def test_a_complaint_is_found_where_the_api_puts_its_errors(
    api_key: ApiKey, api_version: int, body: dict[str, Any]
) -> None:
    for code, expected in (
        (STALE_METADATA, Complaint.STALE),
        (INCONSISTENT, Complaint.FOREIGN),
        (int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None),
        (0, None),
    ):
        answer = payload(api_key, api_version, with_error(body, code), STATE)
        assert complaint_in(answer, api_key, api_version) is expected


def test_the_bytes_of_a_code_that_is_none_are_no_complaint() -> None:
    broker = {"node_id": STALE_METADATA, "host": "h" * INCONSISTENT, "port": INCONSISTENT}
    answer = payload(ApiKey.METADATA, 12, {"brokers": [broker], "topics": []})
    assert STALE_METADATA.to_bytes(2, "big") in answer
    assert complaint_in(answer, ApiKey.METADATA, 12) is None


def test_a_state_is_seen_where_the_header_has_room_for_one() -> None:
    topics: dict[str, Any] = {"topics": []}
    assert state_in(payload(ApiKey.METADATA, 12, topics, STATE), ApiKey.METADATA, 12) == STATE
    assert state_in(payload(ApiKey.METADATA, 12, topics), ApiKey.METADATA, 12) is None
    assert state_in(payload(ApiKey.METADATA, 5, topics), ApiKey.METADATA, 5) is None
    assert state_in(b"\0\0\0\7", ApiKey.METADATA, 12) is None


def test_a_tagged_field_that_means_something_else_is_no_state() -> None:
    content = encode_state(STATE)[:-1]
    answer = b"\0\0\0\7" + bytes((1, 0, len(content))) + content
    assert state_in(answer, ApiKey.METADATA, 12) is None


def test_only_a_read_with_a_number_that_goes_to_such_a_broker_in_a_flexible_version_is_stamped() -> None:
    bound = Bound()
    carrying = Broker(node_id=NODE, carries_state=True)
    assert stamp_of(ApiKey.METADATA, 12, bound, carrying, "the-cluster") is None
    bound.at_least(41)
    bound.at_least(42, effective=True)
    assert stamp_of(ApiKey.METADATA, 12, bound, carrying, "the-cluster") == STATE
    assert stamp_of(ApiKey.METADATA, 8, bound, carrying, "the-cluster") is None
    assert stamp_of(ApiKey.METADATA, 12, bound, Broker(node_id=NODE), "the-cluster") is None
    assert stamp_of(ApiKey.METADATA, 12, bound, None, "the-cluster") is None
