"""What is remembered of a read is what its bytes say."""

from codec import encode_request
from codec.api_keys import ApiKey
from codec.headers import ConsistencyState, RequestHeader, encode_request_header
from sidecar.core.apis import Kind
from sidecar.core.exchange import Request
from sidecar.core.requests import REMEMBERED_BYTES_MAX, read_request
from sidecar.core.sessions import Scope


def metadata(topic: str | None, *, correlation_id: int, version: int = 12, token: int | None = None) -> bytes:
    state = None if token is None else ConsistencyState(cluster_id="c", consistency_token=token)
    header = RequestHeader(
        api_key=ApiKey.METADATA,
        api_version=version,
        correlation_id=correlation_id,
        client_id="client",
        consistency_state=state,
    )
    topics = None if topic is None else [{"name": topic}]
    return encode_request_header(header) + encode_request(ApiKey.METADATA, version, {"topics": topics})


def read(payload: bytes) -> Request:
    return read_request(payload, Scope.SERVICE, 1)


def test_each_of_two_like_requests_keeps_its_own_correlation_id_and_bytes() -> None:
    payloads = [metadata("orders", correlation_id=number) for number in (7, 8)]
    found = [read(payload) for payload in payloads]
    assert [each.correlation_id for each in found] == [7, 8]
    assert [each.payload for each in found] == payloads
    assert all(each.may_create for each in found)


def test_whatever_else_differs_is_read_anew() -> None:
    assert read(metadata("orders", correlation_id=7)).may_create
    assert not read(metadata(None, correlation_id=7)).may_create
    assert read(metadata("orders", correlation_id=7, version=3)).kind is Kind.CREATE
    states = [read(metadata("orders", correlation_id=7, token=token)).state for token in (1, 2)]
    assert [state and state.consistency_token for state in states] == [1, 2]


def test_large_requests_are_read_like_small_ones() -> None:
    payload = metadata("o" * REMEMBERED_BYTES_MAX, correlation_id=7)
    assert len(payload) > REMEMBERED_BYTES_MAX
    assert read(payload).may_create
