"""The world: nodes with disks and clocks, a network, clients, a ledger of all that was seen, and a virtual clock.

By itself nothing goes wrong in it. `chaos` draws faults from a seed and calls the methods here; scripts call the same.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from backend.raft.messages import Request
from backend.raft.replica import QuorumSettings
from tests.simulation.clock import Clock
from tests.simulation.quorum.checked_disk import CheckedDisk
from tests.simulation.quorum.clients import Clients
from tests.simulation.quorum.disk import Disk
from tests.simulation.quorum.invariants import Ledger
from tests.simulation.quorum.network import Network
from tests.simulation.quorum.process import LocalClock, Process
from tests.simulation.quorum.state_machine import Writings
from tests.simulation.quorum.story import LINES_MAX, Story
from tests.simulation.quorum.weather import Weather

OBSERVERS_FROM: Final = 11
"""Node id of the first observer."""


@dataclass(slots=True)
class Node:
    """What outlives a process.

    Attributes:
        patience: its fetch timeout is so many times what others have.
        slow_ms: the disk takes so much longer.
        doomed: called once the next sync has begun: it will not end.
        down: faults that keep it down.
        stopped: faults that keep it standing still.
    """

    node_id: int
    disk: Disk
    clock: LocalClock
    patience: float = 1.0
    process: Process | None = None
    slow_ms: float = 0.0
    doomed: Callable[[], None] | None = None
    down: int = 0
    stopped: int = 0


class World:
    """See the module.

    Attributes:
        members: all nodes; `voters` and then observers.
        counts: what happened, for the assertion that everything does happen.
        at_rest: clients ask nothing new.
        well_since_ms: when the last fault ended.
        jitter: of nodes that wait for a time that is fixed instead of random.
    """

    def __init__(self, weather: Weather, lines_max: int | None = LINES_MAX) -> None:
        self.weather = weather
        self.random = Random(f"world {weather.seed}")
        self.clock = Clock()
        self.story = Story(lines_max)
        self.counts: Counter[str] = Counter()
        self.network = Network(
            self.clock,
            Random(f"network {weather.seed}"),
            delay_ms=weather.delay_ms,
            loss=weather.loss,
            duplicates=weather.duplicates,
            stragglers=weather.stragglers,
            stalls=weather.stalls,
        )
        self.writings = Writings()
        self.voters = list(range(1, weather.voters + 1))
        self.members = self.voters + list(range(OBSERVERS_FROM, OBSERVERS_FROM + weather.observers))
        self.jitter: dict[int, float] = {}
        self.ledger = Ledger(self)
        self.clients = Clients(self, Random(f"clients {weather.seed}"))
        self.at_rest = False
        self.well_since_ms = 0.0
        self._sync_low, high = weather.sync_ms
        self._sync_width = high - self._sync_low
        self.nodes: dict[int, Node] = {}
        for node_id in self.members:
            clock = LocalClock(self.random.uniform(*weather.rates), self.random.uniform(0, 100_000))
            patience = 3.0 if weather.uneven and self.random.random() < 0.5 else 1.0
            self.nodes[node_id] = Node(node_id, self._disk(), clock, patience)
        for node_id in self.members:
            self._start(node_id)

    def tell(self, node_id: int, kind: str, what: Any) -> None:
        """For the story."""
        self.story.tell(self.clock.now_ms, node_id, kind, what)

    def count(self, name: str) -> None:
        """For the coverage."""
        self.counts[name] += 1

    def run(self, for_ms: float) -> None:
        """Lets time pass."""
        self.clock.run(self.clock.now_ms + for_ms)

    def run_until(self, reached: Callable[[], bool], limit_ms: float, step_ms: float = 50.0) -> bool:
        """Lets time pass until something is so; says whether that was within the limit."""
        end_ms = self.clock.now_ms + limit_ms
        while not reached():
            if self.clock.now_ms >= end_ms:
                return False
            self.run(min(step_ms, end_ms - self.clock.now_ms))
        return True

    def deliver(self, sender: Process, to: int, correlation_id: int, request: Request) -> None:
        """A request arrives; nobody may be there."""
        target = self.nodes[to].process
        if target is not None:
            target.give(target.receive, sender, correlation_id, request)
        elif self.random.random() < self.weather.fail_fast:
            sender.give(sender.fail, correlation_id)

    def sync_ms(self, node_id: int) -> float:
        """How long a sync takes."""
        return self._sync_low + self._sync_width * self.random.random() + self.nodes[node_id].slow_ms

    def sync_begins(self, node_id: int) -> None:
        """A node's disk is at work: now it can lose something."""
        node = self.nodes[node_id]
        if node.doomed is not None:
            doom, node.doomed = node.doomed, None
            self.clock.after(0, doom)

    def snapshot_is_due(self) -> bool:
        """Whether a node that may make a snapshot does."""
        return self.random.random() < 0.3

    # What is so

    @property
    def leader(self) -> Process | None:
        """Who leads the latest epoch that anybody leads."""
        leading = [process for process in self.processes if process.replica.leader_id == process.node_id]
        return max(leading, key=lambda process: process.replica.leader_epoch, default=None)

    @property
    def deposed(self) -> list[int]:
        """Who leads an epoch and has not noticed that there is a later one: where reads are likely to go wrong."""
        leader = self.leader
        return [
            process.node_id
            for process in self.processes
            if process is not leader and process.replica.leader_id == process.node_id
        ]

    @property
    def processes(self) -> list[Process]:
        """Those that live, in order of their ids."""
        return [node.process for node in self.nodes.values() if node.process is not None]

    def all_caught_up(self) -> bool:
        """Whether all nodes follow one leader, and have applied what it has committed, which is all of its log."""
        leader = self.leader
        if leader is None or len(self.processes) < len(self.members):
            return False
        end, epoch = leader.replica.log_end_offset, leader.replica.leader_epoch
        return all(
            process.replica.leader_epoch == epoch
            and process.replica.leader_id == leader.node_id
            and process.high_watermark == end
            and process.machine.next_offset == end
            for process in self.processes
        )

    # What befalls it

    def crash(self, node_id: int) -> None:
        """The node loses power; what was not synced is lost, or some of it."""
        node = self.nodes[node_id]
        node.down += 1
        if node.process is None:
            return
        process, node.process = node.process, None
        process.dead = True
        lost, torn = node.disk.crash(self.random)
        self.count("crashes")
        if lost:
            self.count("crashes that lost something")
        if torn:
            self.count("torn tails")
        self.tell(node_id, "crashes", f"{lost} calls to the disk are lost{', one of them in part' * torn}")
        for other in self.processes:
            for correlation_id, (to, _) in list(other.outstanding.items()):
                if to == node_id and self.random.random() < self.weather.fail_fast:
                    self.clock.after(self.random.uniform(1, 20), other.give, other.fail, correlation_id)

    def restart(self, node_id: int) -> None:
        """Takes back one `crash`."""
        node = self.nodes[node_id]
        node.down -= 1
        if not node.down:
            self._start(node_id)

    def pause(self, node_id: int) -> None:
        """The process stands still; so does one that takes its place."""
        node = self.nodes[node_id]
        node.stopped += 1
        self.tell(node_id, "pauses", "")
        if node.process is not None:
            node.process.pause()

    def wake(self, node_id: int) -> None:
        """Takes back one `pause`."""
        node = self.nodes[node_id]
        node.stopped -= 1
        if not node.stopped and node.process is not None:
            self.tell(node_id, "wakes", "")
            node.process.wake()

    def isolate(self, node_id: int, *, hears: bool = False, is_heard: bool = False) -> Callable[[], None]:
        """Cuts a node off from all others, or lets it hear them or be heard; returns what takes it back."""
        others = [other for other in self.members if other != node_id]
        pairs = [] if is_heard else [(node_id, other) for other in others]
        pairs += [] if hears else [(other, node_id) for other in others]
        return self.cut(pairs)

    def cut(self, pairs: list[tuple[int, int]]) -> Callable[[], None]:
        """Nothing gets from the first of each pair to the second; returns what takes it back."""
        for source, target in pairs:
            self.network.cut(source, target)
        self.tell(0, "cuts", ", ".join(f"{source} to {target}" for source, target in pairs))

        def join() -> None:
            self.tell(0, "joins", ", ".join(f"{source} to {target}" for source, target in pairs))
            for source, target in pairs:
                self.network.join(source, target)
            self.well_since_ms = self.clock.now_ms

        return join

    def jump(self, node_id: int, by_ms: float) -> None:
        """A node's clock jumps; backwards, it stands still until the time is made up."""
        self.tell(node_id, "jumps", f"by {by_ms:.0f} ms")
        node = self.nodes[node_id]
        node.clock.offset_ms += by_ms
        if node.process is not None:
            node.process.give(node.process.tick)

    def voted(self, node_id: int) -> None:
        """A node has just told somebody that it has its vote."""
        if self.weather.vote_crashes and self.random.random() < self.weather.vote_crashes:
            self.clock.after(0, self.crash, node_id)
            self.clock.after(self.random.uniform(1, 30), self._return, node_id)

    def _return(self, node_id: int) -> None:
        if self.nodes[node_id].down:
            self.restart(node_id)

    def heal(self) -> None:
        """No faults any more: all run, hear each other, and have quick disks."""
        self.well_since_ms = self.clock.now_ms
        self.tell(0, "heals", "")
        self.network.heal()
        self._sync_low, self._sync_width = 0.2, 3.0
        for node in self.nodes.values():
            node.slow_ms = 0.0
            node.doomed = None
            node.down = node.stopped = 0
            if node.process is None:
                self._start(node.node_id)
            elif node.process.paused:
                node.process.wake()

    def _disk(self) -> Disk:
        if self.weather.product_disks:
            return CheckedDisk(self.weather.segment_batches, self.voters)
        return Disk(self.weather.segment_batches)

    def _start(self, node_id: int) -> None:
        weather, node = self.weather, self.nodes[node_id]
        settings = QuorumSettings(
            node_id=node_id,
            voters=tuple(self.voters),
            election_timeout_ms=weather.election_timeout_ms,
            fetch_timeout_ms=int(weather.fetch_timeout_ms * node.patience),
            fetch_max_bytes=weather.fetch_max_bytes,
            snapshot_max_bytes=weather.snapshot_max_bytes,
            retry_backoff_ms=weather.retry_backoff_ms,
        )
        self.tell(node_id, "starts", f"log {node.disk.log_start_offset}..{node.disk.log_end_offset}")
        node.process = process = Process(self, node_id, node.disk, node.clock, settings)
        if node.stopped:
            process.pause()
        process.start()
