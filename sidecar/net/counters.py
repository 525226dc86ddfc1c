"""What the hot path counts, as plain numbers; `sidecar.net.metrics` turns them into metrics when somebody asks."""

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import Final

BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds."""

SIDES: Final = ("client", "broker")
DECISIONS: Final = frozenset({"plain", "silent", "write", "forward", "route", "hold", "unproven", "local"})
OUTCOMES: Final = frozenset({"proven", "freshest", "stale", "error", "close", "client_left"})
CAUSES: Final = frozenset(
    {
        # clients: they ended it, or we did, and why
        "client_closed", "client_reset", "truncated", "malformed", "oversized", "tls_hello", "tls_alert", "http",
        "plain", "unsupported_version", "too_many_connections", "too_many_held", "wait_timeout", "no_node_port",
        "drained", "shutdown",
        # clients, because of a broker
        "no_broker", "broker_closed", "broker_reset", "broker_left", "broker_malformed", "broker_unreachable",
        "broker_stalled",
        # brokers
        "ours", "closed", "connect", "login", "negotiation", "protocol", "resolve", "timeout", "tls",
        "versions",
    }
)  # fmt: skip
"""Why connections end and probes fail."""


class Histogram:
    """Observations by bucket; the last one has no upper bound."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one observation."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def observe_nothing(self, times: int) -> None:
        """Counts observations of no time at all."""
        self.counts[0] += times

    def add(self, other: "Histogram") -> None:
        """Counts all that ``other`` has counted."""
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def cumulative(self) -> list[int]:
        """For each upper bound, and at last for none, how many observations were not above it."""
        return list(accumulate(self.counts))


class Counters:
    """All counters and histograms of one sidecar.

    Attributes:
        requests: by (API key, decision of `DECISIONS`).
        holds: by (API key, why, outcome of `OUTCOMES`).
        prevented: by API key: the least-loaded broker was known to be behind what the session had seen.
        probe_failures: by (node id, cause of `CAUSES`).
        opened: by side.
        closed: by (side, cause of `CAUSES`).
        bytes: by (side, direction).
        client_connections: open now.
        broker_connections: open now, by node id: those of clients and the sidecar's own.
        passed_seconds: by API key, of plain requests whose answers passed as they came: all of it their brokers' time.
        request_seconds: by API key, of all others; theirs are split into `held_seconds`, `upstream_seconds`,
            `sidecar_seconds` and the time in line.
        head_of_line_seconds: how long requests and answers waited for an earlier one; only those that did.
        internal_errors: exceptions that nobody expected.
    """

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[int, str], int] = defaultdict(int)
        self.holds: defaultdict[tuple[int, str, str], int] = defaultdict(int)
        self.prevented: defaultdict[int, int] = defaultdict(int)
        self.probe_failures: defaultdict[tuple[int, str], int] = defaultdict(int)
        self.opened: defaultdict[str, int] = defaultdict(int)
        self.closed: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.bytes: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.client_connections = 0
        self.broker_connections: defaultdict[int, int] = defaultdict(int)
        self.passed_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.request_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.held_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.upstream_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.sidecar_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.head_of_line_seconds = Histogram()
        self.internal_errors = 0
