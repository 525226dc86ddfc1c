"""Brokers and controllers that die, stop and come back under a sidecar that serves all the while.

In every test a workload writes and reads from before the fault until after it. Reads and writes may fail while the
fault lasts; no read may be stale.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.address import Address
from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin, RawClientError, RawConnection
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin
from tests.support.workload import Result, run
from tests.support.workload.kinds import CreateTopic
from tests.support.workload.run import Port
from tests.support.workload.spread import login_settings, merged

pytestmark = pytest.mark.kafka

STOP_S = 6.0
ANSWER_S = 1.0
RECOVERY_S = 60.0
WRITER_NODE = 1
CLEAN_ROUNDS = 5
CLEAN_READS = 30
INTERVAL_S = 0.02
READS_WHILE_STOPPED_MIN = 100


@pytest.fixture
def login() -> PlainLogin | None:
    """Who clients are; a test that says who, by its parameters, has reads that stay on the broker of their port."""
    return None


@pytest.fixture
def sidecar(kafka: KafkaCluster, login: PlainLogin | None, tmp_path: Path) -> Iterator[SidecarProcess]:
    bootstrap, settings = kafka.bootstrap, None
    if login is not None:
        bootstrap, settings = kafka.sasl_bootstrap, login_settings(login, tmp_path)
    with SidecarProcess(bootstrap, settings=settings) as sidecar:
        yield sidecar


@pytest.fixture
def admin(sidecar: SidecarProcess) -> SidecarAdmin:
    return SidecarAdmin(sidecar.admin)


class Traffic:
    """Creates topics through one node and reads each back through all; meanwhile reads an old topic again and again.

    Attributes:
        results: of the new topics that have been read back, a few rounds each.
        look_back: of the old topic, which every node had before the fault: a read without it went back in time.
    """

    def __init__(self, sidecar: SidecarProcess, login: PlainLogin | None) -> None:
        self.results: list[Result] = []
        self.look_back = Result()
        self._nodes = sidecar.nodes
        self._writer = sidecar.nodes[WRITER_NODE]
        self._login = login
        self._stopped = False
        self._grown = asyncio.Condition()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._create())
            tasks.create_task(self._look_back())

    async def wait_clean(self) -> None:
        """Return when both went without any error for a while after this call."""
        start = len(self.results) + 1

        def clean() -> bool:
            return any(not result.write_errors and not result.total().errors for result in self.results[start:])

        async with asyncio.timeout(RECOVERY_S), self._grown:
            await self._grown.wait_for(clean)
        while True:
            before = self.look_back.total()

            def read_on(reads: int = before.reads + CLEAN_READS) -> bool:
                return self.look_back.total().reads >= reads

            async with asyncio.timeout(RECOVERY_S), self._grown:
                await self._grown.wait_for(read_on)
            if self.look_back.total().errors == before.errors:
                return

    def stop(self) -> None:
        self._stopped = True

    @property
    def total(self) -> Result:
        return merged([*self.results, self.look_back])

    async def _create(self) -> None:
        while not self._stopped:
            try:
                result = await run(
                    self._nodes, rounds=CLEAN_ROUNDS, kinds=[CreateTopic], writer=self._writer, login=self._login
                )
            except (OSError, RawClientError):
                # No login at a node that is down; the reads of the old topic count that.
                await asyncio.sleep(INTERVAL_S)
                continue
            async with self._grown:
                self.results.append(result)
                self._grown.notify_all()

    async def _look_back(self) -> None:
        kind = CreateTopic(f"old-{secrets.token_hex(4)}", 1, frozenset())
        writer = self._port(self._writer)
        ports = {node_id: self._port(address) for node_id, address in self._nodes.items()}
        try:
            assert await writer.write(kind.write(0)) is None
            while not self._stopped:
                for node_id, port in ports.items():
                    judgement = await port.read(kind.read(0))
                    self.look_back.tallies["look_back", node_id].count(judgement, 0)
                async with self._grown:
                    self._grown.notify_all()
                # The pace, so that a node that refuses does not keep the machine busy.
                await asyncio.sleep(INTERVAL_S)
            for cleanup in kind.cleanup():
                await writer.write(cleanup)
        finally:
            for port in (writer, *ports.values()):
                await port.close()

    def _port(self, address: Address) -> Port:
        return Port(address=address, login=self._login, client_id="look-back")


@asynccontextmanager
async def traffic(sidecar: SidecarProcess, login: PlainLogin | None = None) -> AsyncIterator[Traffic]:
    """A workload around a fault. After the fault it must go without errors again; no read may have been stale."""
    running = Traffic(sidecar, login)
    task = asyncio.create_task(running.run())
    try:
        await running.wait_clean()
        yield running
        await running.wait_clean()
    finally:
        running.stop()
        await task
    total = running.total
    assert total.total().stale == 0, total.table()
    assert total.total().reads >= 2 * CLEAN_ROUNDS * len(sidecar.nodes)


async def wait_for(admin: SidecarAdmin, done: Callable[[], bool], failure: str) -> None:
    await asyncio.to_thread(admin.wait_until, done, failure, RECOVERY_S)


@pytest.mark.parametrize("login", [None, PlainLogin.of("alice", pinned=True)], ids=["routed", "pinned"])
async def test_a_killed_broker_is_forgotten_and_served_again_when_it_is_back(
    kafka: KafkaCluster, sidecar: SidecarProcess, admin: SidecarAdmin, login: PlainLogin | None
) -> None:
    before = admin.broker(2)
    assert before is not None
    assert before["state"] == "up"
    assert before["visible_offset"] > 0
    rows: list[dict[str, Any] | None] = []

    def has(state: str) -> bool:
        rows.append(admin.broker(2))
        # Once the cluster has fenced it, nobody names it any more.
        return state == ("down" if rows[-1] is None else rows[-1]["state"])

    async with traffic(sidecar, login) as running:
        await asyncio.to_thread(kafka.kill, 2)
        await wait_for(admin, lambda: has("down"), "broker 2 does not show as down")
        row = rows[-1]
        assert row is None or {row["visible_offset"], row["effective_offset"], row["lag_records"]} == {None}
        assert (await asyncio.to_thread(admin.get, "/readyz"))[0] == 200
        await asyncio.to_thread(kafka.start, 2)
        await wait_for(admin, lambda: has("up"), "broker 2 does not show as up again")
        row = rows[-1]
        assert row is not None
        assert row["port"] == before["port"]
        await asyncio.to_thread(kafka.wait_ready)
    total = running.total
    assert not total.write_errors
    failed_at = {node_id for node_id in sidecar.nodes if total.total(node_id=node_id).errors}
    assert failed_at <= {2}, total.table()
    assert total.total(node_id=2).errors, "nobody noticed the fault"


async def test_a_killed_active_controller_makes_nothing_stale(
    kafka: KafkaCluster, sidecar: SidecarProcess, admin: SidecarAdmin
) -> None:
    def epoch() -> int:
        return int(admin.get("/head")[1]["leader_epoch"])

    before = epoch()
    deposed = await asyncio.to_thread(kafka.active_controller)
    async with traffic(sidecar):
        await asyncio.to_thread(kafka.kill, deposed)
        await wait_for(admin, lambda: epoch() > before, "the sidecar does not see the next leader")
        await asyncio.to_thread(kafka.start, deposed)
        await asyncio.to_thread(kafka.wait_ready)
    await wait_for(admin, lambda: admin.get("/readyz")[1]["guarantee"] == "full", "the guarantee is not full again")


async def test_a_stopped_active_controller_makes_nothing_stale(
    kafka: KafkaCluster, sidecar: SidecarProcess, admin: SidecarAdmin
) -> None:
    stopped = await asyncio.to_thread(kafka.active_controller)

    def degraded() -> bool:
        status, document = admin.get("/readyz")
        return (status, document["guarantee"]) == (200, "degraded") and "head not confirmed" in document["reasons"][0]

    async with traffic(sidecar) as running:
        await asyncio.to_thread(kafka.stop, stopped)
        try:
            started_s, before = time.monotonic(), running.look_back.total()
            await wait_for(admin, degraded, "the sidecar does not say that it cannot confirm the head")
            # How long it stands still is the fault itself.
            await asyncio.sleep(STOP_S - (time.monotonic() - started_s))
            meanwhile = running.look_back.total()
        finally:
            await asyncio.to_thread(kafka.resume, stopped)
        await asyncio.to_thread(kafka.wait_ready)
    assert meanwhile.reads - before.reads >= READS_WHILE_STOPPED_MIN, "old news was not read while it stood still"
    await wait_for(admin, lambda: admin.get("/readyz")[1]["guarantee"] == "full", "the guarantee is not full again")


async def test_without_any_broker_clients_are_refused_at_once_and_served_again_later(
    kafka: KafkaCluster, sidecar: SidecarProcess, admin: SidecarAdmin
) -> None:
    def states() -> dict[int, str]:
        return {row["node_id"]: row["state"] for row in admin.rows("/brokers")}

    for broker_id in kafka.brokers:
        await asyncio.to_thread(kafka.kill, broker_id)
    await wait_for(admin, lambda: admin.get("/readyz")[0] == 503, "the sidecar says that it is ready")
    _, document = await asyncio.to_thread(admin.get, "/readyz")
    assert document["ready"] is False
    assert document["guarantee"] == "none"
    assert "no broker reachable" in document["reasons"]
    for address in (sidecar.bootstrap, *sidecar.nodes.values()):
        assert await seconds_until_refused(address) < ANSWER_S
    assert set(states().values()) == {"down"}
    for broker_id in kafka.brokers:
        await asyncio.to_thread(kafka.start, broker_id)
    await asyncio.to_thread(kafka.wait_ready)
    await wait_for(admin, lambda: states() == dict.fromkeys(kafka.brokers, "up"), "not all brokers show as up again")
    assert admin.get("/readyz") == (200, {"ready": True, "reasons": [], "guarantee": "full"})
    async with await RawConnection.open(sidecar.bootstrap) as connection:
        assert await connection.api_versions()
    result = await run(sidecar.nodes, rounds=CLEAN_ROUNDS, kinds=[CreateTopic])
    assert not result.write_errors
    assert (result.total().stale, result.total().errors.total()) == (0, 0), result.table()


async def seconds_until_refused(address: Address) -> float:
    started_s = time.monotonic()
    with pytest.raises((RawClientError, ConnectionError)):
        async with await RawConnection.open(address) as connection:
            await connection.api_versions()
    return time.monotonic() - started_s
