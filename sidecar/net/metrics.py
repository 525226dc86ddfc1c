"""Metrics in Prometheus' form, made from plain numbers when somebody asks.

Nothing here runs on the hot path. Every label value is a node id or from a closed set: what the sets of `counters` do
not contain is counted as `other`, API keys that Kafka 4.4 does not know as `Unknown`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from sidecar.core.apis import GATED_READS, api_name
from sidecar.core.bounds import Why
from sidecar.core.ids import UNKNOWN_OFFSET
from sidecar.core.sidecar import Sidecar
from sidecar.net import reports
from sidecar.net.counters import BUCKETS, CAUSES, DECISIONS, OUTCOMES, SIDES, Counters, Histogram

_LES: Final = (*map(floatToGoString, BUCKETS), "+Inf")
_WHYS: Final = frozenset(why.value for why in Why)
Values = Mapping[tuple[str, ...], float]


class SidecarCollector(Collector):
    """All metrics of one sidecar.

    Args:
        now_ms: the clock of the core.
        portless: how many brokers have no node port on some listener.
    """

    def __init__(
        self, core: Sidecar, counters: Counters, *, now_ms: Callable[[], float], portless: Callable[[], int]
    ) -> None:
        self._core = core
        self._counters = counters
        self._now_ms = now_ms
        self._portless = portless

    def collect(self) -> Iterator[Metric]:
        """Every metric with its present value."""
        yield InfoMetricFamily("tidegate_build", "The version that runs.", {"version": version("tidegate")})
        yield from self._brokers()
        yield from self._head()
        yield from self._connections()
        yield from self._counts()
        yield from self._times()

    def _brokers(self) -> Iterator[Metric]:
        core, now_ms = self._core, self._now_ms()
        cluster = core.cluster
        brokers = {str(node_id): broker for node_id, broker in sorted(cluster.view.brokers.items())}
        lags = {node: reports.lag_records(cluster, broker.node_id) for node, broker in brokers.items()}
        yield _by_node(
            "broker_visible_offset",
            "Offset of the metadata image that the broker shows.",
            {node: b.visible for node, b in brokers.items() if b.visible != UNKNOWN_OFFSET},
        )
        yield _by_node(
            "broker_effective_offset",
            "Offset up to which the broker has acted upon its metadata.",
            {node: b.effective for node, b in brokers.items() if b.effective != UNKNOWN_OFFSET},
        )
        yield _by_node(
            "broker_lag_records",
            "Records between the head of the metadata log and what the broker shows.",
            {node: lag for node, lag in lags.items() if lag is not None},
        )
        yield _by_node(
            "broker_lag_seconds",
            "Time since the head was first known to be above what the broker shows; 0 when level.",
            {node: cluster.lag_ms(b.node_id, now_ms) / 1000 for node, b in brokers.items()},
        )
        yield _by_node(
            "broker_in_flight",
            "Requests of this sidecar that the broker has not answered.",
            {node: cluster.loads[b.node_id].in_flight for node, b in brokers.items()},
        )
        yield _by_node(
            "broker_up", "Whether the broker answers probes.", {node: int(b.up) for node, b in brokers.items()}
        )
        yield _by_node(
            "broker_probe_age_seconds",
            "Time since the broker last answered a probe.",
            {str(node_id): (now_ms - at_ms) / 1000 for node_id, at_ms in sorted(cluster.probed_ms.items())},
        )

    def _head(self) -> Iterator[Metric]:
        cluster = self._core.cluster
        head = cluster.view.head
        known = [] if head is None else [head]
        yield _gauge("head_offset", "Offset of the last committed metadata record.", [h.offset for h in known])
        yield _gauge(
            "head_leader_epoch",
            "Epoch of the controller that confirmed the head; -1 when unknown.",
            [h.leader_epoch for h in known],
        )
        yield _gauge(
            "head_age_seconds",
            "Time since the head was last confirmed.",
            [(self._now_ms() - cluster.head_ms) / 1000 for _ in known],
        )
        yield _gauge("guarantee", "What is promised: 1 full, 0.5 degraded, 0 none.", [cluster.guarantee()[0].value])

    def _connections(self) -> Iterator[Metric]:
        core, counters = self._core, self._counters
        yield _gauge("held_requests", "Reads that wait for a broker to catch up.", [len(core.gate.held)])
        yield _gauge("sessions", "Sessions remembered.", [len(core.sessions)])
        yield _gauge("client_connections", "Open connections of clients.", [counters.client_connections])
        yield _by_node(
            "broker_connections",
            "Open connections to the broker, of clients and of the sidecar itself.",
            {str(node_id): count for node_id, count in sorted(counters.broker_connections.items())},
        )
        yield _gauge("brokers_without_port", "Brokers that no client can reach here.", [self._portless()])

    def _counts(self) -> Iterator[Metric]:
        counters = self._counters
        yield _counter(
            "requests",
            "Requests by API and decision; a held one is counted again when it goes.",
            ("api", "decision"),
            _summed(
                ((api_name(key), _closed(decision, DECISIONS)), n) for (key, decision), n in counters.requests.items()
            ),
        )
        yield _counter(
            "holds",
            "Reads that were held, by what they waited for and how it ended.",
            ("api", "why", "outcome"),
            _summed(
                ((api_name(key), _closed(why, _WHYS), _closed(outcome, OUTCOMES)), n)
                for (key, why, outcome), n in counters.holds.items()
            ),
        )
        prevented: dict[tuple[str, ...], float] = {(api_name(key),): 0.0 for key in sorted(GATED_READS)}
        prevented |= {(api_name(key),): n for key, n in counters.prevented.items()}
        yield _counter(
            "stale_reads_prevented",
            "Reads whose least loaded broker was behind what the session had seen.",
            ("api",),
            prevented,
        )
        yield _counter(
            "probe_failures",
            "Probes and probe connections that failed.",
            ("node_id", "cause"),
            _summed(((str(node), _closed(cause, CAUSES)), n) for (node, cause), n in counters.probe_failures.items()),
        )
        yield _counter(
            "connections_opened", "Connections that were opened, by side.", ("side",), _by_side(counters.opened)
        )
        yield _counter(
            "connections_closed",
            "Connections that ended, by side and cause.",
            ("side", "cause"),
            _summed(((side, _closed(cause, CAUSES)), n) for (side, cause), n in counters.closed.items()),
        )
        directions: dict[tuple[str, ...], float] = {(s, way): 0.0 for s in SIDES for way in ("in", "out")}
        yield _counter(
            "bytes", "Bytes received and sent, by side.", ("side", "direction"), directions | dict(counters.bytes)
        )
        yield _counter("internal_errors", "Exceptions that nobody expected.", (), {(): counters.internal_errors})

    def _times(self) -> Iterator[Metric]:
        counters = self._counters
        passed = counters.passed_seconds
        yield _histogram(
            "request_seconds", "Time from a request to its answer.", ("api",), _by_api(counters.request_seconds, passed)
        )
        yield _histogram("held_seconds", "Time that held reads waited.", ("api",), _by_api(counters.held_seconds))
        yield _histogram(
            "upstream_seconds",
            "Time that brokers took to answer.",
            ("api",),
            _by_api(counters.upstream_seconds, passed),
        )
        yield _histogram(
            "sidecar_seconds",
            "Time in the sidecar itself: neither held, nor with a broker, nor in line.",
            ("api",),
            _by_api(counters.sidecar_seconds, _nothing_of(passed)),
        )
        yield _histogram(
            "head_of_line_seconds",
            "Time that requests and answers waited for an earlier one of their connection; only those that did.",
            (),
            {(): counters.head_of_line_seconds},
        )


class Metrics:
    """The registry of one sidecar: its own metrics, and those of its process."""

    def __init__(self, collector: SidecarCollector) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format 0.0.4."""
        return generate_latest(self._registry)


def _closed(value: str, closed_set: frozenset[str]) -> str:
    return value if value in closed_set else "other"


def _summed(values: Iterable[tuple[tuple[str, ...], float]]) -> Values:
    """Values by their labels; several API keys may share a name."""
    total: Counter[tuple[str, ...]] = Counter()
    for labels, value in values:
        total[labels] += value  # type: ignore[assignment]
    return total


def _by_api(*parts: Mapping[int, Histogram]) -> Mapping[tuple[str, ...], Histogram]:
    merged: dict[tuple[str, ...], Histogram] = {}
    for histograms in parts:
        for api_key, histogram in histograms.items():
            merged.setdefault((api_name(api_key),), Histogram()).add(histogram)
    return merged


def _nothing_of(histograms: Mapping[int, Histogram]) -> Mapping[int, Histogram]:
    """As many observations, each of no time: what passes as it comes is on its way again within the same event."""
    nothing = {api_key: Histogram() for api_key in histograms}
    for api_key, histogram in histograms.items():
        nothing[api_key].observe_nothing(sum(histogram.counts))
    return nothing


def _by_side(values: Mapping[str, int]) -> Values:
    return {(side,): values.get(side, 0) for side in SIDES}


def _gauge(name: str, text: str, values: Iterable[float]) -> Metric:
    family = GaugeMetricFamily(f"tidegate_{name}", text)
    for value in values:
        family.add_metric([], value)
    return family


def _by_node(name: str, text: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"tidegate_{name}", text, labels=["node_id"])
    for node_id, value in values.items():
        family.add_metric([node_id], value)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    family = CounterMetricFamily(f"tidegate_{name}", text, labels=labels)
    for value_labels, value in values.items():
        family.add_metric(value_labels, value)
    return family


def _histogram(
    name: str, text: str, labels: tuple[str, ...], histograms: Mapping[tuple[str, ...], Histogram]
) -> Metric:
    family = HistogramMetricFamily(f"tidegate_{name}", text, labels=labels)
    for value_labels, histogram in histograms.items():
        family.add_metric(value_labels, list(zip(_LES, histogram.cumulative(), strict=True)), histogram.total)
    return family
