"""What the workload counts on each way in, and what of it the demo tells. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, final

from tidegate.demo.changes import Seen

LATENCIES: Final = 5000
"""The median is that of so many reads, the latest."""


@final
@dataclass(slots=True, kw_only=True)
class Tally:
    """One way in.

    Attributes:
        reads: reads that got an answer which shows the change or does not.
        stale: those of them that do not show it.
        failed: reads and writes without an answer, or with an error for an answer; not among `reads`.
    """

    reads: int = 0
    stale: int = 0
    failed: int = 0
    _latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES))

    def count(self, seen: Seen, latency_ms: float) -> None:
        """One answered read that shows the change, or does not."""
        self.reads += 1
        self.stale += seen is Seen.STALE
        self._latencies_ms.append(latency_ms)

    @property
    def read_ms_p50(self) -> float | None:
        """Half of the reads took less; None before the first."""
        return median(self._latencies_ms) if self._latencies_ms else None

    @property
    def stale_percent(self) -> float:
        """Of the reads, how many were stale."""
        return 100 * self.stale / self.reads if self.reads else 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that is told, at one moment.

    Attributes:
        admin: `HOST:PORT` of the sidecar's admin listener.
    """

    direct: Tally
    sidecar: Tally
    seconds: float
    lag_ms: int
    admin: str

    def document(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "direct": _counts(self.direct),
            "sidecar": _counts(self.sidecar),
            "seconds": round(self.seconds, 1),
            "lag_ms": self.lag_ms,
            "read_ms_p50": {"direct": _rounded(self.direct.read_ms_p50), "sidecar": _rounded(self.sidecar.read_ms_p50)},
            "admin": self.admin,
        }


def _counts(tally: Tally) -> dict[str, int]:
    return {"reads": tally.reads, "stale": tally.stale, "failed": tally.failed}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
