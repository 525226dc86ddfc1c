"""Two ways to the same Kafka, straight and through the sidecar, so that one script can be run on both and compared.

A script does with a real client what an application does and returns what it saw as plain data, in which every broker
address has become the node that this way promises at it. What differs between two runs, then, is the way's doing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.support.address import Address
from tests.support.kafka import KafkaCluster
from tests.support.sidecar import SidecarProcess

RECORDS = 10_000
PARTITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How clients reach Kafka.

    Attributes:
        name: for topics, groups and messages of failed assertions.
        bootstrap: `bootstrap.servers`.
        nodes: node id to the one address at which clients may be told to find it.
        settle: to be called between a write and the read that shall show it. Waits for every broker on the way
            without the sidecar; does nothing on the other, for there a read is never stale.
        settle_access: the same after a write that brokers act upon, such as that of an ACL.
    """

    name: str
    bootstrap: str
    nodes: Mapping[int, Address]
    settle: Callable[[], None]
    settle_access: Callable[[], None]

    def place(self, node_id: int, host: str, port: int) -> str:
        """`node 1` if that is where this way has node 1, else what was said of it."""
        return f"node {node_id}" if self.nodes.get(node_id) == (host, port) else f"{node_id} at {host}:{port}"

    @property
    def places(self) -> list[str]:
        """What a client shall see as the brokers of the cluster."""
        return [f"node {node_id}" for node_id in sorted(self.nodes)]


def partition_of(index: int) -> int:
    """Where record `index` belongs."""
    return index % PARTITIONS


def value_of(index: int) -> bytes:
    """What record `index` holds."""
    return f"value-{index}".encode()


def assignment() -> dict[int, list[int]]:
    """The replicas of a topic with one partition led by each of three brokers."""
    return {partition: [partition + 1, (partition + 1) % 3 + 1] for partition in range(PARTITIONS)}


def both_ways(kafka: KafkaCluster, sidecar: SidecarProcess) -> tuple[Way, Way]:
    """Straight to a cluster, and to it through a sidecar."""
    direct = Way(
        name="direct",
        bootstrap=kafka.bootstrap,
        nodes=kafka.brokers,
        settle=kafka.wait_caught_up,
        settle_access=lambda: kafka.wait_caught_up(effective=True),
    )
    through = Way(
        name="sidecar",
        bootstrap=str(sidecar.bootstrap),
        nodes=sidecar.nodes,
        settle=lambda: None,
        settle_access=lambda: None,
    )
    return direct, through
