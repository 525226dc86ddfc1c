"""One seed, from the first election to the last check.

1  chaos: faults, clients that write and read
2  the faults end: within `PROGRESS_MS` there is a leader, all have caught up, and a write is acknowledged
3  enough must have happened: commits, elections, virtual time
4  a node is cut off, comes back, and disturbs nobody
5  clients rest: all states are the same
"""

from random import Random
from typing import Final

from tests.simulation.quorum.chaos import Chaos
from tests.simulation.quorum.clients import Read
from tests.simulation.quorum.story import LINES_MAX
from tests.simulation.quorum.weather import weather_of
from tests.simulation.quorum.world import World
from tests.simulation.story import Violation

CHAOS_MS: Final = 38_000.0
PROGRESS_MS: Final = 20_000.0
"""Within this, the quorum works again once the faults are over."""
CALM_MS: Final = 4_000.0
AWAY_MS: Final = 8_000.0
BACK_MS: Final = 6_000.0
VIRTUAL_MS: Final = 60_000.0
COMMITS: Final = 200
ELECTIONS: Final = 2


def run_seed(seed: int, lines_max: int | None = LINES_MAX) -> World:
    """Runs a seed; returns the world as it is at the end.

    Raises:
        Violation: An invariant does not hold; the story is in its notes.
    """
    world = World(weather_of(seed), lines_max)
    try:
        _run(world)
    except Exception as error:
        error.add_note(f"{world.story}\n\n{world.weather}\nreplay: python -m tests.simulation.quorum {seed}")
        raise
    return world


def _run(world: World) -> None:
    began_ms = world.clock.now_ms
    chaos = Chaos(world)
    chaos.begin()
    world.clients.run()
    world.run(CHAOS_MS)
    chaos.end()
    progress_resumes(world)
    while world.counts["commits"] < COMMITS or world.counts["elections"] < ELECTIONS:
        if world.counts["elections"] < ELECTIONS and world.leader is not None:
            world.leader.give(world.leader.resign)
        world.run(1000)
        progress_resumes(world)
    world.run(CALM_MS)
    returning_nodes_disturb_nobody(world)
    world.run(max(0.0, began_ms + VIRTUAL_MS - world.clock.now_ms))
    everything_comes_to_rest(world)
    world.counts["virtual ms"] += int(world.clock.now_ms - began_ms)


def progress_resumes(world: World) -> None:
    """Without faults there is a leader soon, and everybody follows; and what is written then, is acknowledged."""
    began_ms = world.clock.now_ms
    commits = world.counts["commits"]

    def resumed() -> bool:
        leader = world.leader
        if leader is None or world.counts["commits"] == commits:
            return False
        epoch, end = leader.replica.leader_epoch, world.ledger.end
        return len(world.processes) == len(world.members) and all(
            process.replica.leader_epoch == epoch
            and process.replica.leader_id == leader.node_id
            and process.machine.next_offset >= end - 20
            for process in world.processes
        )

    if not world.run_until(resumed, PROGRESS_MS):
        states = {p.node_id: (p.replica.state, p.replica.leader_epoch, p.machine.next_offset) for p in world.processes}
        raise Violation("progress_resumes", f"{PROGRESS_MS / 1000:.0f} s without faults, and the nodes are {states}")
    took_ms = int(world.clock.now_ms - began_ms)
    world.counts["longest way back ms"] = max(world.counts["longest way back ms"], took_ms)


def returning_nodes_disturb_nobody(world: World) -> None:
    """While a leader and a majority are well, a voter that was cut off, also in one direction, changes no epoch."""
    leader = world.leader
    assert leader is not None
    epoch = leader.replica.leader_epoch
    random = Random(f"return {world.weather.seed}")
    lone = random.choice([voter for voter in world.voters if voter != leader.node_id])
    world.at_rest = random.random() < 0.5
    join = world.isolate(lone, is_heard=random.random() < 0.5)
    world.run(AWAY_MS)
    join()
    world.run(BACK_MS)
    world.at_rest = False
    for process in world.processes:
        if process.replica.leader_epoch != epoch or process.replica.leader_id != leader.node_id:
            raise Violation(
                "returning_nodes_disturb_nobody",
                f"{leader.node_id} led epoch {epoch}; since {lone} came back, {process.node_id} is in epoch "
                f"{process.replica.leader_epoch} with leader {process.replica.leader_id}",
            )


def everything_comes_to_rest(world: World) -> None:
    """Clients rest: all reads are answered or refused, and all have the same log and state."""
    world.at_rest = True

    def late() -> list[Read]:
        return [read for read in world.clients.waiting.values() if read.begun_ms > world.well_since_ms]

    if not world.run_until(lambda: world.all_caught_up() and not late(), PROGRESS_MS):
        states = {p.node_id: (p.replica.state, p.high_watermark, p.machine.next_offset) for p in world.processes}
        raise Violation(
            "everything_comes_to_rest", f"the nodes are {states}; reads that wait: {list(map(str, late()))}"
        )
    world.ledger.all_states_are_the_same()
