"""The requests of the proxy's benchmark, and the ready answers of its stub broker."""

import uuid
from typing import Any, Final

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.types import GroupId
from kio.static.primitive import i32

from codec import encode_response
from codec.api_keys import ApiKey
from codec.frames import frame
from codec.headers import RequestHeader, ResponseHeader, encode_request_header, encode_response_header
from codec.registry import known_versions
from tests.support.kafka.ports import HOST
from tests.support.raw_client import encode_request
from tests.support.raw_records import batch, fetch_request, produce_request

MEGABYTE: Final = 1_000_000
FETCH_VERSION: Final = 17
PRODUCE_VERSION: Final = 12
TOPIC: Final = "bench"

GATED: Final = (int(ApiKey.DESCRIBE_CLIENT_QUOTAS), 1)
"""A read that is gated and whose answer passes unchanged."""
FORWARDED: Final = (15, 5)
"""DescribeGroups: passes unread, both ways; the stub does not mind that its body is that of the gated read."""


def heartbeat() -> bytes:
    """A small request that every broker answers at once: to a group that does not exist."""
    request = HeartbeatRequest(
        group_id=GroupId("bench"), generation_id=i32(1), member_id="member-1", group_instance_id=None
    )
    return encode_request(request, 0)


def small(api: tuple[int, int]) -> bytes:
    """A request of this API and version with an empty filter of quotas as its body."""
    key, version = api
    header = RequestHeader(api_key=key, api_version=version, correlation_id=0, client_id="bench")
    return frame(encode_request_header(header) + b"\1\0\0")


def large_requests() -> tuple[bytes, bytes]:
    """Frames that fetch a megabyte from the stub and produce one to it."""
    nowhere = uuid.UUID(int=1)
    fetch = encode_request(fetch_request(FETCH_VERSION, TOPIC, nowhere), 0)
    return fetch, encode_request(produce_request(PRODUCE_VERSION, TOPIC, nowhere, batch([bytes(MEGABYTE)]), acks=1), 0)


def stub_answers(port: int) -> dict[tuple[int, int], bytes]:
    """What a broker of its own cluster answers at a port: what the sidecar asks, and the requests above."""
    voter = {"replica_id": 9, "last_fetch_timestamp": 1, "last_caught_up_timestamp": 1, "log_end_offset": 2}
    quorum = {"leader_id": 9, "leader_epoch": 1, "high_watermark": 2, "current_voters": [voter]}
    offered = [
        {"api_key": key, "min_version": found[0], "max_version": found[-1]}
        for key in ApiKey
        if (found := known_versions(key))
    ]
    bodies: dict[ApiKey, dict[str, Any]] = {
        ApiKey.API_VERSIONS: {"api_keys": offered, "finalized_features_epoch": 1},
        ApiKey.METADATA: {
            "brokers": [{"node_id": 1, "host": HOST, "port": port}],
            "cluster_id": "bench",
            "controller_id": 1,
        },
        ApiKey.DESCRIBE_QUORUM: {"topics": [{"topic_name": "__cluster_metadata", "partitions": [quorum]}]},
        ApiKey.FETCH: {"responses": [{"partitions": [{"high_watermark": 1, "records": bytes(MEGABYTE)}]}]},
        ApiKey.PRODUCE: {"responses": [{"name": TOPIC, "partition_responses": [{"base_offset": 1}]}]},
    }
    answers = {
        (int(key), version): _answer(key, version, body)
        for key, body in bodies.items()
        for version in known_versions(key) or ()
        if key not in (ApiKey.FETCH, ApiKey.PRODUCE) or version in (FETCH_VERSION, PRODUCE_VERSION)
    }
    quotas = _answer(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"entries": []})
    return answers | {GATED: quotas, FORWARDED: quotas, (int(ApiKey.HEARTBEAT), 4): b"\0" + bytes(7)}


def _answer(key: ApiKey, version: int, body: dict[str, Any]) -> bytes:
    """The answer behind its correlation id."""
    header = encode_response_header(ResponseHeader(correlation_id=0), key, version)
    return header[4:] + encode_response(key, version, body)
