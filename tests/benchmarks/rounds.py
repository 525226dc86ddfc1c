"""Loads on several ways to a broker, in turns, round after round; the best round of each way counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tests.benchmarks.peers import Found, load
from tests.benchmarks.processes import cpu_s
from tests.benchmarks.ways import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a client does.

    Attributes:
        name: of the line in a table.
        request: a whole frame.
        connections: how many.
        in_flight: requests on each that wait for an answer.
    """

    name: str
    request: bytes
    connections: int
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best figures of all rounds, each by itself.

    Attributes:
        rate: answers a second.
        p50_us, p99_us: how long an answer took.
        cpu_us: what an answer cost the process in between; 0 without one.
    """

    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float

    def or_better(self, other: Self) -> "Best":
        """Each figure from the better of both."""
        return Best(
            rate=max(self.rate, other.rate),
            p50_us=min(self.p50_us, other.p50_us),
            p99_us=min(self.p99_us, other.p99_us),
            cpu_us=min(self.cpu_us, other.cpu_us),
        )


def in_turns(
    ways: Mapping[str, Way], loads: Sequence[Load], *, rounds: int, seconds: float
) -> dict[str, dict[str, Best]]:
    """The best figures of each way, by name of load and name of way."""
    best: dict[str, dict[str, Best]] = {each.name: {} for each in loads}
    for _ in range(rounds):
        for each in loads:
            of_load = best[each.name]
            for name, way in ways.items():
                found = _once(way, each, seconds)
                of_load[name] = of_load[name].or_better(found) if name in of_load else found
    return best


def _once(way: Way, of: Load, seconds: float) -> Best:
    before_s = cpu_s(way.pid) if way.pid is not None else 0.0
    found: Found = load(way.port, of.request, connections=of.connections, in_flight=of.in_flight, seconds=seconds)
    used_s = cpu_s(way.pid) - before_s if way.pid is not None else 0.0
    return Best(rate=found.rate, p50_us=found.p50_us, p99_us=found.p99_us, cpu_us=used_s / found.answers * 1e6)
