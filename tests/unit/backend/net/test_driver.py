"""The duties of a replica's driver: to disk before anybody hears of it, many inputs on one sync, and an end to all."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from backend.metadata.records import NoOpRecord
from backend.net import driver as driver_module
from backend.net.disk import Disk
from backend.net.driver import Driver, ReplicaStopped
from backend.net.log_batches import encoded
from backend.raft.effects import Outgoing
from backend.raft.interfaces import NotLeader
from backend.raft.messages import FetchRequest, FetchResponse, VoteRequest, VoteResponse
from backend.raft.settings import QuorumSettings
from backend.storage.memory_disk import MemoryDisk
from backend.storage.storage import DiskStorage

BATCH: Final = encoded([NoOpRecord()], timestamp_ms=0)
TIMEOUT_S: Final = 10


class Watched(DiskStorage):
    """Notes what is done to it."""

    def __init__(self, events: list[str]) -> None:
        self.events = events
        self.is_full = False
        super().__init__(MemoryDisk())

    def append(self, batches: Any) -> None:
        self.events.append(f"append {len(batches)}")
        super().append(batches)

    def save_election(self, election: Any) -> None:
        self.events.append(f"vote {election.voted_id}" if election.voted_id >= 0 else "election")
        super().save_election(election)

    def sync(self) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.events.append("sync")
        super().sync()


class World:
    """A voter whose peers are the test."""

    def __init__(self, *, voters: tuple[int, ...] = (1,), election_timeout_ms: int = 1000) -> None:
        self.events: list[str] = []
        self.sent: asyncio.Queue[Outgoing] = asyncio.Queue()
        self.settings = QuorumSettings(node_id=1, voters=voters, election_timeout_ms=election_timeout_ms)

    def send(self, outgoing: Outgoing, driver: Driver) -> None:
        self.events.append(f"send {type(outgoing.request).__name__}")
        self.sent.put_nowait(outgoing)

    async def start(self, *, hasty: bool = True) -> Driver:
        self.storage = Watched(self.events)
        self.driver = await Driver.open(self.settings, Disk(self.storage, blocks=False), self, hasty=hasty)
        self.task = asyncio.create_task(self.driver.run())
        return self.driver

    async def lead(self) -> Driver:
        driver = await self.start()
        async with asyncio.timeout(TIMEOUT_S):
            while driver.high_watermark < 1:
                await driver.news()
        self.events.clear()
        return driver

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.driver.end()


async def test_a_vote_is_on_disk_before_it_is_told() -> None:
    world = World(voters=(1, 2, 3))
    driver = await world.start(hasty=False)
    asked = VoteRequest(replica_epoch=3, replica_id=2, last_offset_epoch=0, last_offset=0, pre_vote=False)
    answer = driver.receive(asked)
    answer.add_done_callback(lambda _: world.events.append("told"))
    response = await asyncio.wait_for(answer, TIMEOUT_S)
    assert isinstance(response, VoteResponse)
    assert response.vote_granted
    await asyncio.sleep(0)
    assert world.events.index("vote 2") < world.events.index("sync") < world.events.index("told")
    await world.stop()


async def test_proposals_that_wait_share_one_sync_and_are_committed_in_order() -> None:
    world = World()
    driver = await world.lead()
    done: list[int] = []
    first = driver.high_watermark
    for number in range(5):
        committed = driver.propose(BATCH, 1, leader_epoch=driver.leader.leader_epoch, base_offset=first + number)
        committed.add_done_callback(lambda _, number=number: done.append(number))  # type: ignore[misc]
    await asyncio.wait_for(committed, TIMEOUT_S)
    assert done == [0, 1, 2, 3, 4]
    assert [event for event in world.events if event != "append 1"] == ["sync"]
    await world.stop()


async def test_a_proposal_for_another_epoch_or_place_is_refused() -> None:
    world = World()
    driver = await world.lead()
    at, epoch = driver.high_watermark, driver.leader.leader_epoch
    for leader_epoch, base_offset in ((epoch - 1, at), (epoch, at + 1), (epoch + 1, at)):
        with pytest.raises(NotLeader):
            await driver.propose(BATCH, 1, leader_epoch=leader_epoch, base_offset=base_offset)
    assert world.events == []
    await world.stop()


async def test_a_follower_answers_no_fetch_and_a_leader_reads_the_log_into_its_answer() -> None:
    world = World()
    driver = await world.lead()

    def fetch(epoch: int) -> FetchRequest:
        return FetchRequest(
            replica_id=9, current_leader_epoch=epoch, fetch_offset=0, last_fetched_epoch=0, max_wait_ms=0
        )

    refused = await asyncio.wait_for(driver.receive(fetch(driver.leader.leader_epoch + 1)), TIMEOUT_S)
    assert isinstance(refused, FetchResponse)
    assert (refused.batches, refused.error_code.name) == ((), "UNKNOWN_LEADER_EPOCH")
    answered = await asyncio.wait_for(driver.receive(fetch(driver.leader.leader_epoch)), TIMEOUT_S)
    assert isinstance(answered, FetchResponse)
    assert [batch.base_offset for batch in answered.batches] == [0]
    await world.stop()


async def test_what_is_asked_ends_with_the_replica() -> None:
    world = World(voters=(1, 2, 3))
    driver = await world.start(hasty=False)
    read = driver.read_index()
    waiting = asyncio.ensure_future(driver.news())
    held = driver.receive(VoteRequest(replica_epoch=0, replica_id=2, last_offset_epoch=0, last_offset=0, pre_vote=True))
    await world.stop()
    with pytest.raises(NotLeader):
        await read
    with pytest.raises(ReplicaStopped):
        await waiting
    with pytest.raises(ReplicaStopped):
        await held
    with pytest.raises(ReplicaStopped):
        driver.receive(VoteRequest(replica_epoch=0, replica_id=2, last_offset_epoch=0, last_offset=0, pre_vote=True))
    with pytest.raises(ReplicaStopped):
        await driver.news()
    assert not driver.leads


async def test_a_disk_that_fails_ends_the_replica() -> None:
    world = World()
    driver = await world.lead()

    world.storage.is_full = True
    committed = driver.propose(BATCH, 1, leader_epoch=driver.leader.leader_epoch, base_offset=driver.high_watermark)
    with pytest.raises(OSError, match="No space left"):
        await asyncio.wait_for(world.task, TIMEOUT_S)
    with pytest.raises(NotLeader):
        await committed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets the whole process stand still for some ms."""
    skipped = [0]
    now_ms = driver_module._Clock.now_ms
    monkeypatch.setattr(driver_module._Clock, "now_ms", lambda self: now_ms(self) + skipped[0])

    def skip(ms: int) -> None:
        skipped[0] += ms

    return skip


async def test_after_a_pause_what_others_sent_is_heard_before_the_time_that_has_passed(
    clock: Callable[[int], None],
) -> None:
    world = World(voters=(1, 2, 3), election_timeout_ms=50)
    driver = await world.start(hasty=False)
    await asyncio.sleep(0)
    clock(10_000)
    vote = VoteRequest(replica_epoch=7, replica_id=2, last_offset_epoch=0, last_offset=0, pre_vote=False)
    response = await asyncio.wait_for(driver.receive(vote), TIMEOUT_S)
    assert isinstance(response, VoteResponse)
    assert response.vote_granted, "it has not stood for election first"
    await world.stop()
