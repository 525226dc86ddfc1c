"""What the hot path counts, as plain numbers; `sidecar.net.metrics` turns them into metrics when somebody asks."""

from bisect import bisect_left
from collections import defaultdict
from typing import Final

BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds."""


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


class Counters:
    """All counters and histograms of one sidecar.

    Attributes:
        requests: by (API key, decision); decisions: plain, silent, write, forward, route, hold, unproven, local.
        holds: by (API key, why, outcome).
        prevented: by API key: the least-loaded broker was known to be behind what the session had seen.
        probe_failures: by (node id, cause).
        closed: by (side, cause).
        bytes: by (side, direction).
        client_connections: open now.
        broker_connections: open now, by node id: those of clients and the sidecar's own.
        request_seconds, held_seconds, upstream_seconds: by API key.
        head_of_line_seconds: how long finished answers waited for an earlier one.
    """

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[int, str], int] = defaultdict(int)
        self.holds: defaultdict[tuple[int, str, str], int] = defaultdict(int)
        self.prevented: defaultdict[int, int] = defaultdict(int)
        self.probe_failures: defaultdict[tuple[int, str], int] = defaultdict(int)
        self.closed: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.bytes: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.client_connections = 0
        self.broker_connections: defaultdict[int, int] = defaultdict(int)
        self.request_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.held_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.upstream_seconds: defaultdict[int, Histogram] = defaultdict(Histogram)
        self.head_of_line_seconds = Histogram()
