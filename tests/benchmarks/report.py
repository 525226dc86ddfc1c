"""Tables of figures: a line a load, a column a way, and at the end the sidecar's ratio to HAProxy beside its target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.benchmarks.rounds import Best
from tests.benchmarks.ways import DIRECT, SIDECAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the sidecar's ratio to another way must be.

    Attributes:
        against: the other way.
        ratio: by name of load; loads that are not named have no target.
        at_most: the ratio is a cost, not a rate.
    """

    against: str
    ratio: Mapping[str, float]
    at_most: bool = False


def table(
    title: str, best: Mapping[str, Mapping[str, Best]], figure: Callable[[Best], float], target: Target, form: str
) -> str:
    """A Markdown table of one figure. A way that is no process of its own has no costs, and an empty cell."""
    names = list(next(iter(best.values())))
    lines = [
        f"| {title} | {' | '.join(names)} | sidecar / {target.against} | target |",
        f"|---|{'---|' * len(names)}---|---|",
    ]
    for load, of_load in best.items():
        figures = {name: figure(found) for name, found in of_load.items()}
        cells = [format(value, form) if value else "" for value in figures.values()]
        lines.append(f"| {load} | {' | '.join(cells)} | {' | '.join(_compared(load, figures, target))} |")
    return "\n".join(lines)


def added(best: Mapping[str, Mapping[str, Best]]) -> dict[str, dict[str, Best]]:
    """The same with the latencies of the direct way taken off, and without that way."""
    return {
        load: {
            name: Best(
                rate=found.rate,
                p50_us=found.p50_us - of_load[DIRECT].p50_us,
                p99_us=found.p99_us - of_load[DIRECT].p99_us,
                cpu_us=found.cpu_us,
            )
            for name, found in of_load.items()
            if name != DIRECT
        }
        for load, of_load in best.items()
    }


def verdict(value: float, wanted: float, *, at_most: bool) -> str:
    """The target, and whether it is met."""
    met = value <= wanted if at_most else value >= wanted
    return f"{'<=' if at_most else '>='} {wanted} {'met' if met else 'MISSED'}"


def _compared(load: str, figures: Mapping[str, float], target: Target) -> tuple[str, str]:
    other = figures.get(target.against, 0.0)
    if other <= 0:
        # Added latency below nothing is noise: nothing compares with it.
        return "", ""
    ratio = figures[SIDECAR] / other
    wanted = target.ratio.get(load)
    return f"{ratio:.2f}", "" if wanted is None else verdict(ratio, wanted, at_most=target.at_most)
