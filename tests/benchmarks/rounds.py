"""Loads on several ways to a broker, in turns, round after round; the best round of each way counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tests.benchmarks.peers import LoadError, load
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
        answer_bytes_min: smaller answers say something else than what is measured.
    """

    name: str
    request: bytes
    connections: int
    in_flight: int
    answer_bytes_min: int = 0


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
    """The best figures of each way, by name of load and name of way.

    A round in which no answer came, as on a machine that stands still for a moment, counts for nothing.

    Raises:
        LoadError: No round of a load brought any on one of the ways, a connection broke, or answers
            were too small.
    """
    best: dict[str, dict[str, Best]] = {each.name: {} for each in loads}
    for _ in range(rounds):
        for each in loads:
            of_load = best[each.name]
            for name, way in ways.items():
                found = _once(way, each, seconds)
                if found is not None:
                    of_load[name] = of_load[name].or_better(found) if name in of_load else found
    for load_name, of_load in best.items():
        if missing := [name for name in ways if name not in of_load]:
            raise LoadError(f"{load_name}: no answer came through {', '.join(missing)}")
    return {load_name: {name: of_load[name] for name in ways} for load_name, of_load in best.items()}


def _once(way: Way, of: Load, seconds: float) -> Best | None:
    before_s = cpu_s(way.pid) if way.pid is not None else 0.0
    found = load(way.port, of.request, connections=of.connections, in_flight=of.in_flight, seconds=seconds)
    if found is None:
        return None
    if found.answer_bytes < of.answer_bytes_min:
        raise LoadError(f"{of.name}: answers of {found.answer_bytes:.0f} bytes, {of.answer_bytes_min} wanted")
    used_s = cpu_s(way.pid) - before_s if way.pid is not None else 0.0
    return Best(rate=found.rate, p50_us=found.p50_us, p99_us=found.p99_us, cpu_us=used_s / found.answers * 1e6)
