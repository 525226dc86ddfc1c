"""Scripts that read like a story: one sentence a line, each an order or an expectation; prose after `#`.

    3 voters, 1 observer                      the first line: all start, the network is quick and loses nothing
    nodes stand in the order 1 2 3            their election time-outs are fixed, and each differs
    1 and 2 stand together                    two alike, and all others later
    1 is hasty                                its fetch timeout is half as long
    2 s pass                                  time
    1 leads epoch 2                           waits for it, up to 20 s
    1 is cut off | is cut off but hears | is cut off but is heard | is back
    from 1 to 2 takes 6 s                     for what is sent from now on
    1 crashes | starts | pauses | wakes | resigns | makes a snapshot
    write a b at 1                            one record each, and each is acknowledged
    1 is given a b                            nothing is waited for
    read at 3: a b                            answered within 20 s, with exactly this
    a read begins at 1                        nothing is waited for
    read at 1: nothing                        begins; no answer within 5 s, or it is refused
    state of 1: a b                           what it has applied; waits for it
    state of 1 is now: a b                    does not wait
    log of 1: a b                             all records, committed or not
    1 is in state Follower, epoch 2           waits for it
    1 is now in state Follower, epoch 2       does not wait
    1 has done: cut the log                   somewhere in its story since the script began
    1 has not done: append                    nowhere

The words of a record are its name; a record that is written has to have one of its own.
"""

import re
from collections.abc import Callable
from typing import Final

from tests.simulation.quorum.clients import Write
from tests.simulation.quorum.process import Process
from tests.simulation.quorum.story import words
from tests.simulation.quorum.weather import Kind, Weather
from tests.simulation.quorum.world import World

PATIENCE_MS: Final = 20_000.0
SILENCE_MS: Final = 5_000.0
NUMBER_BYTES: Final = 8

Sentence = tuple[re.Pattern[str], Callable[..., None]]
SENTENCES: Final[list[Sentence]] = []


def sentence(pattern: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers what a sentence means; its groups are the arguments."""

    def register(meaning: Callable[..., None]) -> Callable[..., None]:
        SENTENCES.append((re.compile(pattern), meaning))
        return meaning

    return register


class Script:
    """One script that runs; see the module."""

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self.world = World(_weather(0, 0))
        self.back: dict[int, list[Callable[[], None]]] = {}

    def run(self, text: str) -> World:
        """Reads the sentences in order.

        Raises:
            AssertionError: One does not come true, or no such sentence is known; names its line.
        """
        for number, line in enumerate(text.splitlines(), 1):
            said = line.split("#")[0].strip()
            if not said:
                continue
            self.world.tell(0, "script", said)
            try:
                self._mean(said)
            except AssertionError as error:
                error.add_note(f"line {number}: {said}\n\n{self.world.story}")
                raise
        return self.world

    def _mean(self, said: str) -> None:
        for pattern, meaning in SENTENCES:
            found = pattern.fullmatch(said)
            if found:
                meaning(self, *found.groups())
                return
        raise AssertionError(f"no sentence of this language: {said}")

    def process(self, node: str) -> Process:
        """The process of a node that must be up."""
        process = self.world.nodes[int(node)].process
        assert process is not None, f"{node} is down"
        return process

    def until(self, reached: Callable[[], bool], otherwise: Callable[[], str]) -> None:
        """Waits."""
        assert self.world.run_until(reached, PATIENCE_MS, step_ms=5.0), otherwise()

    def text(self, content: bytes | bytearray) -> str:
        """The names of the records in a content."""
        return " ".join(
            self.names[bytes(content[at : at + NUMBER_BYTES])] for at in range(0, len(content), NUMBER_BYTES)
        )

    def log(self, node: str) -> str:
        """The names of the records in a log."""
        files = self.world.nodes[int(node)].disk.live
        return self.text(b"".join(map(self.world.writings.read, files.log)))

    def write(self, node: str, names: str) -> list[Write]:
        """One batch for each name."""
        writes = []
        for name in names.split():
            assert name not in self.names.values(), f"{name} has been written"
            write = self.world.clients.write(int(node), 1, name)
            self.names[write.content] = name
            writes.append(write)
        return writes


@sentence(r"(\d) voters(?:, (\d) observers?)?")
def _begin(script: Script, voters: str, observers: str | None) -> None:
    story = script.world.story
    script.world = World(_weather(int(voters), int(observers or 0)))
    script.world.story = story


@sentence(r"nodes stand in the order (.+)")
def _order(script: Script, nodes: str) -> None:
    order = [int(node) for node in nodes.split()]
    _stand(script, {node: 0.9 * place / (len(order) - 1) for place, node in enumerate(order)})


@sentence(r"(\d+) and (\d+) stand together")
def _together(script: Script, one: str, two: str) -> None:
    _stand(script, dict.fromkeys(script.world.voters, 0.9) | {int(one): 0.0, int(two): 0.0})


@sentence(r"(\d+) is hasty")
def _hasty(script: Script, node: str) -> None:
    script.world.nodes[int(node)].patience = 0.5


@sentence(r"([\d.]+) s pass")
def _pass(script: Script, seconds: str) -> None:
    script.world.run(float(seconds) * 1000)


@sentence(r"(\d+) leads epoch (\d+)")
def _leads(script: Script, node: str, epoch: str) -> None:
    _in_state(script, node, "Leader", epoch)


@sentence(r"(\d+) is cut off(?: but (hears|is heard))?")
def _cut_off(script: Script, node: str, but: str | None) -> None:
    undo = script.world.isolate(int(node), hears=but == "hears", is_heard=but == "is heard")
    script.back.setdefault(int(node), []).append(undo)


@sentence(r"(\d+) is back")
def _back(script: Script, node: str) -> None:
    for undo in script.back.pop(int(node)):
        undo()


@sentence(r"from (\d+) to (\d+) takes ([\d.]+) s")
def _takes(script: Script, source: str, target: str, seconds: str) -> None:
    script.world.network.detours[int(source), int(target)] = float(seconds) * 1000


@sentence(r"(\d+) (crashes|starts|pauses|wakes)")
def _fault(script: Script, node: str, what: str) -> None:
    world = script.world
    faults = {"crashes": world.crash, "starts": world.restart, "pauses": world.pause, "wakes": world.wake}
    faults[what](int(node))


@sentence(r"(\d+) resigns")
def _resigns(script: Script, node: str) -> None:
    process = script.process(node)
    process.give(process.resign)


@sentence(r"(\d+) makes a snapshot")
def _snapshot(script: Script, node: str) -> None:
    script.process(node).make_snapshot()


@sentence(r"write (.+) at (\d+)")
def _write(script: Script, names: str, node: str) -> None:
    writes = script.write(node, names)
    script.until(lambda: all(write.acknowledged for write in writes), lambda: f"{names}: not acknowledged")


@sentence(r"(\d+) is given (.+)")
def _give(script: Script, node: str, names: str) -> None:
    script.write(node, names)


@sentence(r"a read begins at (\d+)")
def _read_begins(script: Script, node: str) -> None:
    script.world.clients.read(int(node))


@sentence(r"read at (\d+): ?(.*)")
def _read(script: Script, node: str, expected: str) -> None:
    read = script.world.clients.read(int(node))
    assert read is not None, f"{node} is down"
    if expected == "nothing":
        script.world.run(SILENCE_MS)
        assert read.outcome != "answered", f"{node} answered"
        return
    script.until(lambda: read.outcome == "answered", lambda: f"no answer, but {read.outcome or 'silence'}")
    seen = script.text(script.process(node).machine.content)
    assert seen == expected, f"{node} showed {seen}"


@sentence(r"state of (\d+): ?(.*)")
def _state(script: Script, node: str, expected: str) -> None:
    def state() -> str:
        return script.text(script.process(node).machine.content)

    script.until(lambda: state() == expected, lambda: f"the state of {node} is: {state()}")


@sentence(r"state of (\d+) is now: ?(.*)")
def _state_now(script: Script, node: str, expected: str) -> None:
    state = script.text(script.process(node).machine.content)
    assert state == expected, f"the state of {node} is: {state}"


@sentence(r"log of (\d+): ?(.*)")
def _log(script: Script, node: str, expected: str) -> None:
    script.until(lambda: script.log(node) == expected, lambda: f"the log of {node} is: {script.log(node)}")


@sentence(r"(\d+) is in state (\w+), epoch (\d+)")
def _in_state(script: Script, node: str, state: str, epoch: str) -> None:
    def is_so() -> bool:
        replica = script.process(node).replica
        return replica.state == state and replica.leader_epoch == int(epoch)

    script.until(is_so, lambda: _states(script))


@sentence(r"(\d+) is now in state (\w+), epoch (\d+)")
def _in_state_now(script: Script, node: str, state: str, epoch: str) -> None:
    replica = script.process(node).replica
    assert (replica.state, replica.leader_epoch) == (state, int(epoch)), _states(script)


@sentence(r"(\d+) has (not )?done: (.+)")
def _done(script: Script, node: str, negated: str | None, what: str) -> None:
    told = [f"{kind} {words(thing)}" for _, who, kind, thing in script.world.story.lines if who == int(node)]
    assert any(what in line for line in told) is (negated is None), f"{node}: {what}{'' if negated else ' is missing'}"


def _stand(script: Script, jitter: dict[int, float]) -> None:
    """All start anew, with these times."""
    script.world.jitter = jitter
    for node in jitter:
        script.world.crash(node)
        script.world.restart(node)


def _states(script: Script) -> str:
    return ", ".join(
        f"{p.node_id}: {p.replica.state} in epoch {p.replica.leader_epoch}" for p in script.world.processes
    )


def _weather(voters: int, observers: int) -> Weather:
    return Weather(
        seed=0,
        kind=Kind.CALM,
        voters=voters,
        observers=observers,
        delay_ms=(1.0, 1.0),
        loss=0.0,
        duplicates=0.0,
        stragglers=0.0,
        stalls=0.0,
        sync_ms=(1.0, 1.0),
        fault_ms=(1.0, 1.0),
        length_ms=(1.0, 1.0),
        rates=(1.0, 1.0),
        snapshot_records=1_000_000,
        segment_batches=1,
        fetch_max_bytes=100_000,
        snapshot_max_bytes=20,
        election_timeout_ms=1000,
        fetch_timeout_ms=2000,
        product_disks=True,
        uneven=False,
        vote_crashes=0.0,
        retry_backoff_ms=20,
        write_ms=100.0,
        read_ms=100.0,
        burst=0.0,
        fail_fast=1.0,
    )
