"""The sidecar as one deterministic machine: events in, actions out.

Duties of the driver (`sidecar.net.driver`):

- report every event as it happens, one at a time, and carry out the returned actions in order before the next event;
- send a `Tick` at `wakeup_ms` at the latest;
- give plain requests straight to their connection (`ClientConnection.pass_through`): only what is gated comes here;
- stop reading from a client while `ClientConnection.accepts` says no.

Time enters only as ``now_ms``; order only as the sequence numbers given out here. The same events give the same
actions.
"""

from collections import Counter
from typing import Final, assert_never

from codec.headers import ConsistencyState
from sidecar.core.actions import Action, CloseClient, Deliver, Noted, ReopenHome, ResetProbe, Unwatch
from sidecar.core.apis import Kind
from sidecar.core.bounds import GONE
from sidecar.core.cluster import Cluster, HeadSource
from sidecar.core.connection import ClientConnection
from sidecar.core.events import (
    AnswerMade,
    AnswerReceived,
    BrokersSeen,
    ChannelClosed,
    ChannelOpened,
    ChannelThrottled,
    ClientClosed,
    ClusterDescribed,
    Event,
    HeadAnswered,
    HeadFailed,
    HomeClosed,
    HomeOpened,
    IdentityChanged,
    IdentityGone,
    LeaderChanged,
    ProbeAnswered,
    ProbeClosed,
    ProbeOpened,
    RequestReceived,
    Tick,
)
from sidecar.core.exchange import Exchange
from sidecar.core.gate import Gate, GateSettings
from sidecar.core.head import Verdict
from sidecar.core.ids import NEVER, OWN, UNKNOWN_OFFSET, Identity, NodeId, Offset, Seq
from sidecar.core.probing import Pace
from sidecar.core.sessions import Sessions
from sidecar.core.states import Complaint
from sidecar.core.view import Broker, Channel, View

FORGET_INTERVAL_MS = 10_000

_QUIET: Final = (RequestReceived, AnswerReceived)
"""After these no probe is due sooner than before, unless the gate says so: what is due need not be looked for."""


class Sidecar:
    """See the module.

    Args:
        settings: what the gate obeys.
        source: where the head comes from.
        pace: of the probes.
        sessions_max: how many sessions are kept.
        session_idle_ms: how long one without clients is kept.
    """

    def __init__(
        self,
        settings: GateSettings,
        *,
        source: HeadSource = HeadSource.DESCRIBE_QUORUM,
        pace: Pace | None = None,
        sessions_max: int = 10_000,
        session_idle_ms: int = 1_800_000,
    ) -> None:
        self.cluster = Cluster(source=source, pace=pace or Pace())
        self.sessions = Sessions(sessions_max, session_idle_ms)
        self.gate = Gate(settings, self.cluster, self.sessions)
        self.connections: dict[int, ClientConnection] = {}
        self._seq: Seq = NEVER
        self._last_id = 0
        self._forget_ms = float("-inf")
        self._wakeup_ms = float("-inf")

    def obey(self, settings: GateSettings, *, sessions_max: int, session_idle_ms: int) -> None:
        """Obeys other settings from now on; what they mean for a request is decided when it comes up again."""
        self.gate.obey(settings)
        self.sessions.limit(sessions_max, session_idle_ms)

    def open_client(self, node_id: NodeId | None, identity: Identity | None = OWN) -> ClientConnection | None:
        """A client connected to the port of ``node_id``, or to the bootstrap port (None): any live broker serves it.

        Args:
            identity: who it is to the brokers; None: nobody yet, or nobody who could be carried to another broker.

        Returns:
            Its connection, whose ``node_id`` is the broker to connect to; None when no broker can serve it.
        """
        if node_id is None:
            live = self.cluster.live
            homes = Counter(connection.node_id for connection in self.connections.values())
            node_id = min(live, key=lambda n: (homes[n], n), default=None)
        if node_id is None or node_id not in self.cluster.addresses:
            return None
        self._last_id += 1
        connection = self.connections[self._last_id] = ClientConnection(self._last_id, node_id, identity)
        return connection

    def next_seq(self) -> Seq:
        """The number of the event that happens now."""
        self._seq = Seq(self._seq + 1)
        return self._seq

    def handle(self, event: Event, now_ms: float) -> list[Action]:
        """Takes one event; returns what to do about it."""
        seq = self.next_seq()
        actions = self._dispatch(event, seq, now_ms)
        asked = self.next_seq()
        if now_ms < self._wakeup_ms and isinstance(event, _QUIET) and not self.gate.asks:
            return actions
        for node_id in self.cluster.overdue(now_ms):
            actions.append(ResetProbe(node_id))
            actions += self._lost(node_id, seq, now_ms, probe=True)
        self.gate.ask()
        actions += self.cluster.probes(now_ms, asked)
        self._wakeup_ms = min(self.gate.wakeup_ms(), self.cluster.wakeup_ms(), self._forget_ms + FORGET_INTERVAL_MS)
        return actions

    def wakeup_ms(self) -> float:
        """When the next `Tick` is due at the latest."""
        return self._wakeup_ms

    def _dispatch(self, event: Event, seq: Seq, now_ms: float) -> list[Action]:
        gate, cluster = self.gate, self.cluster
        match event:
            case RequestReceived(connection, request):
                return gate.request(connection, request, seq, now_ms)
            case AnswerReceived():
                return self._answer(event, seq, now_ms)
            case LeaderChanged(exchange, state):
                return self._leader_changed(exchange, state, seq, now_ms)
            case AnswerMade(exchange, payload):
                return [] if exchange.connection.closed else gate.made(exchange, payload, seq, now_ms)
            case HomeOpened(connection, channel_id):
                return self._home_opened(connection, channel_id, seq, now_ms)
            case HomeClosed():
                return self._home_closed(event, seq, now_ms)
            case ClientClosed(connection):
                self.connections.pop(connection.connection_id, None)
                return [] if connection.closed else gate.client_left(connection, now_ms)
            case IdentityChanged(connection, identity):
                return [] if connection.closed else gate.identity_changed(connection, identity, seq, now_ms)
            case IdentityGone(identity):
                return self._identity_gone(identity, seq, now_ms)
            case ChannelThrottled(channel, throttle_ms):
                gate.throttled(channel, now_ms + throttle_ms)
                return []
            case ChannelOpened():
                return self._channel_opened(event, seq, now_ms)
            case ChannelClosed():
                return self._channel_closed(event, seq, now_ms)
            case ProbeOpened(node_id):
                cluster.probe_opened(node_id)
                return []
            case ProbeClosed(node_id):
                return self._lost(node_id, seq, now_ms, probe=True)
            case ProbeAnswered():
                return self._probed(event, seq, now_ms)
            case HeadAnswered():
                return self._head_answered(event, seq, now_ms)
            case HeadFailed():
                return cluster.head_failed(event, now_ms)
            case ClusterDescribed():
                channels = list(cluster.channels.values())
                actions, other = cluster.described(event)
                actions += self._gone(actions, channels, seq, now_ms)
                if other:
                    self.sessions.reset(seq)
                    actions += gate.start_again(seq, now_ms)
                return actions
            case BrokersSeen(brokers):
                channels = list(cluster.channels.values())
                actions = cluster.seen(brokers)
                return actions + self._gone(actions, channels, seq, now_ms)
            case Tick():
                if now_ms >= self._forget_ms + FORGET_INTERVAL_MS:
                    self._forget_ms = now_ms
                    self.sessions.forget_idle(now_ms)
                return gate.expire(seq, now_ms)
            case _:
                assert_never(event)

    # Clients

    def _answer(self, event: AnswerReceived, seq: Seq, now_ms: float) -> list[Action]:
        exchange = event.exchange
        if exchange.connection.closed:
            return []
        channel = exchange.channel or exchange.connection.home
        if channel is None:
            return []
        if event.complaint is not None:
            return self._complained(exchange, channel, event.complaint, seq, now_ms)
        view = self.cluster.view
        actions = self._hear(exchange, channel, event.state, seq, now_ms)
        if event.creates:
            actions += self.gate.creates(exchange, seq, now_ms)
        else:
            actions += self.gate.answer(exchange, event.payload, seq, now_ms, leader_changed=event.leader_changed)
        return actions + self._heard(view, channel.node_id, seq, now_ms)

    def _leader_changed(
        self, exchange: Exchange, state: ConsistencyState | None, seq: Seq, now_ms: float
    ) -> list[Action]:
        channel = exchange.connection.home
        if exchange.connection.closed or channel is None:
            return []
        actions = self._hear(exchange, channel, state, seq, now_ms)
        self.gate.leader_changed(exchange, seq, now_ms)
        return actions

    def _hear(
        self, exchange: Exchange, channel: Channel, state: ConsistencyState | None, seq: Seq, now_ms: float
    ) -> list[Action]:
        """Takes over what the header of an answer tells, before the session that reads gets its answer."""
        exchange.token = UNKNOWN_OFFSET
        if state is None or not self.cluster.believes(state, channel):
            return self.cluster.doubt() if self.cluster.is_foreign(state) else []
        exchange.token = state.consistency_token
        if exchange.kind is Kind.READ:
            # In an answer that the controller made, the token may be above the broker's own position.
            channel.shown = max(channel.shown, exchange.token)
            self.cluster.heard(
                channel.node_id,
                process=exchange.process,
                sent=exchange.sent,
                sent_ms=exchange.sent_ms,
                offset=exchange.token,
                now=seq,
                now_ms=now_ms,
            )
        return []

    def _heard(self, before: View, node_id: NodeId, seq: Seq, now_ms: float) -> list[Action]:
        """What a position in an answer does for others, once that answer is on its way."""
        was, now = before.brokers.get(node_id), self.cluster.view.brokers.get(node_id)
        if was is None or now is None or was is now:
            return []
        actions = self.gate.broker_changed(was, now, seq, now_ms)
        if self.cluster.view.head is not before.head:
            actions += self.gate.head_confirmed(seq, now_ms)
        return actions

    def _complained(
        self, exchange: Exchange, channel: Channel, complaint: Complaint, seq: Seq, now_ms: float
    ) -> list[Action]:
        """A broker is not where, or what, it was known to be: all that was known of it is forgotten."""
        actions = self.cluster.doubt() if complaint is Complaint.FOREIGN else []
        channel.shown = UNKNOWN_OFFSET
        actions += self._lost(channel.node_id, seq, now_ms, probe=False)
        return actions + self.gate.complained(exchange, complaint, seq, now_ms)

    def _home_opened(self, connection: ClientConnection, channel_id: int, seq: Seq, now_ms: float) -> list[Action]:
        if connection.closed:
            return []
        channel = self._channel(connection.node_id, channel_id, UNKNOWN_OFFSET, seq)
        if channel is None:
            return [CloseClient(connection, "broker_left")]
        connection.home_opened(channel)
        return self.gate.advance(connection, seq, now_ms)

    def _home_closed(self, event: HomeClosed, seq: Seq, now_ms: float) -> list[Action]:
        connection = event.connection
        actions: list[Action] = []
        if event.served and not event.half_read and connection.leaves_nothing_at_home:
            # As brokers do to connections that are idle: the client need not notice.
            connection.home_closed()
            actions.append(ReopenHome(connection))
        elif not connection.closed:
            cause = "broker_closed" if connection.home is not None else "broker_unreachable"
            actions += [Deliver(connection), CloseClient(connection, cause)]
        return actions if event.ours else actions + self._lost(connection.node_id, seq, now_ms, probe=False)

    # Our own connections

    def _channel_opened(self, event: ChannelOpened, seq: Seq, now_ms: float) -> list[Action]:
        channel = self._channel(event.node_id, event.channel_id, event.shown, seq, event.identity)
        if channel is None:
            return []
        self.cluster.channels[event.node_id, event.identity] = channel
        self.gate.channel_opened(channel)
        return self.gate.review(seq, now_ms)

    def _channel(
        self, node_id: NodeId, channel_id: int, shown: Offset, seq: Seq, identity: Identity = OWN
    ) -> Channel | None:
        broker = self.cluster.view.brokers.get(node_id)
        if broker is None:
            return None
        return Channel(
            channel_id=channel_id,
            node_id=node_id,
            established=seq,
            incarnation=broker.incarnation if broker.up else GONE,
            shown=shown,
            load=self.cluster.loads[node_id],
            identity=identity,
        )

    def _channel_closed(self, event: ChannelClosed, seq: Seq, now_ms: float) -> list[Action]:
        self.gate.channel_failed(event.node_id, event.identity)
        channel = self.cluster.channels.get((event.node_id, event.identity))
        if channel is None or channel.channel_id != event.channel_id:
            return []
        del self.cluster.channels[event.node_id, event.identity]
        actions = [] if event.ours else self._lost(event.node_id, seq, now_ms, probe=False)
        return actions + self.gate.channel_lost(channel, list(self.connections.values()), seq, now_ms)

    def _identity_gone(self, identity: Identity, seq: Seq, now_ms: float) -> list[Action]:
        """Its reads are decided again, on their clients' own brokers. The brokers themselves have lost nothing."""
        cluster, connections = self.cluster, list(self.connections.values())
        channels = [channel for channel in cluster.channels.values() if channel.identity == identity]
        for channel in channels:
            del cluster.channels[channel.node_id, identity]
        self.gate.identity_gone(identity)
        actions: list[Action] = []
        for connection in connections:
            if connection.identity == identity:
                connection.identity = None
        for channel in channels:
            actions += self.gate.channel_lost(channel, connections, seq, now_ms)
        return actions + self.gate.review(seq, now_ms)

    def _gone(self, actions: list[Action], channels: list[Channel], seq: Seq, now_ms: float) -> list[Action]:
        """What the brokers that `Unwatch` names leave behind: promises, and reads on the channels to them."""
        node_ids = [action.node_id for action in actions if isinstance(action, Unwatch)]
        for node_id in node_ids:
            self.gate.broker_gone(node_id)
        more = self.gate.review(seq, now_ms) if node_ids else []
        for channel in [channel for channel in channels if channel.node_id in node_ids]:
            more += self.gate.channel_lost(channel, list(self.connections.values()), seq, now_ms)
        return more

    def _lost(self, node_id: NodeId, seq: Seq, now_ms: float, *, probe: bool) -> list[Action]:
        before = self.cluster.view.brokers.get(node_id)
        after = self.cluster.connection_lost(node_id, probe=probe)
        if before is None or after is None:
            return []
        return self._changed(before, after, seq, now_ms)

    def _probed(self, event: ProbeAnswered, seq: Seq, now_ms: float) -> list[Action]:
        before = self.cluster.view.brokers.get(event.node_id)
        head = self.cluster.view.head
        after = self.cluster.probed(event, now_ms)
        if before is None or after is None:
            return []
        actions: list[Action] = []
        if not before.up:
            actions.append(Noted("info", f"broker {event.node_id} is up at metadata offset {after.visible}"))
        actions += self._changed(before, after, seq, now_ms)
        if self.cluster.view.head is not head:
            actions += self.gate.head_confirmed(seq, now_ms)
        return actions

    def _changed(self, before: Broker, after: Broker, seq: Seq, now_ms: float) -> list[Action]:
        actions: list[Action] = []
        if before.up and not after.up:
            actions.append(Noted("warning", f"broker {after.node_id} is down: its positions are forgotten"))
        return actions + self.gate.broker_changed(before, after, seq, now_ms)

    def _head_answered(self, event: HeadAnswered, seq: Seq, now_ms: float) -> list[Action]:
        actions, verdict = self.cluster.head_answered(event, now_ms)
        if verdict is Verdict.REGRESSED:
            self.sessions.reset(seq)
            actions += self.gate.start_again(seq, now_ms)
        if verdict in (Verdict.CONFIRMED, Verdict.REGRESSED):
            actions += self.gate.head_confirmed(seq, now_ms)
        return actions
