"""A controller: takes office and loses it, writes in order, tries records before they are committed, fences brokers."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

import pytest

from backend.metadata.client import Client
from backend.metadata.errors import ReplayError
from backend.metadata.image import Image
from backend.metadata.records import (
    Batch,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    Record,
    RemoveTopicRecord,
)
from backend.metadata.writes import WriteRequest
from backend.net import snapshots as snapshots_module
from backend.net.active_controller import NotRegistered, Registration, StaleBrokerEpoch
from backend.net.controller import Controller, TopicDefaults
from backend.net.offers import FEATURES
from backend.raft.interfaces import NotLeader
from codec.api_keys import ApiKey
from tests.support.quorum import SoloQuorum

LOG_DIR: Final = bytes([1] * 16)
TIMEOUT_S: Final = 10


class Cluster:
    """A controller with its log, and brokers that are nothing but registrations."""

    def __init__(self, *, noop_interval_ms: int = 0, session_timeout_ms: int = 9000) -> None:
        self.quorum = SoloQuorum("cluster-a")
        self.noop_interval_ms = noop_interval_ms
        self.session_timeout_ms = session_timeout_ms
        self.epochs: dict[int, int] = {}

    async def __aenter__(self) -> Self:
        await self.quorum.__aenter__()
        self.controller = Controller(
            self.quorum.log,
            "cluster-a",
            TopicDefaults(num_partitions=2, replication_factor=1),
            FEATURES,
            noop_interval_ms=self.noop_interval_ms,
            session_timeout_ms=self.session_timeout_ms,
        )
        self.running = asyncio.create_task(self.controller.run())
        async with asyncio.timeout(TIMEOUT_S):
            await self.controller.activated()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.quorum.__aexit__(kind, error, trace)

    async def open(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            await self.register(broker_id)
            await self.beat(broker_id)

    async def register(self, broker_id: int) -> None:
        point = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)
        self.epochs[broker_id] = await self.controller.register(
            Registration(
                broker_id=broker_id, incarnation_id=LOG_DIR, end_points=(point,), log_dir=LOG_DIR, features=FEATURES
            )
        )

    async def beat(self, broker_id: int, *, leaving: bool = False) -> bool:
        """A heartbeat of a broker that has everything; returns whether it is fenced."""
        controller = self.controller
        return await controller.heartbeat(
            broker_id, self.epochs[broker_id], controller.image.highest_offset, leaving=leaving
        )

    async def create(self, name: str, *, replicas: int = -1, validate_only: bool = False) -> int:
        """Create a topic; returns the error code."""
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": replicas,
            "assignments": [],
            "configs": [],
        }
        body = {"topics": [topic], "timeout_ms": 1000, "validate_only": validate_only}
        written = await self.controller.write(
            WriteRequest(api_key=ApiKey.CREATE_TOPICS, api_version=7, body=body, client=Client(), broker_id=1)
        )
        assert written.offset == self.quorum.log.high_watermark - 1
        code: int = written.response["topics"][0]["error_code"]
        return code

    def leaders(self, name: str) -> list[int]:
        return [partition.leader for partition in self.controller.image.topics.by_name[name].partitions]


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """One that is active, without NoOps and without brokers."""
    async with Cluster() as cluster:
        yield cluster


async def test_the_log_begins_with_the_levels_of_the_features(cluster: Cluster) -> None:
    assert dict(cluster.controller.image.features.items()) == {"metadata.version": 33}


async def test_a_write_is_in_the_image_and_in_the_log_when_it_is_answered(cluster: Cluster) -> None:
    await cluster.open(1)
    before = cluster.quorum.log.high_watermark
    assert await cluster.create("orders") == 0
    assert len(cluster.leaders("orders")) == 2
    assert cluster.quorum.log.high_watermark == before + 3
    observed = Image.empty("cluster-a")
    for batch in (await cluster.quorum.log.fetch(0, 10_000)).batches:
        observed = observed.apply(
            Batch(base_offset=batch.base_offset, leader_epoch=batch.leader_epoch, records=batch.records)
        )
    assert observed.topics.by_name["orders"] == cluster.controller.image.topics.by_name["orders"]
    assert observed.highest_offset == cluster.controller.image.highest_offset


async def test_a_write_that_changes_nothing_commits_nothing_and_is_covered_all_the_same(cluster: Cluster) -> None:
    await cluster.open(1)
    await cluster.create("orders")
    before = cluster.quorum.log.high_watermark
    assert await cluster.create("orders") == 36
    assert await cluster.create("bills", validate_only=True) == 0
    assert cluster.quorum.log.high_watermark == before


async def test_writes_that_come_at_once_are_decided_one_after_the_other(cluster: Cluster) -> None:
    await cluster.open(1)
    codes = await asyncio.gather(*(cluster.create("orders") for _ in range(5)))
    assert sorted(codes) == [0, 36, 36, 36, 36]


async def test_a_record_that_does_not_fit_is_never_committed(cluster: Cluster) -> None:
    await cluster.open(1)
    before = cluster.quorum.log.high_watermark
    with pytest.raises(ReplayError):
        await cluster.controller.append([RemoveTopicRecord(topic_id=LOG_DIR)])
    assert cluster.quorum.log.high_watermark == before
    assert await cluster.create("orders") == 0


async def test_a_broker_is_fenced_until_it_has_its_own_registration(cluster: Cluster) -> None:
    await cluster.register(1)
    epoch = cluster.epochs[1]
    registered = cluster.controller.image.cluster.brokers[1]
    assert (registered.broker_epoch, registered.fenced) == (epoch, True)
    assert await cluster.create("orders") == 38
    assert await cluster.controller.heartbeat(1, epoch, epoch - 1, leaving=False)
    assert not await cluster.controller.heartbeat(1, epoch, epoch, leaving=False)
    assert await cluster.create("orders") == 0


async def test_a_heartbeat_that_unfences_is_answered_when_that_is_committed(cluster: Cluster) -> None:
    await cluster.register(1)
    before = cluster.quorum.log.high_watermark
    await cluster.controller.heartbeat(1, cluster.epochs[1], cluster.epochs[1], leaving=False)
    assert cluster.quorum.log.high_watermark == before + 1


async def test_the_heartbeat_of_a_process_that_was_replaced_changes_nothing(cluster: Cluster) -> None:
    await cluster.open(1)
    former = cluster.epochs[1]
    await cluster.register(1)
    before = cluster.quorum.log.high_watermark
    with pytest.raises(StaleBrokerEpoch):
        await cluster.controller.heartbeat(1, former, before, leaving=False)
    with pytest.raises(NotRegistered):
        await cluster.controller.heartbeat(2, former, before, leaving=False)
    assert cluster.quorum.log.high_watermark == before


async def test_a_controller_that_is_deposed_decides_nothing_until_it_is_active_again(cluster: Cluster) -> None:
    await cluster.open(1)
    former = cluster.quorum.log.leader_epoch
    under_way = asyncio.create_task(cluster.create("orders"))
    await asyncio.sleep(0)
    cluster.quorum.driver.resign()
    await asyncio.wait([under_way])
    was_lost = isinstance(under_way.exception(), NotLeader)
    async with asyncio.timeout(TIMEOUT_S):
        await cluster.quorum.log.deposed(former)
        # The controller hears of it in the same turn of the loop.
        await asyncio.sleep(0.001)
        with pytest.raises(NotLeader):
            await cluster.create("bills")
        await cluster.controller.activated()
    assert cluster.quorum.log.leader_epoch > former
    assert ("orders" in cluster.controller.image.topics.by_name) or was_lost
    assert await cluster.create("bills") == 0
    assert not cluster.controller.image.cluster.brokers[1].fenced


async def test_what_a_leaving_broker_led_moves_and_what_only_it_had_waits_for_it(cluster: Cluster) -> None:
    await cluster.open(1, 2)
    await cluster.create("both", replicas=2)
    await cluster.create("one", replicas=1)
    only = cluster.leaders("one")
    assert sorted(set(cluster.leaders("both"))) == [1, 2]
    assert await cluster.beat(1, leaving=True)
    assert cluster.leaders("both") == [2, 2]
    assert cluster.leaders("one") == [-1 if leader == 1 else leader for leader in only]
    await cluster.register(1)
    await cluster.beat(1)
    assert cluster.leaders("one") == only
    both = cluster.controller.image.topics.by_name["both"].partitions
    assert [sorted(partition.isr) for partition in both] == [[1, 2], [1, 2]]


async def test_a_broker_that_starts_again_without_having_left_is_fenced_first(cluster: Cluster) -> None:
    await cluster.open(1, 2)
    await cluster.create("both", replicas=2)
    await cluster.register(1)
    assert cluster.controller.image.cluster.brokers[1].broker_epoch == cluster.epochs[1]
    assert cluster.leaders("both") == [2, 2]


async def followed(cluster: Cluster, until: type[Record]) -> Record:
    """The first record of a kind that comes from now on."""
    log = cluster.quorum.log
    offset = log.high_watermark
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            for batch in (await log.fetch(offset, 100)).batches:
                for record in batch.records:
                    if isinstance(record, until):
                        return record
                offset = batch.last_offset + 1


async def test_noops_keep_the_log_moving() -> None:
    async with Cluster(noop_interval_ms=1) as cluster:
        assert await followed(cluster, NoOpRecord) == NoOpRecord()


async def test_a_silent_broker_is_fenced_and_one_that_beats_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async with Cluster(session_timeout_ms=100) as cluster:
        await cluster.open(1, 2)
        beating = asyncio.create_task(beat_for_ever(cluster, 2))
        await followed(cluster, BrokerRegistrationChangeRecord)
        fenced = {broker.broker_id: broker.fenced for broker in cluster.controller.image.cluster.registered()}
        beating.cancel()
    assert fenced == {1: True, 2: False}
    assert caplog.messages == ["broker 1 sent no heartbeat for 100 ms: fenced"]


async def beat_for_ever(cluster: Cluster, broker_id: int) -> None:
    while True:
        await cluster.beat(broker_id)
        await asyncio.sleep(0.01)


async def test_the_log_is_cut_back_to_a_snapshot(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "SNAPSHOT_RECORDS", 3)
    await cluster.open(1)
    async with asyncio.timeout(TIMEOUT_S):
        while (fetched := await cluster.quorum.log.fetch(0, 100)).snapshot is None:
            await cluster.beat(1)
            await cluster.controller.append([NoOpRecord()])
    assert fetched.snapshot.content.highest_offset == fetched.snapshot.end_offset - 1
    assert fetched.snapshot.content.cluster.brokers[1].broker_id == 1
