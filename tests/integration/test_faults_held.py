"""Reads that are held for a broker that never catches up: how each ends, and what a client that leaves frees.

The reads log in so that they are tied to the lagging broker, whose feed is paused for good.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.errors import ErrorCode

from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin, RawClientError, RawConnection
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin
from tests.support.workload.exchange import Verdict
from tests.support.workload.spread import login_settings
from tests.support.workload.topics import erase_topics, read_topics, write_topics

pytestmark = pytest.mark.kafka

ALICE = PlainLogin.of("alice", pinned=True)
WAIT_TIMEOUT_MS = 1000
LATE_MS_MAX = 500
FOREVER_MS = 300_000
CLOSED = "the peer closed the connection"
DESCRIBE_CLUSTER = DescribeClusterRequest(include_cluster_authorized_operations=False)


def settings(folder: Path, **consistency: Any) -> dict[str, Any]:
    return login_settings(ALICE, folder) | {"consistency": {"wait_timeout_ms": WAIT_TIMEOUT_MS} | consistency}


@asynccontextmanager
async def behind(kafka: KafkaCluster, sidecar: SidecarProcess, topic: str) -> AsyncIterator[RawConnection]:
    """A connection to the broker that will not catch up, on which a topic was just created."""
    await asyncio.to_thread(kafka.pause_feed)
    try:
        async with await RawConnection.open(sidecar.nodes[kafka.lagging_broker], login=ALICE) as connection:
            write = write_topics([topic])
            answer = await connection.ask(write.request, write.response_type)
            assert write.errors(answer) == [ErrorCode.none]
            yield connection
    finally:
        await asyncio.to_thread(kafka.lag, 0)
    async with await RawConnection.open(sidecar.nodes[1], login=ALICE) as connection:
        erase = erase_topics([topic])
        await connection.ask(erase.request, erase.response_type)


async def held_metadata(connection: RawConnection, topic: str) -> str:
    """What became of a Metadata request: a verdict, or what went wrong."""
    read = read_topics([topic])
    try:
        answer = await connection.ask(read.request, read.response_type)
    except RawClientError as error:
        return str(error)
    return read.judge(answer).verdict.value


@pytest.mark.parametrize(
    ("on_timeout", "ending"),
    [("error", CLOSED), ("freshest", Verdict.STALE.value), ("stale", Verdict.STALE.value), ("close", CLOSED)],
)
async def test_a_held_read_ends_in_time_as_configured(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str, on_timeout: str, ending: str
) -> None:
    with SidecarProcess(kafka.sasl_bootstrap, settings=settings(tmp_path, on_timeout=on_timeout)) as sidecar:
        admin = SidecarAdmin(sidecar.admin)
        async with behind(kafka, sidecar, topic_name) as connection:
            started_s = time.monotonic()
            assert await held_metadata(connection, topic_name) == ending
            took_ms = (time.monotonic() - started_s) * 1000
            assert WAIT_TIMEOUT_MS <= took_ms < WAIT_TIMEOUT_MS + LATE_MS_MAX
            held = await asyncio.to_thread(admin.metric, "tidegate_holds_total", api="Metadata", outcome=on_timeout)
            assert held == 1
            unproven = await asyncio.to_thread(
                admin.metric, "tidegate_requests_total", api="Metadata", decision="unproven"
            )
            assert unproven == (ending != CLOSED)


async def test_an_error_says_why_and_leaves_the_connection_open(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    with SidecarProcess(kafka.sasl_bootstrap, settings=settings(tmp_path)) as sidecar:
        async with behind(kafka, sidecar, topic_name) as connection:
            started_s = time.monotonic()
            answer = await connection.ask(DESCRIBE_CLUSTER, DescribeClusterResponse)
            took_ms = (time.monotonic() - started_s) * 1000
            assert answer.error_code is ErrorCode.request_timed_out
            assert answer.error_message is not None
            assert re.fullmatch(
                r"Tidegate: no broker had caught up with the session within 1\d\d\d ms; retry", answer.error_message
            )
            assert WAIT_TIMEOUT_MS <= took_ms < WAIT_TIMEOUT_MS + LATE_MS_MAX
            assert await connection.api_versions()
            await asyncio.to_thread(kafka.lag, 0)
            await asyncio.to_thread(kafka.wait_caught_up)
            answer = await connection.ask(DESCRIBE_CLUSTER, DescribeClusterResponse)
            assert answer.error_code is ErrorCode.none


async def test_pipelined_held_reads_all_end_in_time(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> None:
    with SidecarProcess(kafka.sasl_bootstrap, settings=settings(tmp_path)) as sidecar:
        async with behind(kafka, sidecar, topic_name) as connection:
            started_s = time.monotonic()
            for _ in range(5):
                await connection.send(DESCRIBE_CLUSTER)
            for _ in range(5):
                answer = await connection.receive(DescribeClusterResponse)
                assert answer.error_code is ErrorCode.request_timed_out
            assert (time.monotonic() - started_s) * 1000 < WAIT_TIMEOUT_MS + LATE_MS_MAX


@pytest.mark.parametrize("rest", [b"", b"\0\0\0\x20\0\x03"], ids=["whole requests", "a request in part"])
async def test_a_client_that_leaves_frees_its_hold(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str, rest: bytes
) -> None:
    patient = settings(tmp_path, wait_timeout_ms=FOREVER_MS)
    with SidecarProcess(kafka.sasl_bootstrap, settings=patient) as sidecar:
        admin = SidecarAdmin(sidecar.admin)
        async with behind(kafka, sidecar, topic_name) as connection:
            await connection.send(DESCRIBE_CLUSTER)
            await asyncio.to_thread(admin.wait_until, lambda: bool(admin.rows("/held")), "nothing is held")
            (row,) = await asyncio.to_thread(admin.rows, "/held")
            assert row["session"] == "service"
            assert row["api"] == "DescribeCluster"
            assert row["why"] in ("own write", "broker behind")
            assert 0 <= row["held_ms"] < FOREVER_MS
            assert row["held_ms"] + row["deadline_ms"] == pytest.approx(FOREVER_MS, abs=5)
            assert await asyncio.to_thread(admin.metric, "tidegate_held_requests") == 1
            await connection.send_bytes(rest)
            await connection.close()
            await asyncio.to_thread(admin.wait_until, lambda: not admin.rows("/held"), "the hold stays", 5)
            assert await asyncio.to_thread(admin.metric, "tidegate_held_requests") == 0
            left = await asyncio.to_thread(admin.metric, "tidegate_holds_total", outcome="client_left")
            assert left == 1
