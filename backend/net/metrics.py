"""What Prometheus reads of a cluster: positions of its brokers beside the head, read when it asks.

The names begin with `tidegate_backend_`: the sidecar's metrics tell what it has learnt of brokers, these what is so.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from backend.net.broker import Broker


class Cluster(Protocol):
    """What is measured."""

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """All brokers, running or not, by id."""
        ...

    @property
    def head_offset(self) -> int:
        """The offset of the last committed record."""
        ...


@final
class Metrics:
    """The metrics of one cluster as Prometheus text."""

    def __init__(self, cluster: Cluster) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_ClusterCollector(cluster))

    def text(self) -> bytes:
        """As of now."""
        return generate_latest(self._registry)


@final
class _ClusterCollector(Collector):
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def collect(self) -> Iterator[GaugeMetricFamily]:
        head = GaugeMetricFamily("tidegate_backend_head_offset", "Offset of the last committed metadata record.")
        head.add_metric([], self._cluster.head_offset)
        yield head
        serving = self._family("broker_serving", "Whether the broker accepts clients.")
        visible = self._family("broker_visible_offset", "Offset that reads of this broker show.")
        effective = self._family("broker_effective_offset", "Offset that this broker acts upon.")
        lag = self._family("broker_lag_records", "Committed records that reads of this broker do not show yet.")
        for node_id, broker in self._cluster.brokers.items():
            labels = [str(node_id)]
            serving.add_metric(labels, broker.is_serving)
            if broker.is_serving:
                publication = broker.publication
                visible.add_metric(labels, publication.offset)
                effective.add_metric(labels, publication.acting.highest_offset)
                lag.add_metric(labels, self._cluster.head_offset - publication.offset)
        yield from (serving, visible, effective, lag)

    @staticmethod
    def _family(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"tidegate_backend_{name}", text, labels=["node_id"])
