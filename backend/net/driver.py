"""Drives one replica: gives it inputs one after the other, and carries out what it wants done, in the order it says.

    requests, responses, proposals, time ──> Replica ──> Effects: persist ─> send, reply ─> tell the state machine

The duties are those of `backend.raft.effects`. While something is being made durable, inputs wait; then all of them are
given to the replica at once and their effects joined, so that many writes share one fsync. A tick that is late because
the whole process stood still waits a little more: what others sent meanwhile is to be heard first, lest every pause
look like a dead leader.

Knows the replica, a disk and a way to send; no socket, no record, no image.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, final

from backend.net.disk import Disk
from backend.raft.batches import SnapshotId
from backend.raft.effects import (
    Append,
    DeleteBefore,
    Effects,
    InstallSnapshot,
    LeaderAndEpoch,
    LogRead,
    Outgoing,
    Persist,
    ReadConfirmed,
    ReadRefused,
    Reply,
    SaveElection,
    SavePiece,
    SnapshotRead,
    Truncate,
)
from backend.raft.interfaces import UNKNOWN, Head, NotLeader, QuorumState
from backend.raft.messages import FetchResponse, FetchSnapshotResponse, Request, Response
from backend.raft.replica import Replica
from backend.raft.settings import QuorumSettings, Recovered
from backend.raft.storage import ReplicaStorage

log = logging.getLogger("tidegate.quorum")

LATE_MS: Final = 100
"""A tick that comes so late is put off once, by as much."""
INPUTS_MAX: Final = 1000
"""Inputs that share one fsync."""

Input = Callable[[int], Effects]
"""From the time in ms to what follows."""


class Sender(Protocol):
    """How requests get to other nodes."""

    def send(self, outgoing: Outgoing, driver: "Driver") -> None:
        """Send a request; `driver.respond` or `driver.failed` is called at most once, and not before this returns."""
        ...


class ReplicaStopped(Exception):
    """The replica runs no more: it answers nothing."""


@final
class Driver:
    """One replica that runs. Made by `Driver.open`; `run` it in a task.

    Attributes:
        node_id: its id.
        disk: its storage; the state machine reads what is committed from there.
        high_watermark: what is known to be committed, exclusive, `UNKNOWN` before anything is.
        leader: the leader and epoch that it knows.
    """

    def __init__(
        self, settings: QuorumSettings, recovered: Recovered, disk: Disk, sender: Sender, *, hasty: bool
    ) -> None:
        """See `open`."""
        self.node_id = settings.node_id
        self.disk = disk
        self.leader = LeaderAndEpoch(
            leader_id=recovered.election.leader_id, leader_epoch=recovered.election.leader_epoch
        )
        snapshot = recovered.latest_snapshot
        self.high_watermark = UNKNOWN if snapshot is None else snapshot.end_offset
        self._sender = sender
        self._clock = _Clock()
        self._began_ms = self._clock.now_ms() - (2 * _longest(settings) if hasty else 0)
        self._replica = Replica(settings, recovered, jitter=_jitter, now_ms=self._began_ms)
        self._inputs: deque[Input] = deque()
        self._woken = asyncio.Event()
        self._news = asyncio.Event()
        self._handles = 0
        self._answers: dict[int, asyncio.Future[Response]] = {}
        self._reads: dict[int, asyncio.Future[Head]] = {}
        self._proposed: deque[tuple[int, int, asyncio.Future[None]]] = deque()
        self._stopped = False

    @classmethod
    async def open(cls, settings: QuorumSettings, disk: Disk, sender: Sender, *, hasty: bool = False) -> "Driver":
        """A replica with what its disk has.

        Args:
            settings: its place in the quorum.
            disk: open; closed by the caller after `run` has ended.
            sender: how its requests travel.
            hasty: behave as one that has heard of no leader for long: stands for election as soon as it runs. Whether
                it gets votes does not depend on that.
        """
        return cls(settings, await disk.run(_recovered), disk, sender, hasty=hasty)

    # Inputs

    def receive(self, request: Request) -> "asyncio.Future[Response]":
        """The answer to a request of another node.

        Raises:
            ReplicaStopped: From the future, if the replica ends before it answers.
        """
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        handle = self._handle()
        self._answers[handle] = answer
        answer.add_done_callback(lambda _: self._answers.pop(handle, None))
        self._give(lambda now_ms: self._replica.receive(handle, request, now_ms))
        return answer

    def respond(self, correlation_id: int, response: Response) -> None:
        """The response to a request of this replica has come."""
        self._give(lambda now_ms: self._replica.respond(correlation_id, response, now_ms))

    def failed(self, correlation_id: int) -> None:
        """No response to a request of this replica will come."""
        self._give(lambda now_ms: self._replica.failed(correlation_id, now_ms))

    def propose(self, batch: bytes, records: int, *, leader_epoch: int, base_offset: int) -> "asyncio.Future[None]":
        """Append a batch as the leader of an epoch; see `Leader.propose`."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def proposed(now_ms: int) -> Effects:
            replica = self._replica
            try:
                if replica.leader_epoch != leader_epoch or replica.log_end_offset != base_offset:
                    raise NotLeader
                last_offset, effects = replica.propose([(batch, records)], now_ms)
            except NotLeader as error:
                _fail(committed, error)
                return _NOTHING
            self._proposed.append((last_offset, leader_epoch, committed))
            return effects

        self._give(proposed)
        return committed

    def read_index(self) -> "asyncio.Future[Head]":
        """The head, confirmed by a majority after this call.

        Raises:
            NotLeader: From the future: this node does not lead, or ceased to.
        """
        confirmed: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        handle = self._handle()
        self._reads[handle] = confirmed
        confirmed.add_done_callback(lambda _: self._reads.pop(handle, None))
        self._give(lambda now_ms: self._replica.read_index(handle, now_ms))
        return confirmed

    def snapshot_written(self, snapshot_id: SnapshotId) -> None:
        """A snapshot of this replica's own state machine is durable."""
        self._give(lambda now_ms: self._replica.snapshot_written(snapshot_id, now_ms))

    def resign(self) -> None:
        """Cease to lead, in an orderly way; nothing if this node does not lead."""
        self._give(self._replica.resign)

    # Views

    @property
    def leads(self) -> bool:
        """Whether this node leads the epoch that it knows."""
        return self.leader.leader_id == self.node_id and not self._stopped

    def describe(self) -> QuorumState:
        """The quorum as this node sees it."""
        return self._replica.describe(self._clock.now_ms())

    @property
    def state(self) -> str:
        """The replica's state in Kafka's words."""
        return self._replica.state

    async def news(self) -> None:
        """Wait until high watermark, leader or epoch have changed.

        Raises:
            ReplicaStopped: The replica has ended, and nothing will change any more.
        """
        if self._stopped:
            raise ReplicaStopped
        await self._news.wait()
        if self._stopped:
            raise ReplicaStopped

    # Life

    async def run(self) -> None:
        """Run the replica until the task is cancelled.

        Raises:
            OSError: The disk has failed; the process should end, for nobody knows what is on it.
        """
        try:
            await self._carry_out(self._replica.start(self._began_ms))
            await self._carry_out(self._replica.tick(self._clock.now_ms()))
            while True:
                await self._carry_out(await self._next_effects())
        finally:
            self.end()

    async def _next_effects(self) -> Effects:
        await self._input_or_deadline()
        effects = self._take_inputs()
        overdue_ms = self._clock.now_ms() - self._replica.deadline_ms
        if overdue_ms < 0:
            return effects
        if overdue_ms > LATE_MS:
            await asyncio.sleep(LATE_MS / 1000)
            effects = effects.then(self._take_inputs())
        now_ms = self._clock.now_ms()
        return effects.then(self._replica.tick(now_ms)) if self._replica.deadline_ms <= now_ms else effects

    async def _input_or_deadline(self) -> None:
        """Returns when there is an input, or the deadline has passed."""
        if self._inputs:
            return
        self._woken.clear()
        wait_ms = self._replica.deadline_ms - self._clock.now_ms()
        if wait_ms <= 0:
            await asyncio.sleep(0)
            return
        timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    def _take_inputs(self) -> Effects:
        effects = _NOTHING
        now_ms = self._clock.now_ms()
        for _ in range(min(len(self._inputs), INPUTS_MAX)):
            effects = effects.then(self._inputs.popleft()(now_ms))
        return effects

    async def _carry_out(self, effects: Effects) -> None:
        """The duties of `backend.raft.effects`, in their order."""
        if effects.persist:
            await self.disk.run(lambda storage: _persist(storage, effects.persist))
        for outgoing in effects.requests:
            self._sender.send(outgoing, self)
        for reply in effects.replies:
            await self._reply(reply)
        if effects.high_watermark is not None:
            self.high_watermark = max(self.high_watermark, effects.high_watermark)
        if effects.load_snapshot is not None:
            self.high_watermark = max(self.high_watermark, effects.load_snapshot.end_offset)
        if effects.leader is not None:
            self._follow(effects.leader)
        self._settle()
        for read in effects.reads:
            self._tell(read)
        if effects.leader is not None or effects.high_watermark is not None or effects.load_snapshot is not None:
            self._spread()

    async def _reply(self, reply: Reply) -> None:
        answer = self._answers.get(reply.handle)
        if answer is None or answer.done():
            return
        response: Response | None = reply.response
        if reply.read is not None:
            read = reply.read
            response = await self.disk.run(lambda storage: _filled(storage, reply.response, read))
        if answer.done():
            return
        if response is None:
            # A reply may be lost; whoever asked asks again, and learns what is there now.
            answer.set_exception(ReplicaStopped("the log has moved on"))
        else:
            answer.set_result(response)

    def _follow(self, leader: LeaderAndEpoch) -> None:
        if leader.leader_id != self.leader.leader_id:
            log.info("node %d: epoch %d, leader %s", self.node_id, leader.leader_epoch, _named(leader.leader_id))
        self.leader = leader

    def _settle(self) -> None:
        """Answer proposals: those that are committed, and those of an epoch that this node does not lead any more."""
        while self._proposed:
            last_offset, epoch, committed = self._proposed[0]
            if self.leads and self.leader.leader_epoch == epoch:
                if self.high_watermark <= last_offset:
                    return
                if not committed.done():
                    committed.set_result(None)
            else:
                _fail(committed, NotLeader())
            self._proposed.popleft()

    def _tell(self, read: ReadConfirmed | ReadRefused) -> None:
        asked = self._reads.get(read.handle)
        if asked is None or asked.done():
            return
        if isinstance(read, ReadConfirmed):
            asked.set_result(Head(high_watermark=read.high_watermark, leader_epoch=read.leader_epoch))
        else:
            asked.set_exception(NotLeader())

    def _spread(self) -> None:
        """Wake whoever waits for news; whoever comes next waits for the next."""
        self._news.set()
        self._news = asyncio.Event()

    def _give(self, given: Input) -> None:
        if self._stopped:
            return
        self._inputs.append(given)
        self._woken.set()

    def _handle(self) -> int:
        if self._stopped:
            raise ReplicaStopped
        self._handles += 1
        return self._handles

    def end(self) -> None:
        """What waits for the replica waits no more; also for one whose `run` has never begun."""
        self._stopped = True
        self._inputs.clear()
        self._settle()
        for answer in [*self._answers.values()]:
            _fail(answer, ReplicaStopped())
        for asked in [*self._reads.values()]:
            _fail(asked, NotLeader())
        self._spread()


@final
class _Clock:
    """Milliseconds since 1970 that never go back: the wall clock at the start, and steady time since."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (self._offset_ns + time.monotonic_ns()) // 1_000_000


_NOTHING: Final = Effects()


def _recovered(storage: ReplicaStorage) -> Recovered:
    return Recovered(
        election=storage.election(),
        log_start_offset=storage.log_start_offset,
        log_end_offset=storage.log_end_offset,
        epochs=tuple(storage.epochs),
        latest_snapshot=storage.latest_snapshot,
    )


def _persist(storage: ReplicaStorage, orders: Sequence[Persist]) -> None:
    for order in orders:
        match order:
            case SaveElection(election):
                storage.save_election(election)
            case Append(batches):
                storage.append(batches)
            case Truncate(end_offset):
                storage.truncate(end_offset)
            case SavePiece(snapshot_id, position, piece):
                storage.save_piece(snapshot_id, position, piece)
            case InstallSnapshot(snapshot_id):
                storage.install_snapshot(snapshot_id)
            case DeleteBefore(snapshot_id):
                storage.delete_before(snapshot_id)
    storage.sync()


def _filled(storage: ReplicaStorage, response: Response, read: LogRead | SnapshotRead) -> Response | None:
    """The response with what is to be read into it, None when that is gone."""
    match response, read:
        case FetchResponse(), LogRead():
            if read.from_offset < storage.log_start_offset or read.from_offset >= storage.log_end_offset:
                return None
            batches = storage.read(read.from_offset, min(read.end_offset, storage.log_end_offset), read.max_bytes)
            return replace(response, batches=tuple(batches))
        case FetchSnapshotResponse(), SnapshotRead():
            size = storage.snapshot_size(read.snapshot_id)
            if size is None:
                return None
            piece = storage.read_snapshot(read.snapshot_id, read.position, read.max_bytes)
            return replace(response, size=size, position=read.position, piece=piece)
        case _:
            raise AssertionError(f"nothing is read into {type(response).__name__}")


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        # Whoever asked may have gone.
        future.exception()


def _longest(settings: QuorumSettings) -> int:
    return max(settings.election_timeout_ms, settings.fetch_timeout_ms)


def _jitter() -> float:
    return random.random()


def _named(leader_id: int) -> str:
    return "unknown" if leader_id == UNKNOWN else str(leader_id)
