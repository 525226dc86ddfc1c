"""Counts of a workload: reads, stale answers, errors and latencies for each kind of write and each node. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.workload.exchange import Judgement, Verdict


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the reads of one kind through one node showed, or a sum of such.

    Attributes:
        reads: answered or not.
        stale: answers without the write.
        errors: causes, counted.
        latencies_ms: of the answers that were no errors.
    """

    reads: int = 0
    stale: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def stale_share(self) -> float:
        """Stale answers out of all answers, 0 to 1; 0 if there are none."""
        return self.stale / len(self.latencies_ms) if self.latencies_ms else 0.0

    def count(self, judgement: Judgement, latency_ms: float) -> None:
        """Enter one read."""
        self.reads += 1
        if judgement.verdict is Verdict.ERROR:
            self.errors[judgement.cause] += 1
            return
        self.stale += judgement.verdict is Verdict.STALE
        self.latencies_ms.append(latency_ms)

    def add(self, other: "Tally") -> None:
        """Enter everything of another tally."""
        self.reads += other.reads
        self.stale += other.stale
        self.errors.update(other.errors)
        self.latencies_ms.extend(other.latencies_ms)


@dataclass(slots=True, kw_only=True)
class Result:
    """What a run showed.

    Attributes:
        tallies: (kind, node id) to its counts.
        writes: kind to its acknowledged writes.
        write_errors: (kind, cause) to how often; the reads of such a round are left out.
    """

    tallies: dict[tuple[str, int], Tally] = field(default_factory=lambda: defaultdict(Tally))
    writes: Counter[str] = field(default_factory=Counter)
    write_errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    def total(self, kind: str | None = None, node_id: int | None = None) -> Tally:
        """The sum over all that has this kind and this node; None means any."""
        total = Tally()
        for (its_kind, its_node), tally in self.tallies.items():
            if kind in (None, its_kind) and node_id in (None, its_node):
                total.add(tally)
        return total

    @property
    def kinds(self) -> list[str]:
        """The kinds that were read, in order."""
        return list(dict.fromkeys(kind for kind, _ in self.tallies))

    def table(self) -> str:
        """For people: one line for each kind and node."""
        rows = [("kind", "node", "reads", "stale", "errors", "p50 ms", "p99 ms", "causes")]
        for (kind, node), tally in self.tallies.items():
            causes = ", ".join(f"{cause} {count}" for cause, count in tally.errors.most_common())
            p50, p99 = (f"{percentile(tally.latencies_ms, share):.1f}" for share in (50, 99))
            rows.append(
                (kind, str(node), str(tally.reads), str(tally.stale), str(tally.errors.total()), p50, p99, causes)
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines += [f"write failed: {kind}: {cause} {count}" for (kind, cause), count in self.write_errors.items()]
        return "\n".join(lines)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least `share` percent do not exceed; not a number if there are none.

    Args:
        values: in any order.
        share: above 0, at most 100.
    """
    if not 0 < share <= 100:
        raise ValueError(f"share must be above 0 and at most 100, got {share}")
    if not values:
        return math.nan
    return sorted(values)[math.ceil(len(values) * share / 100) - 1]
