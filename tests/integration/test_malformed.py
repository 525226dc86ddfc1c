"""Bytes that are no Kafka requests: that connection ends with one log line and a counted cause, and nothing else.

The sidecar is the real process; what stands behind it is a scripted broker, so that no Kafka is needed. The
well-behaved clients beside the bad one share everything that clients can share: node port, session and the sidecar's
own connections to brokers.
"""

import asyncio
import contextlib
import random
import re
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from kio.schema.metadata.v12 import MetadataResponse

from tests.support.address import Address
from tests.support.fake_broker import FakeCluster
from tests.support.raw_client import RawConnection
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin
from tests.support.workload.topics import metadata_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

FRAME_BYTES_MAX = 1 << 20
CLOSE_TIMEOUT_S = 5.0
RANDOM_CONNECTIONS = 200
RANDOM_BYTES = 2048
SEED = 20260
MEMORY_ROUNDS = 4
MEMORY_GROWTH_KB_MAX = 4096

GATED_READS = {
    "metadata": (3, 12),
    "describe_acls": (29, 3),
    "describe_configs": (32, 4),
    "describe_log_dirs": (35, 4),
    "describe_delegation_token": (41, 3),
    "describe_client_quotas": (48, 1),
    "describe_user_scram_credentials": (50, 0),
    "describe_cluster": (60, 1),
    "list_config_resources": (74, 1),
    "describe_topic_partitions": (75, 0),
}
"""API to its key and a flexible version."""


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(api_key: int, api_version: int) -> bytes:
    """A request header v2 with client id `bad` and no tagged fields."""
    return struct.pack(">hhih", api_key, api_version, 7, 3) + b"bad" + b"\0"


TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(range(200))
"""The start of a ClientHello of TLS 1.3 as OpenSSL sends it, with the rest made up."""

BAD = {
    "negative_size": (struct.pack(">i", -2) + bytes(20), "malformed", "no Kafka request"),
    "no_room_for_a_header": (struct.pack(">i", 3) + bytes(20), "malformed", "no Kafka request"),
    "oversized": (struct.pack(">ihhi", FRAME_BYTES_MAX + 1, 3, 12, 1), "oversized", "limits.frame_bytes (1048576)"),
    "huge": (struct.pack(">ihhi", 2**31 - 1, 0, 9, 1), "oversized", "a frame of 2147483647 bytes"),
    "negative_api_key": (framed(struct.pack(">hhi", -1, 0, 1) + bytes(8)), "malformed", "no Kafka request"),
    "tls": (TLS_HELLO, "tls_hello", "set its security.protocol"),
    "tls_alert": (bytes.fromhex("15030300020230") + bytes(8), "tls_alert", "ended a TLS handshake"),
    "http": (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "http", "on the admin address"),
    "client_id_beyond_the_frame": (framed(struct.pack(">hhih", 3, 12, 7, 999)), "malformed", "no Kafka request"),
    "unknown_metadata_version": (framed(header(3, 99) + bytes(8)), "unsupported_version", "newer than this sidecar"),
} | {
    f"garbage_{name}": (framed(header(key, version) + b"\xff" * 7), "malformed", "no Kafka request")
    for name, (key, version) in GATED_READS.items()
}
"""What is sent, the cause that is counted, and what the log line says among other things."""

CUT = {
    "size": struct.pack(">i", 100)[:2],
    "header": framed(header(3, 12) + bytes(40))[:9],
    "body": framed(header(3, 12) + bytes(40))[:-1],
    "stream": struct.pack(">ihhih", 500_000, 19999, 0, 7, -1) + bytes(1000),
}
"""The first bytes of requests that never go on, by where they end."""


class Door:
    """A running sidecar in front of scripted brokers, and a client that behaves, connected all the time."""

    def __init__(self, sidecar: SidecarProcess, good: RawConnection) -> None:
        self.sidecar = sidecar
        self.admin = SidecarAdmin(sidecar.admin)
        self.good = good
        self.node = sidecar.nodes[1]

    async def metric(self, sample: str, **labels: str) -> float:
        return await asyncio.to_thread(self.admin.metric, sample, **labels)

    async def closed(self, cause: str | None = None) -> float:
        """How many connections of clients have ended, for this cause or any."""
        labels = {"side": "client"} | ({} if cause is None else {"cause": cause})
        return await self.metric("tidegate_connections_closed_total", **labels)

    async def wait_alone(self) -> None:
        """Return when nobody but the client that behaves is connected."""
        await asyncio.to_thread(
            self.admin.wait_until,
            lambda: self.admin.metric("tidegate_client_connections") == 1,
            "connections of bad clients stay",
        )

    async def check_good(self) -> None:
        """The client that behaves is served, on the connection that it has had from the start."""
        answer = await self.good.ask(metadata_of(None), MetadataResponse, timeout_s=CLOSE_TIMEOUT_S)
        assert {node.node_id: (node.host, node.port) for node in answer.brokers} == self.sidecar.nodes

    def lines(self, start: int) -> list[str]:
        """What was logged of closed connections and worse since."""
        return [line for line in self.sidecar.log[start:] if re.search(r"closed|WARNING|ERROR|Traceback", line)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door() -> AsyncIterator[Door]:
    async with FakeCluster(broker_count=2) as cluster:
        bootstrap = str(cluster.brokers[1].address)
        settings = {"limits": {"frame_bytes": FRAME_BYTES_MAX}}
        sidecar = await asyncio.to_thread(SidecarProcess, bootstrap, settings=settings)
        try:
            async with await RawConnection.open(sidecar.nodes[1]) as good:
                yield Door(sidecar, good)
        finally:
            await asyncio.to_thread(sidecar.close)


async def throw(address: Address, data: bytes, *, finish: bool = False) -> bytes:
    """Connect, send, and return what comes back until the other side closes.

    Raises:
        TimeoutError: if it does not close within `CLOSE_TIMEOUT_S`.
    """
    async with asyncio.timeout(CLOSE_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(*address)
        received = b""
        try:
            writer.write(data)
            if finish:
                writer.write_eof()
            with contextlib.suppress(ConnectionError):
                received = await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        return received


@pytest.mark.row("5.6")
@pytest.mark.row("5.7")
@pytest.mark.parametrize("name", sorted(BAD))
async def test_bad_bytes_end_their_connection_with_one_line_and_a_cause(door: Door, name: str) -> None:
    data, cause, words = BAD[name]
    start, counted, all_counted = len(door.sidecar.log), await door.closed(cause), await door.closed()
    assert await throw(door.node, data) == b""
    await door.wait_alone()
    assert (await door.closed(cause) - counted, await door.closed() - all_counted) == (1, 1)
    await door.check_good()
    # The log comes through a pipe: its line may be read a moment after the metric. It is not there a second time if
    # another test has just had the same.
    said = rf"WARNING .*connection from 127\.0\.0\.1:\d+ closed: .*{re.escape(words)}"
    await asyncio.to_thread(door.sidecar.wait_for_line, re.compile(said))
    assert len(door.lines(start)) <= 1


@pytest.mark.parametrize("name", sorted(CUT))
async def test_a_request_that_never_goes_on_is_counted_when_its_client_leaves(door: Door, name: str) -> None:
    start, counted = len(door.sidecar.log), await door.closed("truncated")
    await throw(door.node, CUT[name], finish=True)
    await door.wait_alone()
    assert await door.closed("truncated") - counted == 1
    await door.check_good()
    assert not door.lines(start)


@pytest.mark.row("5.7")
async def test_random_bytes_close_two_hundred_connections_and_disturb_nobody(door: Door) -> None:
    choice = random.Random(SEED)
    shots = [choice.randbytes(RANDOM_BYTES) for _ in range(RANDOM_CONNECTIONS)]
    causes = ("malformed", "oversized", None)
    start, before = len(door.sidecar.log), [await door.closed(cause) for cause in causes]
    stop = asyncio.Event()

    async def behave() -> int:
        served = 0
        while not stop.is_set():
            await door.check_good()
            served += 1
        return served

    behaving = asyncio.create_task(behave())
    for first in range(0, RANDOM_CONNECTIONS, 20):
        await asyncio.gather(*(throw(door.node, shot, finish=True) for shot in shots[first : first + 20]))
    stop.set()
    assert await behaving > RANDOM_CONNECTIONS // 20
    await door.wait_alone()
    after = [await door.closed(cause) for cause in causes]
    malformed, oversized, closed = (now - then for now, then in zip(after, before, strict=True))
    assert closed == RANDOM_CONNECTIONS
    assert malformed + oversized == len(door.lines(start)) > RANDOM_CONNECTIONS * 0.9
    assert min(malformed, oversized) > RANDOM_CONNECTIONS // 4
    assert await door.metric("tidegate_internal_errors_total") == 0


@pytest.mark.row("5.7")
async def test_a_size_is_never_allocated_and_nothing_of_a_bad_connection_stays(door: Door) -> None:
    async def round_of_everything() -> None:
        for data, _, _ in BAD.values():
            await asyncio.gather(*(throw(door.node, data) for _ in range(10)))
        for data in CUT.values():
            await asyncio.gather(*(throw(door.node, data, finish=True) for _ in range(10)))

    await round_of_everything()
    before_kb = resident_kb(door.sidecar.pid)
    for _ in range(MEMORY_ROUNDS):
        await round_of_everything()
    assert resident_kb(door.sidecar.pid) - before_kb < MEMORY_GROWTH_KB_MAX
    await door.wait_alone()
    assert await door.metric("tidegate_internal_errors_total") == 0
    await door.check_good()


def resident_kb(pid: int) -> int:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])
