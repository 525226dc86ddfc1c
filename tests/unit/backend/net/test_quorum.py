"""The log with waiting added: an observer is served what is there, or what comes next."""

import asyncio

from backend.net.quorum import LocalQuorum
from backend.raft.interfaces import Snapshot


def quorum() -> LocalQuorum[str, str]:
    return LocalQuorum(3001, [3001, 3002, 3003])


async def test_an_observer_gets_what_is_there_at_once() -> None:
    log = quorum()
    await log.propose(["a", "b"])
    fetched = await log.observer(1).fetch(0, 100)
    assert [batch.records for batch in fetched.batches] == [("a", "b")]


async def test_all_observers_that_wait_get_what_comes() -> None:
    log = quorum()
    waiting = [asyncio.create_task(log.observer(node_id).fetch(0, 100)) for node_id in (1, 2)]
    await asyncio.sleep(0)
    assert await log.propose(["a"]) == 0
    assert [[batch.records for batch in (await wait).batches] for wait in waiting] == [[("a",)], [("a",)]]


async def test_an_observer_that_is_too_far_behind_gets_the_snapshot() -> None:
    log = quorum()
    await log.propose(["a", "b"])
    snapshot = Snapshot(end_offset=2, leader_epoch=log.leader_epoch, content="ab")
    log.compact(snapshot)
    assert (await log.observer(1).fetch(1, 100)).snapshot == snapshot


async def test_the_head_is_that_of_the_moment() -> None:
    log = quorum()
    observer = log.observer(1)
    assert (await observer.confirmed_head()).offset == -1
    await log.propose(["a"])
    assert (await observer.confirmed_head()).offset == 0
    assert (observer.high_watermark, observer.leader_epoch) == (1, log.leader_epoch)


async def test_observers_are_described_while_they_follow() -> None:
    log = quorum()
    await log.propose(["a"])
    observer = log.observer(7)
    await observer.fetch(0, 100)
    assert [replica.replica_id for replica in log.describe().observers] == [7]
    observer.close()
    assert log.describe().observers == ()
