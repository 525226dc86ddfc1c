"""The promise on real Kafka: through the sidecar nothing is stale, while the same reads past it are.

Every test with a lagging broker runs the same workload past the sidecar in the same moment, and demands that it finds
what it is there to find. Clients whose login the sidecar cannot repeat read from the broker of their port: on the
lagging one they are held. Reads of all others go to a broker that has caught up, as whoever asks.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin
from tests.support.sidecar import SidecarProcess
from tests.support.workload import KINDS, Kind, Result, run
from tests.support.workload.spread import PATIENT, login_settings, run_spread

pytestmark = pytest.mark.kafka

ALICE = PlainLogin.of("alice")
PINNED = PlainLogin.of("alice", pinned=True)
LAG_MS = 500
HELD_ROUNDS = 70
"""Read through three nodes: 210 reads of each kind."""
ROUTED_ROUNDS = 40
ROUNDS = 20
COPIES = 10

ACCESS = ("create_acl", "delete_acl", "alter_scram_credential", "create_delegation_token")
"""After these a session's reads wait until the broker acts on the write, so they get a test of their own."""
GROUPS = {
    "access": [kind for kind in KINDS if kind.name in ACCESS],
    "metadata": [kind for kind in KINDS if kind.name not in ACCESS],
}
GROUP_IDS = sorted(GROUPS)


def faults(result: Result, kinds: Sequence[type[Kind]], reads_min: int) -> list[str]:
    """The black-box checker: everything about a run that breaks the promise."""
    found = [f"{kind}: a write failed with {cause}, {n} times" for (kind, cause), n in result.write_errors.items()]
    for kind in kinds:
        tally = result.total(kind.name)
        if tally.reads < reads_min:
            found.append(f"{kind.name}: only {tally.reads} reads")
        if tally.stale:
            found.append(f"{kind.name}: {tally.stale} of {tally.reads} reads were stale")
        found += [f"{kind.name}: a read failed with {cause}, {n} times" for cause, n in tally.errors.items()]
    return found


class Promise:
    """The same for every version; a subclass says which cluster."""

    @pytest.fixture
    def sidecar(self, cluster: KafkaCluster) -> Iterator[SidecarProcess]:
        with SidecarProcess(cluster.bootstrap, settings=PATIENT) as sidecar:
            yield sidecar

    @pytest.fixture
    def sasl_sidecar(self, cluster: KafkaCluster, tmp_path: Path) -> Iterator[SidecarProcess]:
        settings = PATIENT | login_settings(ALICE, tmp_path)
        with SidecarProcess(cluster.sasl_bootstrap, settings=settings) as sidecar:
            yield sidecar

    async def test_nothing_is_stale_beside_a_lagging_broker(
        self, cluster: KafkaCluster, sidecar: SidecarProcess
    ) -> None:
        await self._compare(cluster, sidecar, GROUPS["metadata"], ROUTED_ROUNDS, login=None)

    async def test_nothing_is_stale_beside_a_lagging_broker_for_whoever_logs_in(
        self, cluster: KafkaCluster, sasl_sidecar: SidecarProcess
    ) -> None:
        await self._compare(cluster, sasl_sidecar, GROUPS["access"], ROUTED_ROUNDS, login=ALICE)

    @pytest.mark.parametrize("group", GROUP_IDS)
    async def test_nothing_is_stale_on_the_lagging_broker_itself(
        self, cluster: KafkaCluster, sasl_sidecar: SidecarProcess, group: str
    ) -> None:
        await self._compare(cluster, sasl_sidecar, GROUPS[group], HELD_ROUNDS, login=PINNED)

    @pytest.mark.parametrize("group", GROUP_IDS)
    async def test_nothing_is_stale_without_a_delay(self, sasl_sidecar: SidecarProcess, group: str) -> None:
        kinds = GROUPS[group]
        result = await run_spread(sasl_sidecar.nodes, rounds=ROUNDS, copies=COPIES, kinds=kinds, login=ALICE)
        assert not faults(result, kinds, ROUNDS * len(sasl_sidecar.nodes)), result.table()

    async def _compare(
        self,
        cluster: KafkaCluster,
        sidecar: SidecarProcess,
        kinds: Sequence[type[Kind]],
        rounds: int,
        login: PlainLogin | None,
    ) -> None:
        await asyncio.to_thread(cluster.lag, LAG_MS)
        brokers = cluster.sasl_brokers if login else cluster.brokers
        assert sidecar.nodes.keys() == brokers.keys()
        through, past = await asyncio.gather(
            run_spread(sidecar.nodes, rounds=rounds, copies=COPIES, kinds=kinds, login=login),
            run(brokers, rounds=ROUNDS, kinds=kinds, login=login, in_parallel=True),
        )
        assert not faults(through, kinds, rounds * len(brokers)), through.table()
        assert faults(past, kinds, ROUNDS * len(brokers))
        for kind in kinds:
            lagging = past.total(kind.name, cluster.lagging_broker)
            assert (lagging.reads, lagging.errors.total()) == (ROUNDS, 0), past.table()
            assert lagging.stale_share >= 0.9, past.table()


class TestOnKafka44(Promise):
    @pytest.fixture
    def cluster(self, kafka: KafkaCluster) -> KafkaCluster:
        return kafka


class TestOnKafka39(Promise):
    @pytest.fixture
    def cluster(self, kafka_39: KafkaCluster) -> KafkaCluster:
        return kafka_39
