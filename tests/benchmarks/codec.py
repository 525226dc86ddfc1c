"""What the codec's hot functions cost, each next to what others do with the same bytes.

Run with `python -m tests.benchmarks.codec`. The functions of a group take turns, round for round. A round is a
millisecond, shorter than the turn that a busy machine gives a process, and only time on the processor counts; the best
round of each is shown. The others: a bare `struct` for headers; for bodies our own decoder, its twin on construct, and
the decoders of kio, kafka-python and aiokafka.
"""

import io
import struct
import sys
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aiokafka.protocol.fetch import FetchResponse_v11
from aiokafka.protocol.metadata import MetadataResponse_v5
from kafka.protocol.consumer.fetch import FetchResponse
from kafka.protocol.metadata.metadata import MetadataResponse
from kio.index import load_response_schema
from kio.serial import entity_reader

from codec import decode_response, encode_response
from codec.api_keys import ApiKey
from codec.chunked_walk import ChunkedWalk
from codec.frames import SIZE_BYTES, frame, frame_buffer
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    client_id_of,
    encode_request_header,
    encode_response_header,
    peek_request,
    put_request_correlation_id,
    request_body_offset,
    response_body_offset,
    stamp_request,
)
from codec.reference import parse
from codec.registry import response_table
from codec.splice import replace_brokers
from codec.walk import node_endpoints

ROUNDS = 300
ROUND_S = 0.001
SLOW_S = 0.005
SLOW_ROUNDS = 12
CHUNK_BYTES = 65536

Calls = Mapping[str, Callable[[], object]]


def best_us(calls: Calls) -> dict[str, float]:
    """The time of one call of each in microseconds, in the best of the rounds that they take in turns."""
    timers = {name: timeit.Timer(function, timer=time.process_time) for name, function in calls.items()}
    once_s = {name: min(timer.repeat(3, 1)) for name, timer in timers.items()}
    best = dict(once_s)
    for at in range(ROUNDS):
        for name, timer in timers.items():
            if once_s[name] < SLOW_S or at % (ROUNDS // SLOW_ROUNDS) == 0:
                number = max(1, int(ROUND_S / max(once_s[name], 1e-7)))
                # What the one before left in the caches is not part of it.
                timer.timeit(1)
                best[name] = min(best[name], timer.timeit(number) / number)
    return {name: seconds * 1e6 for name, seconds in best.items()}


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


def metadata_answer(version: int, topics: int, partitions: int) -> bytes:
    """A Metadata answer of a cluster with three brokers."""
    brokers = [{"node_id": node, "host": f"broker-{node}.example", "port": 9092} for node in (1, 2, 3)]
    replicas = {"leader_id": 1, "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3]}
    many = [
        {"name": f"topic-{at}", "partitions": [{"partition_index": p, **replicas} for p in range(partitions)]}
        for at in range(topics)
    ]
    return answer(ApiKey.METADATA, version, {"brokers": brokers, "topics": many})


def to_loopback(brokers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a sidecar does with every broker."""
    for broker in brokers:
        broker |= {"host": "127.0.0.1", "port": 9100 + broker["node_id"]}
    return brokers


def header_calls() -> Calls:
    """What is done to the header of every request."""
    request = metadata_request()
    framed = frame_buffer(request)
    bare = struct.Struct(">hhi").unpack_from
    state = ConsistencyState(cluster_id="MkU3OEVBNTcwNTJENDM2Qg", consistency_token=123456)

    def peek_and_put() -> None:
        peek_request(request)
        put_request_correlation_id(framed, SIZE_BYTES, 9)

    def relay() -> bytearray:
        buffer = frame_buffer(request)
        put_request_correlation_id(buffer, SIZE_BYTES, 9)
        return buffer

    return {
        "bare struct unpack": lambda: bare(request),
        "peek_request": lambda: peek_request(request),
        "peek_request and correlation id in place": peek_and_put,
        "frame": lambda: frame(request),
        "frame with another correlation id": relay,
        "client_id_of": lambda: client_id_of(request),
        "request_body_offset": lambda: request_body_offset(request),
        "stamp_request": lambda: stamp_request(request, state),
    }


def metadata_calls(version: int) -> Calls:
    """A Metadata answer with other addresses, against decoding it."""
    payload = metadata_answer(version, topics=10, partitions=100)
    start = response_body_offset(payload, ApiKey.METADATA, version)
    return {
        "rewrite": lambda: replace_brokers(payload, ApiKey.METADATA, version, start, to_loopback),
        **decoders(ApiKey.METADATA, version, payload, start),
    }


def fetch_calls(version: int) -> Calls:
    """The walk over a Fetch answer with a megabyte of records, against decoding it."""
    payload = fetch_answer(version, partitions=500, record_bytes=2000)
    start = response_body_offset(payload, ApiKey.FETCH, version)
    chunks = [payload[at : at + CHUNK_BYTES] for at in range(0, len(payload), CHUNK_BYTES)]

    def in_chunks() -> None:
        walk = ChunkedWalk(ApiKey.FETCH, version)
        for chunk in chunks:
            walk.feed(chunk)

    return {
        "walk": lambda: node_endpoints(payload, ApiKey.FETCH, version, start),
        f"walk in chunks of {CHUNK_BYTES} bytes": in_chunks,
        **decoders(ApiKey.FETCH, version, payload, start),
    }


def decoders(key: ApiKey, version: int, payload: bytes, start: int) -> Calls:
    """Everybody's way to decode the same answer; aiokafka knows few versions."""
    body = payload[start:]
    table = response_table(key)
    read = entity_reader(load_response_schema(key, version))
    theirs: Any = {ApiKey.METADATA: MetadataResponse, ApiKey.FETCH: FetchResponse}[key]
    aiokafka: Any = {(ApiKey.METADATA, 5): MetadataResponse_v5, (ApiKey.FETCH, 11): FetchResponse_v11}.get(
        (key, version)
    )
    calls: dict[str, Callable[[], object]] = {
        "decode (compiled)": lambda: decode_response(key, version, payload, start),
        "decode (construct)": lambda: parse(table, version, body),
        "decode (kio)": lambda: read(body, 0),
        "decode (kafka-python)": lambda: theirs.decode(body, version=version),
    }
    if aiokafka is not None:
        calls["decode (aiokafka)"] = lambda: aiokafka.decode(io.BytesIO(body))
    return calls


def groups() -> Iterator[tuple[str, Calls]]:
    """What is measured together; the first of each group is what the others are compared with."""
    yield "headers", header_calls()
    for version in (5, 12):
        yield f"Metadata v{version}, 10 topics of 100 partitions", metadata_calls(version)
    for version in (4, 11, 17):
        yield f"Fetch v{version}, 500 partitions, 1 MB", fetch_calls(version)


def main() -> None:
    """Print each group: microseconds, and how many times the first."""
    for title, calls in groups():
        sys.stdout.write(f"{title}\n")
        times = best_us(calls)
        first = next(iter(times.values()))
        for name, time_us in times.items():
            sys.stdout.write(f"  {name:42} {time_us:12.2f} us {time_us / first:9.1f} x\n")


if __name__ == "__main__":
    main()
