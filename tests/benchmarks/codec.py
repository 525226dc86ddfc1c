"""How long the codec's hot functions take: peeking, the walk over Fetch answers, the splice of Metadata.

Run with `python -m tests.benchmarks.codec`. Each line is the best of several rounds, so that a busy machine disturbs it
little.
"""

import sys
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

from codec import decode_response, encode_response
from codec.api_keys import ApiKey
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    client_id_of,
    encode_request_header,
    encode_response_header,
    peek_request,
    request_body_offset,
    response_body_offset,
    stamp_request,
)
from codec.splice import replace_brokers
from codec.walk import node_endpoints

ROUNDS = 7
ROUND_S = 0.05


def best_us(function: Callable[[], object]) -> float:
    """The time of one call in microseconds, in the best of the rounds."""
    timer = timeit.Timer(function)
    calls = max(1, int(ROUND_S / max(timer.timeit(1), 1e-7)))
    return min(timer.repeat(ROUNDS, calls)) / calls * 1e6


def metadata_request() -> bytes:
    """A Metadata v12 request of a client with an ordinary name."""
    header = RequestHeader(api_key=ApiKey.METADATA, api_version=12, correlation_id=7, client_id="orders-service")
    return encode_request_header(header) + bytes(40)


def answer(key: ApiKey, version: int, body: dict[str, Any]) -> bytes:
    """A whole answer."""
    return encode_response_header(ResponseHeader(correlation_id=7), key, version) + encode_response(key, version, body)


def fetch_answer(version: int, partitions: int, record_bytes: int) -> bytes:
    """A Fetch answer with partitions of one topic that all have records."""
    many = [{"partition_index": at, "records": bytes(record_bytes)} for at in range(partitions)]
    return answer(ApiKey.FETCH, version, {"responses": [{"topic": "t", "partitions": many}]})


def metadata_answer(topics: int, partitions: int) -> bytes:
    """A Metadata v12 answer of a cluster with three brokers."""
    brokers = [{"node_id": node, "host": f"broker-{node}.example", "port": 9092} for node in (1, 2, 3)]
    replicas = {"leader_id": 1, "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3]}
    many = [
        {"name": f"topic-{at}", "partitions": [{"partition_index": p, **replicas} for p in range(partitions)]}
        for at in range(topics)
    ]
    return answer(ApiKey.METADATA, 12, {"brokers": brokers, "topics": many})


def to_loopback(brokers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a sidecar does with every broker."""
    for broker in brokers:
        broker |= {"host": "127.0.0.1", "port": 9100 + broker["node_id"]}
    return brokers


def measurements() -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    request = metadata_request()
    state = ConsistencyState(cluster_id="MkU3OEVBNTcwNTJENDM2Qg", consistency_token=123456)
    metadata = metadata_answer(topics=100, partitions=10)
    single = fetch_answer(17, partitions=1, record_bytes=1000)
    named: dict[str, Callable[[], object]] = {
        "peek_request": lambda: peek_request(request),
        "client_id_of": lambda: client_id_of(request),
        "request_body_offset": lambda: request_body_offset(request),
        "stamp_request": lambda: stamp_request(request, state),
        "walk of Fetch v17, 1 partition": lambda: node_endpoints(single, ApiKey.FETCH, 17, 5),
        "splice of Metadata v12, 1000 partitions": lambda: replace_brokers(
            metadata, ApiKey.METADATA, 12, 5, to_loopback
        ),
        "decoding the same": lambda: decode_response(ApiKey.METADATA, 12, metadata, 5),
    }
    for version in (4, 11, 17):
        many = fetch_answer(version, partitions=500, record_bytes=2000)
        offset = response_body_offset(many, ApiKey.FETCH, version)
        walk = partial(node_endpoints, many, ApiKey.FETCH, version, offset)
        named[f"walk of Fetch v{version}, 500 partitions, 1 MB"] = walk
        named[f"decoding the same (v{version})"] = partial(decode_response, ApiKey.FETCH, version, many, offset)
    return named


def main() -> None:
    """Print a line for each measurement."""
    for name, function in measurements().items():
        sys.stdout.write(f"{name:46} {best_us(function):10.2f} us\n")


if __name__ == "__main__":
    main()
