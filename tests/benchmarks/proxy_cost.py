"""What the sidecar costs a small request, beside a relay that copies bytes and no proxy at all.

    python -m tests.benchmarks.proxy_cost [--seconds 2] [--rounds 3]

A stub broker answers Heartbeat at once; a client keeps some requests in flight on some connections. All ways take turns
in one run, so that a busy machine disturbs each of them; the ratios to the relay are what counts. Everything runs in
processes of its own on loopback.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import uvloop

from codec import encode_response
from codec.api_keys import ApiKey
from codec.headers import ResponseHeader, encode_response_header, peek_request
from codec.registry import known_versions
from tests.support.kafka.ports import HOST, free_ports
from tests.support.sidecar import SidecarProcess

LOADS: Final = ((1, 1), (8, 1), (8, 16), (64, 1))
"""Connections, and requests in flight on each."""

_HEARTBEAT: Final = (
    struct.pack(">hhi", ApiKey.HEARTBEAT, 1, 7) + b"\x00\x05bench" + b"\x00\x01g\x00\x00\x00\x01\x00\x01m"
)
REQUEST: Final = struct.pack(">i", len(_HEARTBEAT)) + _HEARTBEAT
ANSWER: Final = struct.pack(">iiih", 10, 7, 0, 25)


class Stub(asyncio.Protocol):
    """A broker: Heartbeat from a constant, what the sidecar asks at its start from the codec."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers every whole frame, all of a chunk in one write."""
        data = self._buffer + data
        answers = []
        position = 0
        while len(data) - position >= 4:
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            if end > len(data):
                break
            payload = data[position + 4 : end]
            answers.append(ANSWER if payload[:2] == b"\x00\x0c" else self._answer(payload))
            position = end
        self._buffer = data[position:]
        self._transport.write(b"".join(answers))

    def _answer(self, payload: bytes) -> bytes:
        key, version, correlation_id = peek_request(payload)
        body = {
            ApiKey.API_VERSIONS: self._offer,
            ApiKey.METADATA: self._metadata,
            ApiKey.DESCRIBE_QUORUM: self._quorum,
        }[ApiKey(key)]()
        header = encode_response_header(ResponseHeader(correlation_id=correlation_id), key, version)
        answer = header + encode_response(key, version, body)
        return struct.pack(">i", len(answer)) + answer

    def _offer(self) -> dict[str, Any]:
        offered = {int(key): found for key in ApiKey if (found := known_versions(key))} | {ApiKey.HEARTBEAT: range(5)}
        keys = [{"api_key": key, "min_version": found[0], "max_version": found[-1]} for key, found in offered.items()]
        return {"error_code": 0, "api_keys": keys, "finalized_features_epoch": 1}

    def _metadata(self) -> dict[str, Any]:
        return {
            "brokers": [{"node_id": 1, "host": HOST, "port": self._port}],
            "cluster_id": "bench",
            "controller_id": 1,
        }

    def _quorum(self) -> dict[str, Any]:
        voter = {"replica_id": 9, "last_fetch_timestamp": 1, "last_caught_up_timestamp": 1, "log_end_offset": 2}
        partition = {"leader_id": 9, "leader_epoch": 1, "high_watermark": 2, "current_voters": [voter]}
        return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [partition]}]}


class Relay(asyncio.Protocol):
    """Copies bytes between a client and the stub, and looks at none of them."""

    def __init__(self, to_port: int | None, peer: "Relay | None" = None) -> None:
        self._to_port = to_port
        self._peer = peer
        self._early: list[bytes] = []
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connects the other side."""
        self.transport = transport
        if self._to_port is not None:
            self._task = asyncio.get_running_loop().create_task(self._connect(self._to_port))

    async def _connect(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        _, self._peer = await loop.create_connection(lambda: Relay(None, self), HOST, port)
        for data in self._early:
            self._peer.transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Copies."""
        if self._peer is None:
            self._early.append(data)
        else:
            self._peer.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the other side."""
        if self._peer is not None:
            self._peer.transport.close()


class Load(asyncio.Protocol):
    """One connection of the client: as many requests in flight as it may have, each answer brings the next."""

    def __init__(self, in_flight: int, took_s: list[float]) -> None:
        self._in_flight = in_flight
        self._took_s = took_s
        self._left = 0
        self._sent_s = 0.0
        self.answers = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the first requests."""
        self.transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Counts answers; when the whole batch is answered, sends the next."""
        self._left -= len(data)
        if self._left <= 0:
            self.answers += self._in_flight
            self._took_s.append(time.perf_counter() - self._sent_s)
            self._send()

    def _send(self) -> None:
        self._left += len(ANSWER) * self._in_flight
        self._sent_s = time.perf_counter()
        self.transport.write(REQUEST * self._in_flight)


async def measure(port: int, connections: int, in_flight: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and the median time in ms until a batch is answered."""
    loop = asyncio.get_running_loop()
    took_s: list[float] = []
    loads = [(await loop.create_connection(lambda: Load(in_flight, took_s), HOST, port))[1] for _ in range(connections)]
    await asyncio.sleep(0.2)
    before, start_s = sum(load.answers for load in loads), time.perf_counter()
    took_s.clear()
    await asyncio.sleep(seconds)
    rate = (sum(load.answers for load in loads) - before) / (time.perf_counter() - start_s)
    for load in loads:
        load.transport.close()
    return rate, statistics.median(took_s) * 1000


def serve(port: int, protocol: Callable[[], asyncio.Protocol]) -> None:
    """Runs one server until the process is ended."""

    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(protocol, HOST, port)
        await server.serve_forever()

    uvloop.run(forever())


def serve_stub(port: int) -> None:
    """The stub broker."""
    serve(port, lambda: Stub(port))


def serve_relay(port: int, to_port: int) -> None:
    """The relay."""
    serve(port, lambda: Relay(to_port))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.proxy_cost", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=1.5, help="for each way and load (1.5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often all ways take turns (3)")
    args = parser.parse_args(arguments)
    stub_port, relay_port = free_ports(2)
    spawn = multiprocessing.get_context("spawn")
    servers = [
        spawn.Process(target=serve_stub, args=(stub_port,), daemon=True),
        spawn.Process(target=serve_relay, args=(relay_port, stub_port), daemon=True),
    ]
    for server in servers:
        server.start()
    sys.stdout.write("connections  in flight  way      requests/s  p50 ms  rate to relay\n")
    with SidecarProcess(f"{HOST}:{stub_port}") as sidecar:
        ways = {"direct": stub_port, "relay": relay_port, "sidecar": sidecar.nodes[1].port}
        for connections, in_flight in LOADS:
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            for _ in range(args.rounds):
                for way, port in ways.items():
                    found[way].append(uvloop.run(measure(port, connections, in_flight, args.seconds)))
            relay_rates = [rate for rate, _ in found["relay"]]
            for way, rows in found.items():
                ratio = statistics.median(rate / relay for (rate, _), relay in zip(rows, relay_rates, strict=True))
                rate = statistics.median(rate for rate, _ in rows)
                p50_ms = statistics.median(p50_ms for _, p50_ms in rows)
                sys.stdout.write(
                    f"{connections:11}  {in_flight:9}  {way:7}  {rate:10.0f}  {p50_ms:6.3f}  {ratio:13.2f}\n"
                )
    for server in servers:
        server.terminate()


if __name__ == "__main__":
    main()
