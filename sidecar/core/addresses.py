"""Addresses: one port for each node, and how answers that name brokers come to name the sidecar (proxying.md 1 and 2).

Node ids stay what they are; only host and port change. A port means one node for ever: ApiVersions v5 checks it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sidecar.core.ids import NodeId


class PortsExhausted(Exception):
    """The range of node ports has no port left for a node."""


class NodePorts:
    """The node ports of one listener.

    Node id n takes the first port + n - 1 if that is in range and unassigned, else the next unassigned one; ids in
    ascending order. An assigned port is never given to another node.

    Args:
        first, last: the range, inclusive.
        advertised_host: what clients are told.
        advertised_first: the first port that clients are told, where a port mapping lies between; None: the same.
        remembered: assignments of an earlier run; those outside the range are forgotten.
    """

    def __init__(
        self,
        first: int,
        last: int,
        *,
        advertised_host: str,
        advertised_first: int | None = None,
        remembered: Mapping[NodeId, int] | None = None,
    ) -> None:
        self.advertised_host = advertised_host
        self._range = range(first, last + 1)
        self._shift = 0 if advertised_first is None else advertised_first - first
        self._ports = {node_id: port for node_id, port in (remembered or {}).items() if port in self._range}

    def assign(self, node_ids: Iterable[NodeId]) -> dict[NodeId, int]:
        """Gives every node a port that has none yet; returns the new assignments.

        Raises:
            PortsExhausted: the nodes that got one have kept it.
        """
        given: dict[NodeId, int] = {}
        for node_id in sorted(set(node_ids) - self._ports.keys()):
            given[node_id] = self._ports[node_id] = self._free(node_id)
        return given

    def port(self, node_id: NodeId) -> int | None:
        """Where the sidecar listens for this node; None if it has no port."""
        return self._ports.get(node_id)

    def advertised(self, node_id: NodeId) -> tuple[str, int] | None:
        """Where clients find this node; None if it has no port."""
        port = self._ports.get(node_id)
        return None if port is None else (self.advertised_host, port + self._shift)

    @property
    def assigned(self) -> Mapping[NodeId, int]:
        """All assignments, to be remembered."""
        return self._ports

    def _free(self, node_id: NodeId) -> int:
        taken = set(self._ports.values())
        preferred = self._range.start + node_id - 1
        if preferred in self._range and preferred not in taken:
            return preferred
        for port in self._range:
            if port not in taken:
                return port
        raise PortsExhausted


def rewrite_brokers(brokers: list[dict[str, Any]], id_field: str, ports: NodePorts) -> list[dict[str, Any]]:
    """The brokers of an answer, each at its port; those without a port are left out.

    A client forgets every broker that an answer omits, so if none has a port there is no answer: `PortsExhausted`.
    """
    kept = [broker for broker in brokers if _rewrite(broker, broker[id_field], ports)]
    if brokers and not kept:
        raise PortsExhausted
    return kept


def rewrite_endpoints(endpoints: Iterable[dict[str, Any]], ports: NodePorts) -> list[dict[str, Any]]:
    """The NodeEndpoints of an answer that names new leaders, each at its port; those without one are left out."""
    return [endpoint for endpoint in endpoints if _rewrite(endpoint, endpoint["node_id"], ports)]


def rewrite_coordinators(
    coordinators: list[dict[str, Any]], ports: NodePorts, not_available: int
) -> list[dict[str, Any]]:
    """The coordinators of an answer. Node id -1 or a port of 0 and below means "none" and stays.

    Args:
        not_available: the retriable error for a coordinator without a port.
    """
    for coordinator in coordinators:
        if coordinator["node_id"] < 0 or coordinator["port"] <= 0:
            continue
        if not _rewrite(coordinator, coordinator["node_id"], ports):
            coordinator.update(node_id=-1, host="", port=-1, error_code=not_available)
    return coordinators


def _rewrite(entry: dict[str, Any], node_id: int, ports: NodePorts) -> bool:
    at = ports.advertised(NodeId(node_id))
    if at is None:
        return False
    entry["host"], entry["port"] = at
    return True
