"""Levels and scopes on real Kafka: each promises what it says, and visibly no more.

All reads log in so that they are tied to the lagging broker, where only a promise can make them fresh.
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.address import Address
from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin, RawConnection
from tests.support.sidecar import SidecarProcess
from tests.support.workload import KINDS, Result, Tally
from tests.support.workload.exchange import Verdict
from tests.support.workload.kinds import CreateTopic
from tests.support.workload.spread import PATIENT, login_settings, run_spread

pytestmark = pytest.mark.kafka

ALICE = PlainLogin.of("alice", pinned=True)
LAG_MS = 1000
ROUNDS = 30
COPIES = 10
SCOPE_ROUNDS = 4
SCOPE_COPIES = 10
SEEN_AT_ONCE = ("create_topic", "alter_topic_config", "alter_client_quota")
KINDS_HERE = [kind for kind in KINDS if kind.name in SEEN_AT_ONCE]


def sidecar_for(cluster: KafkaCluster, folder: Path, **consistency: Any) -> SidecarProcess:
    settings = login_settings(ALICE, folder) | {"consistency": PATIENT["consistency"] | consistency}
    return SidecarProcess(cluster.sasl_bootstrap, settings=settings)


async def read_at_once(nodes: Mapping[int, Address], writer: Address) -> Result:
    result = await run_spread(
        nodes, rounds=ROUNDS, copies=COPIES, kinds=KINDS_HERE, writer=writer, login=ALICE, client_id="levels"
    )
    assert not result.write_errors
    assert not result.total().errors, result.table()
    return result


def assert_mostly_stale(result: Result) -> None:
    for kind in KINDS_HERE:
        tally = result.total(kind.name)
        assert tally.reads == ROUNDS
        assert tally.stale_share >= 0.9, result.table()


async def test_a_linearizable_read_shows_writes_that_went_past_the_sidecar(kafka: KafkaCluster, tmp_path: Path) -> None:
    await asyncio.to_thread(kafka.lag, LAG_MS)
    with sidecar_for(kafka, tmp_path, level="linearizable") as sidecar:
        result = await read_at_once(sidecar.nodes, kafka.sasl_brokers[1])
    for kind in KINDS_HERE:
        tally = result.total(kind.name)
        assert (tally.reads, tally.stale) == (ROUNDS * len(sidecar.nodes), 0), result.table()


async def test_a_session_promises_nothing_of_writes_that_went_past_the_sidecar(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    with sidecar_for(kafka, tmp_path, level="session") as sidecar:
        lagging = {kafka.lagging_broker: sidecar.nodes[kafka.lagging_broker]}
        # A new session waits for the head of its first moment; what is past that moment is promised to nobody.
        await read_at_once(lagging, kafka.sasl_brokers[1])
        await asyncio.to_thread(kafka.lag, LAG_MS)
        assert_mostly_stale(await read_at_once(lagging, kafka.sasl_brokers[1]))


async def test_an_eventual_read_is_as_stale_as_its_broker(kafka: KafkaCluster, tmp_path: Path) -> None:
    await asyncio.to_thread(kafka.lag, LAG_MS)
    with sidecar_for(kafka, tmp_path, level="eventual") as sidecar:
        lagging = {kafka.lagging_broker: sidecar.nodes[kafka.lagging_broker]}
        assert_mostly_stale(await read_at_once(lagging, sidecar.nodes[1]))


@pytest.mark.parametrize(
    ("scope", "promised"),
    [
        ("connection", {"same connection"}),
        ("client_id", {"same connection", "same client id"}),
        ("service", {"same connection", "same client id", "another client id"}),
    ],
)
async def test_a_scope_says_whose_reads_show_a_write(
    kafka: KafkaCluster, tmp_path: Path, scope: str, promised: set[str]
) -> None:
    await asyncio.to_thread(kafka.lag, LAG_MS)
    with sidecar_for(kafka, tmp_path, scope=scope) as sidecar:
        node = sidecar.nodes[kafka.lagging_broker]
        found = await asyncio.gather(*(readers_of_a_write(node, copy) for copy in range(SCOPE_COPIES)))
    reads = SCOPE_ROUNDS * SCOPE_COPIES
    for reader in ("same connection", "same client id", "another client id"):
        total = Tally()
        for tallies in found:
            total.add(tallies[reader])
        assert (total.reads, total.errors.total()) == (reads, 0), total.errors
        if reader in promised:
            assert total.stale == 0, reader
        else:
            assert total.stale_share >= 0.9, reader


async def readers_of_a_write(node: Address, copy: int) -> dict[str, Tally]:
    """Write on one connection and read on three at once; what each reader saw."""
    client_ids = {
        "same connection": f"writer-{copy}",
        "same client id": f"writer-{copy}",
        "another client id": f"reader-{copy}",
    }
    kind = CreateTopic(f"scope-{copy}-{secrets.token_hex(4)}", SCOPE_ROUNDS, frozenset())
    tallies = {reader: Tally() for reader in client_ids}
    async with AsyncExitStack() as stack:
        connections = {
            reader: await stack.enter_async_context(await RawConnection.open(node, login=ALICE, client_id=client_id))
            for reader, client_id in client_ids.items()
        }

        async def read(reader: str, number: int) -> Verdict:
            asked = kind.read(number)
            judgement = asked.judge(await connections[reader].ask(asked.request, asked.response_type))
            tallies[reader].count(judgement, 0)
            return judgement.verdict

        # A new session is promised the head as of its start; that promise must not be what the rounds measure.
        assert {await read(reader, 0) for reader in connections} == {Verdict.STALE}
        tallies.update({reader: Tally() for reader in client_ids})
        for number in range(SCOPE_ROUNDS):
            write = kind.write(number)
            answer = await connections["same connection"].ask(write.request, write.response_type)
            assert {code.name for code in write.errors(answer)} == {"none"}
            await asyncio.gather(*(read(reader, number) for reader in connections))
        for cleanup in kind.cleanup():
            await connections["same connection"].ask(cleanup.request, cleanup.response_type)
    return tallies
