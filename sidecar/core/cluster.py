"""The cluster as the sidecar knows it: brokers, positions, head, and the questions that keep them true.

Owns the current `View`. Knows nothing of clients or sessions: `sidecar.core.gate` says what it waits for with `want`,
and is told what changed by the return values.
"""

from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from codec.headers import ConsistencyState
from sidecar.core import head as heads
from sidecar.core import positions
from sidecar.core.actions import Action, Noted, Probe, ProbeHead, Rediscover, Unwatch, Watch
from sidecar.core.events import Address, ClusterDescribed, HeadAnswered, HeadFailed, ProbeAnswered
from sidecar.core.ids import Identity, NodeId, Offset, Seq
from sidecar.core.probing import HeadProbes, Pace, PositionProbes
from sidecar.core.view import Broker, Channel, Load, View

REFUSED_RETRY_MS: Final = 30_000
"""How long a refused DescribeQuorum is left alone: somebody may grant the privilege meanwhile."""


class HeadSource(Enum):
    """Where the head comes from. Named as in the configuration."""

    DESCRIBE_QUORUM = "describe_quorum"
    BROKER_MAX = "broker_max"


class Guarantee(Enum):
    """What the sidecar can promise now; the value of the gauge."""

    FULL = 1.0
    DEGRADED = 0.5
    NONE = 0.0


@dataclass(slots=True)
class _Behind:
    """Since when a broker has been below a head that was known: how lag gets a duration."""

    head: Offset
    since_ms: float


class Cluster:
    """See the module."""

    def __init__(self, *, source: HeadSource, pace: Pace) -> None:
        self.view = View()
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.doubted = False
        self.addresses: dict[NodeId, Address] = {}
        self.loads: dict[NodeId, Load] = {}
        self.channels: dict[tuple[NodeId, Identity], Channel] = {}
        self.head_ms = float("-inf")
        self.probed_ms: dict[NodeId, float] = {}
        self._source = source
        self._refused = False
        self._pace = pace
        self._position_probes = PositionProbes(pace)
        self._head_probes = HeadProbes(pace)
        self._behind: dict[NodeId, _Behind] = {}
        self._next_incarnation: dict[NodeId, int] = {}
        self._stalled: str | None = None

    # Discovery

    def described(self, event: ClusterDescribed) -> tuple[list[Action], bool]:
        """Takes over the set of brokers. True: another cluster, where no number of the former one means anything."""
        actions: list[Action] = []
        other = self.cluster_id is not None and event.cluster_id != self.cluster_id
        if other:
            actions.append(
                Noted(
                    "warning",
                    f"cluster id changed from {self.cluster_id} to {event.cluster_id}: all positions are forgotten",
                )
            )
            actions += self._forget(list(self.addresses))
            self.view = View()
        self.cluster_id, self.controller_id = event.cluster_id, event.controller_id
        self.doubted = False
        present = {address.node_id for address in event.brokers}
        # A fenced broker is not described, but as long as it answers probes it serves its clients.
        actions += self._forget([n for n in self.addresses if n not in present and not self.view.brokers[n].up])
        return actions + self.seen(event.brokers), other

    def seen(self, brokers: tuple[Address, ...]) -> list[Action]:
        """Takes over brokers that are new, or have another address than before."""
        actions: list[Action] = []
        for address in brokers:
            known = self.addresses.get(address.node_id)
            if known == address:
                continue
            if known is not None and (known.host, known.port) != (address.host, address.port):
                actions += self._forget([address.node_id])
                known = None
            self.addresses[address.node_id] = address
            if known is None:
                self.loads[address.node_id] = Load()
                incarnation = self._next_incarnation.get(address.node_id, 0)
                self._put(Broker(node_id=address.node_id, incarnation=incarnation))
                actions.append(Watch(address))
        return actions

    def _forget(self, node_ids: list[NodeId]) -> list[Action]:
        brokers = dict(self.view.brokers)
        for node_id in node_ids:
            self._next_incarnation[node_id] = brokers[node_id].incarnation + 1
            self._position_probes.closed(node_id)
            self._head_probes.lost(node_id)
            for known in (brokers, self.addresses, self.loads, self._behind, self.probed_ms):
                known.pop(node_id, None)
            for way in [way for way in self.channels if way[0] == node_id]:
                del self.channels[way]
        self.view = replace(self.view, brokers=MappingProxyType(brokers))
        return [Unwatch(node_id) for node_id in node_ids]

    # Positions

    def probe_opened(self, node_id: NodeId) -> None:
        """Asks the broker for its position at the next `probes`."""
        if node_id in self.addresses:
            self._position_probes.opened(node_id)

    def probed(self, event: ProbeAnswered, now_ms: float) -> Broker | None:
        """Takes over a position; None when the answer is not the one that is waited for."""
        if not self._position_probes.answered(event.node_id, event.asked):
            return None
        self.probed_ms[event.node_id] = now_ms
        broker = positions.probed(
            self.view.brokers[event.node_id],
            asked=event.asked,
            offset=event.offset,
            versions=event.versions,
            carries_state=event.carries_state,
        )
        self._put(broker)
        self._follow_head(now_ms)
        return broker

    def is_foreign(self, state: ConsistencyState | None) -> bool:
        """Whether a state names another cluster."""
        return (
            state is not None
            and None not in (state.cluster_id, self.cluster_id)
            and state.cluster_id != self.cluster_id
        )

    def believes(self, state: ConsistencyState | None, channel: Channel) -> bool:
        """Whether a state in an answer on this channel is a place in the log of this cluster."""
        broker = self.view.brokers.get(channel.node_id)
        if state is None or broker is None or not broker.carries_state or self.doubted:
            return False
        return state.consistency_token >= 0 and not self.is_foreign(state)

    def heard(
        self, node_id: NodeId, *, process: int, sent: Seq, sent_ms: float, offset: Offset, now: Seq, now_ms: float
    ) -> None:
        """Takes over the position that came with the answer to a read, as if a probe had been sent with the read.

        Args:
            process: the incarnation that is sure to have answered; the position is that of no other.
            sent, sent_ms: when the read went.
        """
        broker = self.view.brokers.get(node_id)
        if broker is None or broker.incarnation != process:
            return
        self.probed_ms[node_id] = now_ms
        self._position_probes.heard(node_id, sent_ms)
        self._put(positions.shown(broker, asked=sent, learned=now, offset=offset))
        self._follow_head(now_ms)

    def doubt(self) -> list[Action]:
        """A broker says that it is of another cluster: until discovery has looked, no state is sent or believed."""
        if self.doubted:
            return []
        self.doubted = True
        return [Noted("warning", f"a broker says that it does not belong to cluster {self.cluster_id}"), Rediscover()]

    def connection_lost(self, node_id: NodeId, *, probe: bool) -> Broker | None:
        """The broker's side ended a connection: its positions may be another process's from now on."""
        if probe:
            self._position_probes.closed(node_id)
            self._head_probes.lost(node_id)
        broker = self.view.brokers.get(node_id)
        if broker is None:
            return None
        broker = positions.incarnation_ended(broker)
        broker = replace(broker, up=False) if probe else broker
        self._put(broker)
        return broker

    # Head

    def head_answered(self, event: HeadAnswered, now_ms: float) -> tuple[list[Action], heads.Verdict | None]:
        """Judges an answer about the head and takes it over if it counts; None: nobody waits for it any more."""
        if not self._head_probes.answered(event.via, event.asked):
            return [], None
        actions: list[Action] = []
        if self._refused:
            actions.append(Noted("info", "DescribeQuorum is answered again: the full guarantee holds"))
        self._refused = False
        verdict = heads.judge(self.view.head, event.answer)
        if verdict is heads.Verdict.CONFIRMED or verdict is heads.Verdict.REGRESSED:
            known = None if verdict is heads.Verdict.REGRESSED else self.view.head
            self.view = replace(self.view, head=heads.advanced(known, event.answer, event.asked))
            self.head_ms = now_ms
            self._stalled = None
            self._note_lag(now_ms)
            if verdict is heads.Verdict.REGRESSED:
                actions.append(Noted("warning", f"{verdict.value}: all sessions start again"))
        else:
            self._stalled = verdict.value
            self._head_probes.back_off(now_ms)
        return actions, verdict

    def head_failed(self, event: HeadFailed, now_ms: float) -> list[Action]:
        """Notes that the head could not be asked; with ``refused`` the brokers' positions take over."""
        if not self._head_probes.answered(event.via, event.asked):
            return []
        if not event.refused:
            self._stalled = f"broker {event.via} did not answer DescribeQuorum"
            self._head_probes.back_off(now_ms)
            return []
        self._head_probes.back_off(now_ms, REFUSED_RETRY_MS)
        if self._refused:
            return []
        self._refused = True
        self.view = replace(self.view, head=None)
        return [
            Noted(
                "warning",
                "DescribeQuorum is refused: grant Describe on the cluster to the sidecar's principal. Until then the "
                "highest broker position stands in for the head, and read-your-writes across brokers is not promised",
            )
        ]

    @property
    def asks_brokers(self) -> bool:
        """Whether the brokers' positions stand in for the head."""
        return self._source is HeadSource.BROKER_MAX or self._refused

    def _follow_head(self, now_ms: float) -> None:
        if self.asks_brokers:
            head = heads.broker_max(self.view.brokers.values(), self.view.head)
            if head != self.view.head:
                self.view = replace(self.view, head=head)
                self.head_ms = now_ms
        self._note_lag(now_ms)

    def prefer(self, node_id: NodeId) -> None:
        """The next question about the head goes through this broker, which relayed a write."""
        self._head_probes.prefer(node_id)

    # Questions

    def want(self, node_ids: frozenset[NodeId], *, head: bool) -> None:
        """Says what somebody waits for: until the next call these are asked as fast as allowed."""
        if head and self.asks_brokers:
            node_ids |= {node_id for node_id, broker in self.view.brokers.items() if broker.up}
        self._position_probes.want(node_ids)
        self._head_probes.want(head and not self.asks_brokers)

    def overdue(self, now_ms: float) -> list[NodeId]:
        """The brokers that have not answered a probe in time: what is known of them is to be given up."""
        return self._position_probes.overdue(now_ms)

    def probes(self, now_ms: float, seq: Seq) -> list[Action]:
        """The questions that are due."""
        actions: list[Action] = []
        for node_id, _ in self._head_probes.overdue(now_ms):
            self._stalled = f"broker {node_id} did not answer DescribeQuorum within {self._pace.timeout_ms} ms"
            self._head_probes.back_off(now_ms)
        actions += [Probe(node_id, seq) for node_id in self._position_probes.due(now_ms, seq)]
        if self._source is HeadSource.DESCRIBE_QUORUM:
            while (via := self._head_probes.due(now_ms, seq, self.live)) is not None:
                actions.append(ProbeHead(via, seq))
        return actions

    def wakeup_ms(self) -> float:
        """When `probes` has something to do next."""
        wakeup = self._position_probes.wakeup_ms()
        if self._source is HeadSource.DESCRIBE_QUORUM:
            wakeup = min(wakeup, self._head_probes.wakeup_ms(self.live))
        return wakeup

    # What it amounts to

    @property
    def live(self) -> list[NodeId]:
        """The brokers whose probe connection is open, in the order of their ids."""
        return sorted(node_id for node_id, broker in self.view.brokers.items() if broker.up)

    @property
    def promises_nothing(self) -> bool:
        """Whether the live brokers report no positions at all, so that nothing can be gated."""
        live = [broker for broker in self.view.brokers.values() if broker.up]
        return bool(live) and not any(broker.positions for broker in live)

    def guarantee(self) -> tuple[Guarantee, list[str]]:
        """What can be promised now, and why not more."""
        if not self.live:
            return Guarantee.NONE, ["no broker reachable"]
        if self.promises_nothing:
            return Guarantee.NONE, [
                "the brokers report no metadata position (ApiVersions carries no features epoch): no KRaft"
            ]
        reasons = []
        if self._source is HeadSource.BROKER_MAX:
            reasons.append("head_source is broker_max: a lower bound of the head")
        elif self._refused:
            reasons.append("DescribeQuorum is refused: the sidecar's principal lacks Describe on the cluster")
        elif self._stalled:
            reasons.append(f"head not confirmed: {self._stalled}")
        return (Guarantee.DEGRADED if reasons else Guarantee.FULL), reasons

    def lag_ms(self, node_id: NodeId, now_ms: float) -> float:
        """How long the head has been known to be above what the broker shows; 0 when level."""
        behind = self._behind.get(node_id)
        return now_ms - behind.since_ms if behind else 0.0

    def _put(self, broker: Broker) -> None:
        self.view = replace(self.view, brokers=MappingProxyType({**self.view.brokers, broker.node_id: broker}))

    def _note_lag(self, now_ms: float) -> None:
        head = self.view.head
        for node_id, broker in self.view.brokers.items():
            behind = self._behind.get(node_id)
            if head is None or broker.visible >= head.offset:
                self._behind.pop(node_id, None)
            elif behind is None or broker.visible >= behind.head:
                self._behind[node_id] = _Behind(head.offset, now_ms)
