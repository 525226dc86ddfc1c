"""What the admin listener and the log say of the sidecar: pure functions of the core's state, the node ports and now.

Rows are plain values, fit for JSON, with the field names of the public interface. Knows neither HTTP nor the loop.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from config.values import HostPort
from sidecar.core.addresses import NodePorts
from sidecar.core.apis import api_name
from sidecar.core.bounds import Bound
from sidecar.core.cluster import Cluster, HeadSource
from sidecar.core.holds import HeldRead
from sidecar.core.ids import UNKNOWN_OFFSET, NodeId, Offset
from sidecar.core.sessions import Session
from sidecar.core.sidecar import Sidecar
from sidecar.core.tokens import encode_token

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether clients should come here, and what they can be promised.

    Attributes:
        reasons: what is missing, or why the guarantee is not full; in words for whoever is paged.
        guarantee: full, degraded or none.
    """

    ready: bool
    reasons: tuple[str, ...]
    guarantee: str

    def row(self) -> Row:
        """For `/readyz`."""
        return {"ready": self.ready, "reasons": list(self.reasons), "guarantee": self.guarantee}


def readiness(
    cluster: Cluster, *, fault: str | None, unbound: Sequence[str], portless: Sequence[str], draining: bool
) -> Readiness:
    """Whether the sidecar is ready.

    Args:
        fault: why the cluster has not been described yet; None once it has.
        unbound: a text for every node port that could not be bound yet: clients would find nobody there.
        portless: a text for every broker that the range of node ports has no room for; it is left out of answers.
        draining: the sidecar is about to end.
    """
    guarantee, weaknesses = cluster.guarantee()
    blocking = ["draining"] if draining else []
    if fault is not None:
        blocking.append(f"the cluster has not been described yet: {fault}")
    blocking += unbound
    if not cluster.live:
        blocking += weaknesses
        weaknesses = []
    reasons = (*blocking, *portless, *weaknesses)
    return Readiness(ready=not blocking, reasons=reasons, guarantee=guarantee.name.lower())


def broker_rows(core: Sidecar, ports: Mapping[str, NodePorts], now_ms: float) -> list[Row]:
    """For `/brokers`, by node id.

    Args:
        ports: node ports by listener name; `port` in a row is that of the first listener.
    """
    return [_broker_row(core.cluster, node_id, ports, now_ms) for node_id in sorted(core.cluster.addresses)]


def _broker_row(cluster: Cluster, node_id: NodeId, ports: Mapping[str, NodePorts], now_ms: float) -> Row:
    address, broker = cluster.addresses[node_id], cluster.view.brokers[node_id]
    by_listener = {name: node_ports.port(node_id) for name, node_ports in ports.items()}
    probed_ms = cluster.probed_ms.get(node_id)
    return {
        "node_id": node_id,
        "address": str(HostPort(address.host, address.port)),
        "port": next(iter(by_listener.values()), None),
        "ports": by_listener,
        "state": "up" if broker.up else "down",
        "visible_offset": _known(broker.visible),
        "effective_offset": _known(broker.effective),
        "lag_records": lag_records(cluster, node_id),
        "lag_ms": round(cluster.lag_ms(node_id, now_ms)),
        "in_flight": cluster.loads[node_id].in_flight,
        "probe_age_ms": None if probed_ms is None else round(now_ms - probed_ms),
        "carries_state": broker.carries_state,
    }


def lag_records(cluster: Cluster, node_id: NodeId) -> int | None:
    """How far the broker is behind the head; None while either is unknown. A broker may be ahead of the last head."""
    head, visible = cluster.view.head, cluster.view.brokers[node_id].visible
    if head is None or visible == UNKNOWN_OFFSET:
        return None
    return max(0, head.offset - visible)


def head_row(cluster: Cluster, now_ms: float) -> Row:
    """For `/head`; nulls until a head was confirmed."""
    head = cluster.view.head
    source = HeadSource.BROKER_MAX if cluster.asks_brokers else HeadSource.DESCRIBE_QUORUM
    return {
        "offset": head.offset if head else None,
        "leader_epoch": head.leader_epoch if head else None,
        "age_ms": round(now_ms - cluster.head_ms) if head else None,
        "source": source.value,
    }


def session_rows(core: Sidecar, now_ms: float) -> list[Row]:
    """For `/sessions`, the least recently seen first.

    `token` is what the session requires as a number, null while there is none; `pending` says that it requires more,
    which the next probe turns into a number.
    """
    return [_session_row(session, core.cluster, now_ms) for session in core.sessions]


def _session_row(session: Session, cluster: Cluster, now_ms: float) -> Row:
    bound, head = session.bound, cluster.view.head
    offset = _required(bound)
    epoch = head.leader_epoch if head else -1
    return {
        "session": session.name,
        "token": None if offset is None else encode_token(cluster.cluster_id, epoch, offset),
        "pending": bool(bound.head_promised or bound.brokers),
        "clients": session.clients,
        "last_seen_ms": round(now_ms - session.last_seen_ms),
    }


def held_rows(core: Sidecar, now_ms: float) -> list[Row]:
    """For `/held`, the longest held first; `waits_for` is null while it is a promise, `deadline_ms` is what is left."""
    return [_held_row(held, core.gate.settings.effective_grace_ms, now_ms) for held in core.gate.held.values()]


def _held_row(held: HeldRead, effective_grace_ms: int, now_ms: float) -> Row:
    deadline_ms = held.deadline_ms
    if held.visible_ms is not None:
        deadline_ms = min(deadline_ms, held.visible_ms + effective_grace_ms)
    request = held.exchange.request
    return {
        "session": request.session_name,
        "api": api_name(request.api_key),
        "waits_for": None if held.bound.head_promised else _required(held.bound),
        "why": held.why.value,
        "held_ms": round(now_ms - held.since_ms),
        "deadline_ms": max(0, round(deadline_ms - now_ms)),
    }


def _required(bound: Bound) -> Offset | None:
    return _known(max(bound.visible, bound.effective))


def _known(offset: Offset) -> Offset | None:
    return None if offset == UNKNOWN_OFFSET else offset


def ready_line(places: Iterable[tuple[HostPort, Mapping[NodeId, int]]], admin: HostPort) -> str:
    """The line that `run` prints when it serves.

    Args:
        places: for each listener its bootstrap address and the port of each node.
    """
    parts = []
    for bind, ports in places:
        nodes = " ".join(f"{node_id}={HostPort(bind.host, port)}" for node_id, port in sorted(ports.items()))
        parts.append(f"bootstrap {bind}, nodes {nodes}")
    return f"tidegate ready: {', '.join(parts)}, admin {admin}"
