"""Clients: they write records that are unlike all others, and read what is linearizable, at any node.

A write goes to some voter, and on to the one that this takes for the leader. A read at a node that does not lead asks
the leader for the head, as DescribeQuorum does on the wire, and is answered from the node's own state once that is as
far. An answer may never come; then nothing is known of the request, and nothing is asked again.
"""

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from backend.raft.effects import ReadConfirmed

if TYPE_CHECKING:
    from tests.simulation.quorum.process import Process
    from tests.simulation.quorum.world import World

HOPS_MAX: Final = 3


@dataclass(slots=True, kw_only=True)
class Write:
    """One write: a batch.

    Attributes:
        name: for stories.
        content: what it adds to the state.
        leader_epoch: in which a leader has appended it, up to `last_offset`; -1 before.
    """

    name: str
    encoded: bytes
    records: int
    content: bytes
    hops: int = 0
    leader_epoch: int = -1
    last_offset: int = -1
    acknowledged: bool = False

    def placed(self, leader_epoch: int, last_offset: int) -> None:
        """A leader has appended it."""
        self.leader_epoch, self.last_offset = leader_epoch, last_offset

    def __str__(self) -> str:
        return f"write {self.name}"


@dataclass(slots=True, kw_only=True)
class Read:
    """One read.

    Attributes:
        node_id: where it is asked.
        floor: the end of what was promised to anybody before it began: it must see all below.
        outcome: "", "answered" or "refused".
        seen: the end of what it saw.
    """

    number: int
    node_id: int
    floor: int
    begun_ms: float
    outcome: str = ""
    seen: int = -1

    def __str__(self) -> str:
        return f"read {self.number} at {self.node_id}, which must see all below {self.floor}"


@dataclass(slots=True)
class Clients:
    """All of them.

    Attributes:
        leader_id: whom they take for the leader.
        waiting: reads without an outcome.
    """

    world: "World"
    random: Random
    leader_id: int = -1
    waiting: dict[int, Read] = field(default_factory=dict)
    numbers: int = 0

    def run(self) -> None:
        """They begin, and never end."""
        self._write_on()
        self._read_on()

    def write(self, node_id: int, records: int, name: str = "") -> Write:
        """Writes at a node."""
        world = self.world
        encoded, content = world.writings.write(records)
        self.numbers += 1
        write = Write(name=name or f"w{self.numbers}", encoded=encoded, records=records, content=content)
        self._submit(write, node_id)
        return write

    def read(self, node_id: int) -> Read | None:
        """Reads at a node; None when it is down."""
        world = self.world
        process = world.nodes[node_id].process
        if process is None:
            return None
        self.numbers += 1
        read = Read(number=self.numbers, node_id=node_id, floor=world.ledger.promised, begun_ms=world.clock.now_ms)
        self.waiting[read.number] = read
        world.tell(node_id, "reads", read)
        process.give(self._read_at, process, read)
        return read

    # What processes tell

    def not_leader(self, write: Write, leader_id: int) -> None:
        """The node that was asked does not lead."""
        self.world.count("writes refused")
        write.hops += 1
        if write.hops < HOPS_MAX and leader_id >= 0:
            self.leader_id = leader_id
            self.world.clock.after(1, self._submit, write, leader_id)
        else:
            self.leader_id = -1

    def committed(self, process: "Process", write: Write) -> None:
        """A leader has committed it: the client is told."""
        write.acknowledged = True
        self.leader_id = process.node_id
        self.world.ledger.acknowledged(process, write)

    def answered(self, process: "Process", read: Read) -> None:
        """A node answers a read from its state."""
        if self.waiting.pop(read.number, None) is None:
            return
        read.outcome, read.seen = "answered", process.machine.next_offset
        self.world.ledger.read_answered(process, read)

    # Steps of a read

    def _read_at(self, process: "Process", read: Read) -> None:
        leader_id = process.replica.leader_id
        if leader_id == process.node_id:
            process.give(process.confirm, partial(self._told, process, process, read))
        elif leader_id < 0 or not self.world.network.send(
            process.node_id, leader_id, self._ask, leader_id, process, read
        ):
            self._refused(read)

    def _ask(self, leader_id: int, asker: "Process", read: Read) -> None:
        leader = self.world.nodes[leader_id].process
        if leader is not None:
            leader.give(leader.confirm, partial(self._told, leader, asker, read))

    def _told(self, leader: "Process", asker: "Process", read: Read, told: ReadConfirmed | None) -> None:
        if told is None:
            self._refused(read)
            return
        self.world.ledger.read_confirmed(leader, read, told)
        if leader is asker:
            asker.read(told.high_watermark, read)
        else:
            self.world.network.send(leader.node_id, asker.node_id, self._confirmed, asker, read, told.high_watermark)

    def _confirmed(self, asker: "Process", read: Read, high_watermark: int) -> None:
        asker.read(high_watermark, read)

    def _refused(self, read: Read) -> None:
        if self.waiting.pop(read.number, None) is not None:
            read.outcome = "refused"
            self.world.count("reads refused")
            self.world.tell(read.node_id, "refuses", read)

    # Loops

    def _write_on(self) -> None:
        world, random = self.world, self.random
        world.clock.after(random.expovariate(1.0) * world.weather.write_ms, self._write_on)
        if world.at_rest:
            return
        node_id = self.leader_id if self.leader_id >= 0 and random.random() < 0.8 else random.choice(world.voters)
        for _ in range(random.randint(2, 6) if random.random() < world.weather.burst else 1):
            self.write(node_id, random.choice((1, 1, 2, 3)))

    def _read_on(self) -> None:
        world, random = self.world, self.random
        world.clock.after(random.expovariate(1.0) * world.weather.read_ms, self._read_on)
        if world.at_rest:
            return
        deposed = world.deposed if random.random() < 0.7 else []
        self.read(random.choice(deposed or world.members))

    def _submit(self, write: Write, node_id: int) -> None:
        process = self.world.nodes[node_id].process
        if process is None:
            self.leader_id = -1
            return
        process.give(process.propose, write)
