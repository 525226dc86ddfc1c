"""The workload straight against real brokers: it must find what is stale, and nothing once a broker has caught up.

A checker that never fails proves nothing; these tests are why a clean result through the sidecar means something.
"""

import asyncio

import pytest

from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin
from tests.support.workload import KINDS, Depth, Kind, run

pytestmark = pytest.mark.kafka

ALICE = PlainLogin.of("alice")
LAG_MS = 500


class DirectWorkload:
    """The same for every version; a subclass says which cluster."""

    async def test_at_least_nine_in_ten_reads_through_the_lagging_broker_are_stale(self, cluster: KafkaCluster) -> None:
        await asyncio.to_thread(cluster.lag, LAG_MS)
        rounds = 20
        result = await run(cluster.sasl_brokers, rounds=rounds, login=ALICE, in_parallel=True)
        assert sorted(result.kinds) == sorted(kind.name for kind in KINDS)
        assert not result.write_errors
        for kind in result.kinds:
            assert result.writes[kind] == rounds
            for node_id in cluster.brokers:
                tally = result.total(kind, node_id)
                assert (tally.reads, tally.errors.total()) == (rounds, 0), result.table()
            assert result.total(kind, cluster.lagging_broker).stale_share >= 0.9, result.table()

    async def test_a_write_through_the_lagging_broker_is_stale_there_too(self, cluster: KafkaCluster) -> None:
        await asyncio.to_thread(cluster.lag, LAG_MS)
        lagging = {cluster.lagging_broker: cluster.sasl_brokers[cluster.lagging_broker]}
        result = await run(lagging, rounds=10, login=ALICE, in_parallel=True)
        for kind in result.kinds:
            assert result.total(kind).stale_share >= 0.9, result.table()

    async def test_nothing_is_stale_once_every_broker_shows_the_head(self, cluster: KafkaCluster) -> None:
        async def catch_up(kind: Kind) -> None:
            await asyncio.to_thread(cluster.wait_caught_up, effective=kind.depth is Depth.EFFECTIVE)

        await asyncio.to_thread(cluster.lag, LAG_MS)
        rounds = 10
        result = await run(cluster.sasl_brokers, rounds=rounds, login=ALICE, in_parallel=True, before_read=catch_up)
        for kind in result.kinds:
            tally = result.total(kind)
            expected = (rounds * len(cluster.brokers), 0, 0)
            assert (tally.reads, tally.stale, tally.errors.total()) == expected, result.table()


class TestOnKafka44(DirectWorkload):
    @pytest.fixture
    def cluster(self, kafka: KafkaCluster) -> KafkaCluster:
        return kafka


class TestOnKafka39(DirectWorkload):
    @pytest.fixture
    def cluster(self, kafka_39: KafkaCluster) -> KafkaCluster:
        return kafka_39
