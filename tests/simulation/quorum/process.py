"""One process of a node: a replica, and a driver that obeys the duties of `backend.raft.effects`.

While a sync is under way, inputs queue; then they go in one after another and share the next sync. A process that
crashed is dead: what was planned for it does nothing, and the node's next process knows what the disk knows.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from backend.raft.batches import SnapshotId
from backend.raft.effects import (
    Append,
    DeleteBefore,
    Effects,
    InstallSnapshot,
    LogRead,
    Outgoing,
    Persist,
    ReadConfirmed,
    Reply,
    SaveElection,
    SavePiece,
    SnapshotRead,
    Truncate,
)
from backend.raft.interfaces import NotLeader
from backend.raft.messages import FetchResponse, FetchSnapshotResponse, Request, Response
from backend.raft.replica import QuorumSettings, Recovered, Replica
from codec.error_codes import ErrorCode
from tests.simulation.quorum.clients import Read, Write
from tests.simulation.quorum.disk import Disk
from tests.simulation.quorum.state_machine import StateMachine

if TYPE_CHECKING:
    from tests.simulation.quorum.world import World

APPLIED_BYTES_MAX: Final = 1 << 39
"""Of what is applied at once: all."""


class LocalClock:
    """A node's clock: fast or slow, and it may jump; it never goes back, for the driver's is monotonic."""

    def __init__(self, rate: float, offset_ms: float) -> None:
        self.rate = rate
        self.offset_ms = offset_ms
        self._latest_ms = 0

    def read(self, now_ms: float) -> int:
        """Its time."""
        self._latest_ms = max(self._latest_ms, int(now_ms * self.rate + self.offset_ms))
        return self._latest_ms


class Process:
    """See the module.

    Attributes:
        high_watermark: the last one that the replica told, -1 before.
        checked: the log below is compared with what is committed.
        outstanding: requests of ours without a response: to whom, and since when.
        asked: requests of others that we owe a response.
    """

    def __init__(self, world: "World", node_id: int, disk: Disk, clock: LocalClock, settings: QuorumSettings) -> None:
        self.world = world
        self.node_id = node_id
        self.disk = disk
        self.clock = clock
        self.settings = settings
        self.machine = StateMachine(world.writings)
        self.dead = False
        self.paused = False
        self.high_watermark = -1
        self.checked = 0
        self.led_epoch = -1
        self.outstanding: dict[int, tuple[int, float]] = {}
        self.asked: dict[int, tuple[Process, int, Request]] = {}
        self.writes: deque[Write] = deque()
        self._confirming: dict[int, Callable[[ReadConfirmed | None], None]] = {}
        self._reading: list[tuple[int, Read]] = []
        self._inbox: deque[tuple[Callable[..., Effects | None], tuple[Any, ...]]] = deque()
        self._busy = False
        self._synced_late: Effects | None = None
        self._tick_at = math.inf
        self._handles = 0
        self._snapshot_offset = 0
        recovered = Recovered(
            election=disk.election(),
            log_start_offset=disk.log_start_offset,
            log_end_offset=disk.log_end_offset,
            epochs=disk.epochs,
            latest_snapshot=disk.latest_snapshot,
        )
        self.replica = Replica(settings, recovered, jitter=self._jitter, now_ms=self._now())

    @property
    def owes(self) -> int:
        """How many requests and reads have no answer yet."""
        return len(self.asked) + len(self._confirming)

    def start(self) -> None:
        """Begins to run."""
        self.give(self._started)

    def give(self, call: Callable[..., Effects | None], *args: Any) -> None:
        """Queues an input; if nothing stands against it, it is dealt with at once."""
        if self.dead:
            return
        self._inbox.append((call, args))
        if not self._busy and not self.paused:
            self._work()

    def pause(self) -> None:
        """The process stands still."""
        self.paused = True

    def wake(self) -> None:
        """And goes on as if nothing had happened."""
        self.paused = False
        if self._synced_late is not None:
            effects, self._synced_late = self._synced_late, None
            self._synced(effects)
        elif not self._busy and not self.dead:
            self.give(self.tick)

    # Inputs

    def receive(self, sender: "Process", correlation_id: int, request: Request) -> Effects:
        """A request has come."""
        self._handles += 1
        self.asked[self._handles] = (sender, correlation_id, request)
        return self.world.ledger.received(self, self._handles, request, self._now())

    def respond(self, correlation_id: int, response: Response) -> Effects | None:
        """A response has come; one that nobody waits for any more is dropped."""
        if self.outstanding.pop(correlation_id, None) is None:
            return None
        return self.replica.respond(correlation_id, response, self._now())

    def fail(self, correlation_id: int) -> Effects | None:
        """No response will come."""
        if self.outstanding.pop(correlation_id, None) is None:
            return None
        return self.replica.failed(correlation_id, self._now())

    def propose(self, write: Write) -> Effects | None:
        """A client wants something written."""
        try:
            last_offset, effects = self.replica.propose([(write.encoded, write.records)], self._now())
        except NotLeader:
            self.world.clients.not_leader(write, self.replica.leader_id)
            return None
        write.placed(self.replica.leader_epoch, last_offset)
        self.writes.append(write)
        return effects

    def confirm(self, then: Callable[[ReadConfirmed | None], None]) -> Effects:
        """Somebody asks for the head: `read_index`."""
        self._handles += 1
        self._confirming[self._handles] = then
        return self.replica.read_index(self._handles, self._now())

    def resign(self) -> Effects:
        """Stop leading in good order."""
        return self.replica.resign(self._now())

    def read(self, high_watermark: int, read: Read) -> None:
        """The head is confirmed for a read of ours: it is answered once the state is as far."""
        if self.dead:
            return
        if self.machine.next_offset >= high_watermark:
            self.world.clients.answered(self, read)
        else:
            self._reading.append((high_watermark, read))

    def _started(self) -> Effects:
        return self.replica.start(self._now())

    def tick(self) -> Effects:
        """Time has passed."""
        self._tick_at = math.inf
        return self.replica.tick(self._now())

    def make_snapshot(self) -> None:
        """Takes the state as it is; until it is written, time passes and other things happen."""
        snapshot_id, pieces = self.machine.snapshot()
        if snapshot_id.end_offset > self._snapshot_offset:
            self._snapshot_offset = snapshot_id.end_offset
            world = self.world
            world.ledger.snapshot_written(self, snapshot_id, b"".join(pieces))
            world.clock.after(world.sync_ms(self.node_id) * 3, self.give, self._snapshot_written, snapshot_id, pieces)

    def _snapshot_written(self, snapshot_id: SnapshotId, pieces: list[bytes]) -> Effects:
        self.disk.write_snapshot(snapshot_id, pieces)
        self.disk.sync()
        return self.replica.snapshot_written(snapshot_id, self._now())

    # The driver

    def _work(self) -> None:
        """Takes all inputs that wait, and the effects of all of them together."""
        self._busy = True
        effects: Effects | None = None
        while self._inbox:
            call, args = self._inbox.popleft()
            more = call(*args)
            if more is not None:
                effects = more if effects is None else effects.then(more)
        if effects is None:
            self._busy = False
        elif effects.persist:
            for what in effects.persist:
                self._persist(what)
            self._sync(effects)
        else:
            self._tell(effects)

    def _persist(self, what: Persist) -> None:
        disk = self.disk
        self.world.story.tell(self.world.clock.now_ms, self.node_id, "disk", what)
        match what:
            case Append(batches):
                self.world.ledger.appended(self, batches)
                disk.append(batches)
            case SaveElection(election):
                disk.save_election(election)
            case Truncate(end_offset):
                self.world.ledger.truncated(self, end_offset)
                disk.truncate(end_offset)
            case SavePiece(snapshot_id, position, piece):
                disk.save_piece(snapshot_id, position, piece)
            case InstallSnapshot(snapshot_id):
                self.world.ledger.installed(self, snapshot_id)
                disk.install_snapshot(snapshot_id)
            case DeleteBefore(snapshot_id):
                disk.delete_before(snapshot_id)

    def _sync(self, effects: Effects) -> None:
        """Makes it durable; only then is anything told, and only then does the next input go in."""
        self.world.sync_begins(self.node_id)
        self.world.clock.after(self.world.sync_ms(self.node_id), self._synced, effects)

    def _synced(self, effects: Effects) -> None:
        if self.dead:
            return
        if self.paused:
            self._synced_late = effects
            return
        self.disk.sync()
        self._tell(effects)

    def _tell(self, effects: Effects) -> None:
        world = self.world
        world.ledger.check(self, effects)
        for outgoing in effects.requests:
            self._send(outgoing)
        for reply in effects.replies:
            self._reply(reply)
        if effects.load_snapshot is not None:
            self._load(effects.load_snapshot)
        if self.writes and self.writes[0].leader_epoch != self.replica.leader_epoch:
            self._forget_writes()
        if effects.high_watermark is not None:
            self._apply(effects.high_watermark)
        for told in effects.reads:
            self._confirming.pop(told.handle)(told if isinstance(told, ReadConfirmed) else None)
        self._plan_tick()
        self._busy = False
        if self._inbox:
            self._work()

    def _send(self, outgoing: Outgoing) -> None:
        world = self.world
        correlation_id = outgoing.correlation_id
        self.outstanding[correlation_id] = (outgoing.to, world.clock.now_ms)
        world.story.tell(world.clock.now_ms, self.node_id, "asks", outgoing)
        if not world.network.send(
            self.node_id, outgoing.to, world.deliver, self, outgoing.to, correlation_id, outgoing.request
        ):
            world.count("lost")
            if world.random.random() < world.weather.fail_fast:
                world.clock.after(1, self.give, self.fail, correlation_id)

    def _reply(self, reply: Reply) -> None:
        world = self.world
        sender, correlation_id, _ = self.asked.pop(reply.handle)
        response = reply.response
        match reply.read:
            case LogRead(from_offset=from_offset) if from_offset < self.disk.log_start_offset:
                # A snapshot came in the same step. The reply is lost; whoever asked asks again.
                return
            case LogRead(from_offset=from_offset, end_offset=end_offset, max_bytes=max_bytes):
                assert isinstance(response, FetchResponse)
                response = FetchResponse(
                    leader_id=response.leader_id,
                    leader_epoch=response.leader_epoch,
                    high_watermark=response.high_watermark,
                    log_start_offset=response.log_start_offset,
                    batches=self.disk.read(from_offset, end_offset, max_bytes),
                )
            case SnapshotRead(snapshot_id=snapshot_id, position=position, max_bytes=max_bytes):
                assert isinstance(response, FetchSnapshotResponse)
                size = self.disk.snapshot_size(snapshot_id)
                response = FetchSnapshotResponse(
                    error_code=ErrorCode.SNAPSHOT_NOT_FOUND if size is None else ErrorCode.NONE,
                    leader_id=response.leader_id,
                    leader_epoch=response.leader_epoch,
                    snapshot_id=snapshot_id,
                    size=size or 0,
                    position=position,
                    piece=b"" if size is None else self.disk.read_snapshot(snapshot_id, position, max_bytes),
                )
        world.story.tell(world.clock.now_ms, self.node_id, "answers", (sender.node_id, response))
        world.network.send(self.node_id, sender.node_id, sender.give, sender.respond, correlation_id, response)

    def _load(self, snapshot_id: SnapshotId) -> None:
        size = self.disk.snapshot_size(snapshot_id)
        assert size is not None, f"{snapshot_id} is to be loaded and is not there"
        content = self.disk.read_snapshot(snapshot_id, 0, size)
        self.world.ledger.loaded(self, snapshot_id, content)
        self.machine.load(content)
        self._snapshot_offset = snapshot_id.end_offset

    def _apply(self, high_watermark: int) -> None:
        world, machine = self.world, self.machine
        self.high_watermark = high_watermark
        for batch in self.disk.read(machine.next_offset, high_watermark, APPLIED_BYTES_MAX):
            world.ledger.applied(self, batch)
            machine.apply(batch)
        writes = self.writes
        while writes and writes[0].last_offset < high_watermark:
            world.clients.committed(self, writes.popleft())
        if self._reading:
            for wanted, read in self._reading:
                if wanted <= machine.next_offset:
                    world.clients.answered(self, read)
            self._reading = [waiting for waiting in self._reading if waiting[0] > machine.next_offset]
        if machine.next_offset - self._snapshot_offset >= world.weather.snapshot_records and world.snapshot_is_due():
            self.make_snapshot()

    def _forget_writes(self) -> None:
        """Writes of an epoch that is over: nobody knows what became of them."""
        epoch = self.replica.leader_epoch
        self.writes = deque(write for write in self.writes if write.leader_epoch == epoch)

    def _plan_tick(self) -> None:
        clock = self.world.clock
        wait_ms = max((self.replica.deadline_ms - self._now()) / self.clock.rate, 1.0)
        at_ms = clock.now_ms + min(wait_ms, 60_000.0)
        if at_ms < self._tick_at - 0.5:
            self._tick_at = at_ms
            clock.at(at_ms, self._time_to_tick)

    def _time_to_tick(self) -> None:
        if self.dead or self.world.clock.now_ms < self._tick_at - 0.001:
            return
        self._tick_at = math.inf
        if self.replica.deadline_ms <= self._now():
            self.give(self.tick)
        else:
            self._plan_tick()

    def _jitter(self) -> float:
        fixed = self.world.jitter.get(self.node_id)
        return self.world.random.random() if fixed is None else fixed

    def _now(self) -> int:
        return self.clock.read(self.world.clock.now_ms)
