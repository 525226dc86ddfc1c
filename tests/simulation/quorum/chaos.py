"""Faults drawn from the seed, one after another and over each other; each ends by itself."""

from collections.abc import Callable
from random import Random

from tests.simulation.quorum.weather import FAULTS, Fault
from tests.simulation.quorum.world import World


class Chaos:
    """See the module; nothing begins once it is over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"chaos {world.weather.seed}")
        faults = FAULTS[world.weather.kind]
        self._faults, self._weights = list(faults), list(faults.values())
        self._over = False

    def begin(self) -> None:
        """Plans the first."""
        self._world.clock.after(self._random.uniform(*self._world.weather.fault_ms), self._next)

    def end(self) -> None:
        """Ends what goes on."""
        self._over = True
        self._world.heal()

    def _next(self) -> None:
        if self._over:
            return
        (fault,) = self._random.choices(self._faults, self._weights)
        world, random = self._world, self._random
        some = random.choice(world.members)
        leader = world.leader
        leader_id = random.choice(world.voters) if leader is None else leader.node_id
        world.count(f"fault {fault.value}")
        world.tell(0, "fault", fault.value)
        undo = self._strike(fault, some, leader_id)
        if undo is not None:
            world.clock.after(random.uniform(*world.weather.length_ms), self._undo, undo)
        self.begin()

    def _undo(self, undo: Callable[[], None]) -> None:
        if not self._over:
            undo()

    def _strike(self, fault: Fault, some: int, leader_id: int) -> Callable[[], None] | None:
        world, random = self._world, self._random
        others = [member for member in world.members if member != some]
        match fault:
            case Fault.RESIGN:
                process = world.nodes[leader_id].process
                if process is not None:
                    process.give(process.resign)
                return None
            case Fault.CRASH | Fault.CRASH_LEADER:
                return self._crash(some if fault is Fault.CRASH else leader_id)
            case Fault.CRASH_ALL:
                return self._each(world.members, world.crash, world.restart)
            case Fault.PAUSE | Fault.PAUSE_LEADER:
                return self._each([some if fault is Fault.PAUSE else leader_id], world.pause, world.wake)
            case Fault.CUT:
                other = random.choice(others)
                return world.cut([(some, other), (other, some)])
            case Fault.CUT_ONE_WAY:
                return world.cut([(some, random.choice(others))])
            case Fault.ISOLATE | Fault.ISOLATE_LEADER:
                hears, is_heard = random.choice(((False, False), (False, False), (True, False), (False, True)))
                who = some if fault is Fault.ISOLATE else leader_id
                return world.isolate(who, hears=hears, is_heard=is_heard)
            case Fault.SPLIT:
                here = set(random.sample(world.members, random.randint(1, len(world.members) - 1)))
                there = [member for member in world.members if member not in here]
                return world.cut([pair for one in sorted(here) for two in there for pair in ((one, two), (two, one))])
            case Fault.CLOCK:
                world.jump(some, random.choice((-500.0, 100.0, 1000.0, 5000.0)) * random.uniform(0.5, 1.5))
                return None
            case Fault.SLOW_DISK:
                return self._slow_disk(some if random.random() < 0.5 else leader_id)
            case Fault.STORM:
                return self._storm()

    @staticmethod
    def _each(many: list[int], begin: Callable[[int], None], end: Callable[[int], None]) -> Callable[[], None]:
        def undo() -> None:
            for node_id in many:
                end(node_id)

        for node_id in many:
            begin(node_id)
        return undo

    def _crash(self, node_id: int) -> Callable[[], None] | None:
        """Now, or in the middle of the next sync, when there is something to lose."""
        world, random = self._world, self._random
        if random.random() < 0.3:
            return self._each([node_id], world.crash, world.restart)
        length_ms = random.uniform(*world.weather.length_ms)

        def doom() -> None:
            world.crash(node_id)
            world.clock.after(length_ms, self._undo, lambda: world.restart(node_id))

        world.nodes[node_id].doomed = doom
        return None

    def _slow_disk(self, node_id: int) -> Callable[[], None]:
        node = self._world.nodes[node_id]
        node.slow_ms = self._random.choice((100.0, 500.0, 1500.0))

        def undo() -> None:
            node.slow_ms = 0.0

        return undo

    def _storm(self) -> Callable[[], None]:
        network = self._world.network
        network.storms += 1

        def undo() -> None:
            network.storms -= 1

        return undo
