"""One broker: how it starts, lags, publishes in two steps, catches up from a snapshot, and comes back."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

import pytest

from backend import app
from backend.app import Backend, embedded
from backend.metadata.image import Image
from backend.metadata.records import Batch, NoOpRecord, UnregisterBrokerRecord
from backend.net import broker as broker_module
from backend.net import snapshots as snapshots_module
from backend.net.active_controller import Registration
from backend.net.replay import Delay
from backend.storage.memory import MemoryStorage

TIMEOUT_S: Final = 20


@pytest.fixture
async def cluster() -> AsyncIterator[Backend]:
    """One controller, two brokers, no NoOps."""
    async with Backend(embedded(controllers=1, brokers=2, noop_interval_ms=0)) as backend:
        yield backend


async def commit(cluster: Backend, records: int = 1) -> int:
    """Commit NoOps by hand; returns the offset of the last."""
    return await cluster.controller.append([NoOpRecord()] * records)


async def reach(cluster: Backend, node_id: int, offset: int, *, effect: bool = False) -> None:
    publication = cluster.broker(node_id).publication
    async with asyncio.timeout(TIMEOUT_S):
        await (publication.reach_effect(offset) if effect else publication.reach(offset))


def image_of(cluster: Backend, node_id: int) -> Image:
    return cluster.broker(node_id).publication.image


async def test_a_broker_serves_when_its_image_says_that_it_is_not_fenced(cluster: Backend) -> None:
    for node_id in (1, 2):
        image = image_of(cluster, node_id)
        assert cluster.broker(node_id).is_serving
        assert [broker.broker_id for broker in image.cluster.alive()] == [1, 2]
        assert image.cluster.brokers[node_id].end_points[0].port == cluster.broker(node_id).address[1]


async def test_a_delay_holds_one_broker_back_and_no_other(cluster: Backend) -> None:
    loop = asyncio.get_running_loop()
    cluster.broker(2).replay_delay_ms = 100
    began = loop.time()
    offset = await commit(cluster)
    await reach(cluster, 1, offset)
    assert image_of(cluster, 2).highest_offset == offset - 1
    await reach(cluster, 2, offset)
    assert loop.time() - began >= 0.1


async def test_a_delay_may_be_shortened_for_what_already_waits(cluster: Backend) -> None:
    cluster.broker(2).replay_delay_ms = 3_600_000
    offset = await commit(cluster)
    await reach(cluster, 1, offset)
    cluster.broker(2).replay_delay_ms = (1, 2)
    await reach(cluster, 2, offset)
    assert cluster.broker(2).replay_delay_ms == Delay(1, 2)


async def test_a_paused_broker_stands_still_until_it_goes_on(cluster: Backend) -> None:
    cluster.broker(2).paused = True
    before = image_of(cluster, 2).highest_offset
    for _ in range(3):
        offset = await commit(cluster)
    await reach(cluster, 1, offset)
    assert image_of(cluster, 2).highest_offset == before
    cluster.broker(2).paused = False
    assert not cluster.broker(2).paused
    await reach(cluster, 2, offset)


async def test_what_is_shown_is_in_effect_later_and_the_next_image_waits_for_that(cluster: Backend) -> None:
    cluster.broker(2).publish_delay_ms = 3_600_000
    first = await commit(cluster)
    await reach(cluster, 2, first)
    second = await commit(cluster)
    await reach(cluster, 1, second, effect=True)
    publication = cluster.broker(2).publication
    assert (publication.offset, publication.acting.highest_offset) == (first, first - 1)
    cluster.broker(2).publish_delay_ms = 0
    await reach(cluster, 2, second, effect=True)
    assert cluster.broker(2).publish_delay_ms == 0


async def test_a_broker_that_is_far_behind_stops_reading_and_catches_up_from_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshots_module, "SNAPSHOT_RECORDS", 50)
    monkeypatch.setattr(app, "MemoryStorage", partial(MemoryStorage, segment_bytes=1000))
    async with Backend(embedded(controllers=1, brokers=2, noop_interval_ms=0)) as cluster:
        await cluster.broker(2).stop()
        for _ in range(100):
            await reach(cluster, 1, await commit(cluster, 2))
        monkeypatch.setattr(broker_module, "WAITING_RECORDS_MAX", 5)
        monkeypatch.setattr(broker_module, "FETCH_RECORDS_MAX", 2)
        await cluster.start_broker(2)
        run = cluster.broker(2)._run
        assert run is not None
        assert run.attachment is not None
        assert (await run.attachment.log.fetch(0, 1)).snapshot is not None
        cluster.broker(2).paused = True
        for _ in range(20):
            offset = await commit(cluster)
            await reach(cluster, 1, offset)
        cluster.broker(2).paused = False
        await reach(cluster, 2, offset)
        assert image_of(cluster, 2) == image_of(cluster, 1)


async def test_a_broker_that_leaves_is_fenced_and_comes_back_on_its_port_with_a_new_epoch(cluster: Backend) -> None:
    address = cluster.broker(2).address
    epoch = image_of(cluster, 1).cluster.brokers[2].broker_epoch
    await cluster.broker(2).stop()
    await reach(cluster, 1, cluster.head_offset)
    assert [broker.broker_id for broker in image_of(cluster, 1).cluster.alive()] == [1]
    assert cluster.reasons() == ["broker 2 does not serve"]
    await cluster.start_broker(2)
    assert cluster.broker(2).address == address
    assert image_of(cluster, 2).cluster.brokers[2].broker_epoch > epoch
    assert cluster.reasons() == []


async def test_a_broker_starts_without_its_delays_and_has_them_again_when_it_serves(cluster: Backend) -> None:
    broker = cluster.broker(2)
    broker.replay_delay_ms = 3_600_000
    await broker.stop()
    async with asyncio.timeout(TIMEOUT_S):
        await cluster.start_broker(2)
    offset = await commit(cluster)
    await reach(cluster, 1, offset)
    assert image_of(cluster, 2).highest_offset < offset


async def test_a_broker_that_dies_leaves_its_registration_alone(cluster: Backend) -> None:
    await cluster.broker(2).stop(leave=False)
    assert not cluster.controller.image.cluster.brokers[2].fenced


async def test_a_broker_keeps_its_session_alive(cluster: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    beaten: asyncio.Queue[int] = asyncio.Queue()
    controller = cluster.controller
    heartbeat = controller.heartbeat

    async def noted(broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> bool:
        beaten.put_nowait(broker_id)
        return await heartbeat(broker_id, broker_epoch, image_offset, leaving=leaving)

    await cluster.broker(2).stop()
    monkeypatch.setattr(broker_module, "HEARTBEAT_INTERVAL_MS", 1)
    monkeypatch.setattr(controller, "heartbeat", noted)
    await cluster.start_broker(2)
    while not beaten.empty():
        beaten.get_nowait()
    assert await asyncio.wait_for(beaten.get(), TIMEOUT_S) == 2


async def test_a_broker_that_was_unregistered_registers_again(
    cluster: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = image_of(cluster, 1).cluster.brokers[2].broker_epoch
    await cluster.broker(2).stop()
    monkeypatch.setattr(broker_module, "HEARTBEAT_INTERVAL_MS", 1)
    await cluster.start_broker(2)
    epoch = cluster.controller.image.cluster.brokers[2].broker_epoch
    offset = await cluster.controller.append([UnregisterBrokerRecord(broker_id=2, broker_epoch=epoch)])
    async with asyncio.timeout(TIMEOUT_S):
        while (again := image_of(cluster, 1).cluster.brokers.get(2)) is None or again.broker_epoch < offset:
            await reach(cluster, 1, image_of(cluster, 1).highest_offset + 1)
    assert again.broker_epoch > offset > former


async def test_a_process_whose_place_another_took_is_unready(
    cluster: Backend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.broker(2).stop()
    monkeypatch.setattr(broker_module, "HEARTBEAT_INTERVAL_MS", 1)
    await cluster.start_broker(2)
    place = cluster.controller.image.cluster.brokers[2]
    again = Registration(
        broker_id=2, incarnation_id=bytes(16), end_points=place.end_points, log_dir=bytes(16), features=()
    )
    await cluster.controller.register(again)
    await asyncio.wait_for(cluster.failed.wait(), TIMEOUT_S)
    assert cluster.reasons() == ["broker 2: heartbeat has failed"]
    assert "another process has registered as broker 2" in caplog.text


async def test_a_task_that_fails_is_logged_and_makes_the_cluster_unready(
    cluster: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    run = cluster.broker(2)._run
    assert run is not None
    run.publication.image = Image.empty("another").apply(
        Batch(base_offset=10_000, leader_epoch=1, records=(NoOpRecord(),))
    )
    await commit(cluster)
    await asyncio.wait(run._tasks, timeout=TIMEOUT_S, return_when=asyncio.FIRST_EXCEPTION)
    await asyncio.sleep(0)
    assert cluster.reasons() == ["broker 2: replay has failed"]
    assert "unexpected, please report: broker 2: replay" in caplog.text
