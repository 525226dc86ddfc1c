"""The gate: which gated request goes where and when, and what its answer leaves behind in its session.

Joins the order of each connection (`connection`), what sessions are owed (`sessions`, `levels`), what is known of the
cluster (`cluster`) and the choice of a broker (`routing`). Holds what cannot go, each with a deadline.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from codec.headers import ConsistencyState
from sidecar.core.actions import Action, CloseClient, Decided, Deliver, OpenChannel, Refuse, Released, Send
from sidecar.core.apis import TIED, Kind
from sidecar.core.bounds import GONE, Bound, confirmed
from sidecar.core.cluster import Cluster
from sidecar.core.connection import ClientConnection
from sidecar.core.exchange import Exchange, Request
from sidecar.core.holds import HeldRead, Holds, explain, reason
from sidecar.core.ids import Identity, NodeId, Seq
from sidecar.core.ledger import Ledger
from sidecar.core.levels import Level, Policy
from sidecar.core.routing import Forward, Question, decide, goes_home
from sidecar.core.sessions import Session, Sessions
from sidecar.core.states import Complaint, stamp_of
from sidecar.core.view import Broker, Channel

PROBE_FANOUT = 3
"""How many brokers are asked at a time for a read that any of them could answer: the ones that are farthest ahead."""


class OnTimeout(Enum):
    """What becomes of a read that waited too long. Named as in the configuration."""

    ERROR = "error"
    FRESHEST = "freshest"
    STALE = "stale"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """The ``consistency`` and ``limits`` sections of the configuration, as far as the gate obeys them."""

    policy: Policy = field(default_factory=Policy)
    wait_timeout_ms: int = 3000
    effective_grace_ms: int = 2000
    on_timeout: OnTimeout = OnTimeout.ERROR
    held_requests_max: int = 10_000
    held_bytes_max: int = 64 * 1024 * 1024


class Gate:
    """See the module."""

    def __init__(self, settings: GateSettings, cluster: Cluster, sessions: Sessions) -> None:
        self.settings = settings
        self.holds = Holds(
            requests_max=settings.held_requests_max,
            bytes_max=settings.held_bytes_max,
            effective_grace_ms=settings.effective_grace_ms,
        )
        self._cluster = cluster
        self._sessions = sessions
        self._ledger = Ledger(settings.policy, cluster, sessions)
        self._opening: set[tuple[NodeId, Identity]] = set()
        self._waiting_for: frozenset[NodeId] = frozenset()
        self._ask_again = True
        self._unmuted_ms = math.inf

    def obey(self, settings: GateSettings) -> None:
        """Obeys other settings from now on. Reads that are held keep the bound and the deadline that they have."""
        self.settings = settings
        self._ledger.obey(settings.policy)
        self.holds.limit(
            requests_max=settings.held_requests_max,
            bytes_max=settings.held_bytes_max,
            effective_grace_ms=settings.effective_grace_ms,
        )

    @property
    def held(self) -> dict[Exchange, HeldRead]:
        """The reads that wait, the oldest first."""
        return self.holds.reads

    @property
    def held_bytes(self) -> int:
        """Size of their requests."""
        return self.holds.bytes

    # What happens on a client connection

    def request(self, connection: ClientConnection, request: Request, seq: Seq, now_ms: float) -> list[Action]:
        """Takes a gated read or a write into the order of its connection, and lets go what may go."""
        connection.tied |= request.api_key in TIED
        session = self._ledger.join(connection, request, seq, now_ms)
        self._ask_again |= self._sessions.owed_head
        straight = self._straight(connection, request, session)
        exchange = connection.enqueue(request, seq, now_ms)
        if straight is not None:
            return self._send(exchange, straight, "forward", seq, now_ms)
        return self.advance(connection, seq, now_ms)

    def answer(
        self, exchange: Exchange, payload: bytes, seq: Seq, now_ms: float, *, leader_changed: bool
    ) -> list[Action]:
        """Takes the answer of a broker: what it promises goes to the session before anybody can read again."""
        connection = exchange.connection
        connection.settle(exchange)
        self._ledger.enter(exchange, seq, now_ms, leader_changed=leader_changed)
        self._ask_again |= self._sessions.owed_head
        connection.answered(exchange, payload)
        return [Deliver(connection), *self.advance(connection, seq, now_ms)]

    def leader_changed(self, exchange: Exchange, seq: Seq, now_ms: float) -> None:
        """Takes what an answer promises that passes to its client without being kept here."""
        self._ledger.enter(exchange, seq, now_ms, leader_changed=True)
        self._ask_again |= self._sessions.owed_head

    def creates(self, exchange: Exchange, seq: Seq, now_ms: float) -> list[Action]:
        """The pure read found topics missing that the request would create: it goes on as a write, to the client's own
        broker, once that has what the session has seen, this answer included.
        """
        self._ledger.enter(exchange, seq, now_ms, leader_changed=False)
        self._ask_again |= self._sessions.owed_head
        self._put_back(exchange, Kind.CREATE)
        return self.advance(exchange.connection, seq, now_ms)

    def complained(self, exchange: Exchange, complaint: Complaint, seq: Seq, now_ms: float) -> list[Action]:
        """A broker refused a read because of our stamp: it is decided again, within the same deadline."""
        exchange.complaint = complaint
        self._put_back(exchange, exchange.kind)
        return self.advance(exchange.connection, seq, now_ms)

    def made(self, exchange: Exchange, payload: bytes, seq: Seq, now_ms: float) -> list[Action]:
        """Takes an answer of our own."""
        exchange.connection.answered(exchange, payload)
        return [Deliver(exchange.connection), *self.advance(exchange.connection, seq, now_ms)]

    def client_left(self, connection: ClientConnection, now_ms: float) -> list[Action]:
        """Frees what the connection holds."""
        connection.close()
        if connection.session is not None:
            self._sessions.client_left(connection.session)
        front = connection.front
        return [self._release(front, "client_left", now_ms)] if front in self.held else []

    def advance(self, connection: ClientConnection, seq: Seq, now_ms: float) -> list[Action]:
        """Lets go, in order, what this connection may send now, and holds the first that may not."""
        actions: list[Action] = []
        while not connection.closed and (next_one := connection.eligible()) is not None:
            exchange, follows = next_one
            held = self.held.get(exchange)
            if held is not None and held.follows is not follows:
                # The read ahead of it was answered, and may have shown more than was required so far.
                exchange.bound = None
            if exchange.kind is Kind.WRITE:
                if connection.home is None:
                    break
                actions += self._send(exchange, connection.home, "write", seq, now_ms)
                continue
            bound = self._ledger.capture(exchange, seq, now_ms)
            question = self._question(exchange, bound, follows, now_ms)
            decision = decide(question, self._cluster.view, self._cluster.loads, seq)
            exchange.prevented |= decision.prevented
            actions += self._open(decision.open_channel, connection.identity)
            if not isinstance(decision, Forward):
                actions += self._hold(exchange, bound, follows, now_ms, shown=decision.shown)
                break
            if exchange.complaint and now_ms >= self._deadline_ms(exchange):
                # A broker that goes on refusing what it is known to have must not keep the read for ever.
                actions += self._hold(exchange, bound, follows, now_ms, shown=False)
                break
            if exchange in self.held:
                actions.append(self._release(exchange, "proven", now_ms))
            channel = decision.channel
            exchange.stamp = self._stamp(exchange, bound, channel)
            actions += self._send(exchange, channel, "forward" if channel is connection.home else "route", seq, now_ms)
        return actions

    # What happens in the cluster

    def channel_opened(self, channel: Channel) -> None:
        """A channel for routed reads is there."""
        self._opening.discard((channel.node_id, channel.identity))

    def channel_failed(self, node_id: NodeId, identity: Identity) -> None:
        """A channel for routed reads could not be opened, or closed: another read may ask for it again."""
        self._opening.discard((node_id, identity))

    def identity_changed(
        self, connection: ClientConnection, identity: Identity | None, seq: Seq, now_ms: float
    ) -> list[Action]:
        """Other brokers may answer the client from now on, or none but its own."""
        connection.identity = identity
        self._ask_again = True
        return self.advance(connection, seq, now_ms)

    def identity_gone(self, identity: Identity) -> None:
        """Nobody is waited for to be logged in as this one any more."""
        self._opening = {way for way in self._opening if way[1] != identity}

    def throttled(self, channel: Channel, until_ms: float) -> None:
        """Keeps reads off a channel that its broker does not read from for a while."""
        channel.muted_until_ms = max(channel.muted_until_ms, until_ms)
        self._unmuted_ms = min(self._unmuted_ms, channel.muted_until_ms)

    def channel_lost(
        self, channel: Channel, connections: Iterable[ClientConnection], seq: Seq, now_ms: float
    ) -> list[Action]:
        """The reads that went out on a broken channel are decided again; their clients notice nothing."""
        actions: list[Action] = []
        for connection in connections:
            for exchange in connection.reads_on(channel):
                self._put_back(exchange, Kind.READ)
            actions += self.advance(connection, seq, now_ms)
        return actions

    def broker_gone(self, node_id: NodeId) -> None:
        """A broker left, or has another address: only the head can tell what it had."""
        self._opening = {way for way in self._opening if way[0] != node_id}
        self._sessions.broker_gone(node_id)
        for held in self.held.values():
            held.bound.give_up_broker(node_id, GONE)
        self._ask_again = True

    def start_again(self, seq: Seq, now_ms: float) -> list[Action]:
        """The sessions were reset: what is held takes its bound anew, for the old one is of another log."""
        for held in self.held.values():
            held.exchange.bound = None
        return self.review(seq, now_ms)

    def head_confirmed(self, seq: Seq, now_ms: float) -> list[Action]:
        """The head turned promises into numbers."""
        head = self._cluster.view.head
        if head is not None:
            self._sessions.head_confirmed(head)
            for held in self.held.values():
                held.bound.redeem_head(head)
        return self.review(seq, now_ms)

    def broker_changed(self, before: Broker, broker: Broker, seq: Seq, now_ms: float) -> list[Action]:
        """A broker was probed, or lost: what its position, or its being another process now, does to promises."""
        self._sessions.broker_probed(broker)
        self._ask_again = True
        for held in self.held.values():
            held.bound.give_up_broker(broker.node_id, broker.incarnation)
            held.bound.redeem_broker(broker)
        moved = (before.visible, before.effective, before.incarnation, before.up) != (
            broker.visible,
            broker.effective,
            broker.incarnation,
            broker.up,
        )
        return self.review(seq, now_ms) if moved or broker.node_id in self._waiting_for else []

    def review(self, seq: Seq, now_ms: float) -> list[Action]:
        """Decides again about all that is held."""
        self._ask_again = True
        actions: list[Action] = []
        for held in list(self.held.values()):
            if held.exchange in self.held:
                actions += self.advance(held.exchange.connection, seq, now_ms)
        return actions

    def expire(self, seq: Seq, now_ms: float) -> list[Action]:
        """Ends the holds whose time is up, and decides again when a channel can be used again."""
        actions: list[Action] = []
        if now_ms >= self._unmuted_ms:
            until_ms = (channel.muted_until_ms for channel in self._cluster.channels.values())
            self._unmuted_ms = min((end_ms for end_ms in until_ms if end_ms > now_ms), default=math.inf)
            actions += self.review(seq, now_ms)
        for held in self.holds.due(now_ms):
            actions += self._give_up(held, seq, now_ms)
        return actions

    def wakeup_ms(self) -> float:
        """When `expire` has something to do."""
        return min(self.holds.wakeup_ms(), self._unmuted_ms)

    @property
    def asks(self) -> bool:
        """Whether `ask` has something to say."""
        return self._ask_again

    def ask(self) -> None:
        """Says whom to probe for what is held, and whether anybody is owed the head. To be called after every event."""
        if not self._ask_again:
            return
        self._ask_again = False
        nodes: set[NodeId] = set()
        head = self._sessions.owed_head
        for held in self.held.values():
            bound = held.bound
            head = head or bool(bound.head_promised)
            nodes.update(bound.to_probe)
            if not bound.head_promised:
                nodes.update(self._ahead(held))
        self._waiting_for = frozenset(nodes)
        self._cluster.want(self._waiting_for, head=head)

    # Steps

    def _straight(self, connection: ClientConnection, request: Request, session: Session) -> Channel | None:
        """The client's own connection, where `advance` could only say that a read which comes now goes there at once.

        Nearly every read of a healthy cluster goes this way, without a bound of its own. None: `advance` shall look.
        """
        home, cluster = connection.home, self._cluster
        if (
            home is None
            or request.kind is not Kind.READ
            or request.state is not None
            or connection.closed
            or not connection.nothing_ahead
            or self.settings.policy.level_of(request.api_key) is not Level.SESSION
        ):
            return None
        broker = cluster.view.brokers.get(home.node_id)
        if broker is None or broker.carries_state:
            return None
        effective = self.settings.policy.effective(request.api_key, by_nature=request.effective)
        if goes_home(request, session.bound, broker, home, cluster.loads, effective=effective):
            return home
        return None

    def _question(self, exchange: Exchange, bound: Bound, follows: Channel | None, now_ms: float) -> Question:
        request, connection = exchange.request, exchange.connection
        effective = self.settings.policy.effective(request.api_key, by_nature=request.effective)
        home = connection.home
        channels: list[Channel] = []
        openable: list[NodeId] = []
        identity = connection.identity
        if follows is not None:
            fits = follows is not home and follows.identity == identity and not request.pinned
            channels = [follows] if fits and follows.muted_until_ms <= now_ms else []
            home = home if follows is home else None
        elif identity is not None and not request.pinned and exchange.kind is Kind.READ:
            own = home.node_id if home is not None else None
            known = self._cluster.channels
            channels = [
                channel
                for (n, who), channel in known.items()
                if who == identity and n != own and channel.muted_until_ms <= now_ms
            ]
            openable = [n for n in self._cluster.loads if (n, identity) not in known and n != own]
        return Question(
            api_key=request.api_key,
            api_version=request.api_version,
            bound=bound,
            effective=effective,
            home=home,
            channels=channels,
            openable=openable,
        )

    def _stamp(self, exchange: Exchange, bound: Bound, channel: Channel) -> ConsistencyState | None:
        if self._cluster.doubted or exchange.complaint is Complaint.FOREIGN:
            return None
        request, broker = exchange.request, self._cluster.view.brokers.get(channel.node_id)
        if self._cluster.is_foreign(request.state):
            # The broker is to see, and to refuse, what the client has said.
            return None
        return stamp_of(request.api_key, request.api_version, bound, broker, self._cluster.cluster_id)

    def _send(self, exchange: Exchange, channel: Channel, decision: str, seq: Seq, now_ms: float) -> list[Action]:
        broker = self._cluster.view.brokers.get(channel.node_id)
        sure = broker is not None and confirmed(broker, channel)
        # Should the channel lead to an earlier process after all, that one is gone and cannot answer.
        exchange.process = broker.incarnation if broker is not None and sure else GONE
        exchange.incarnation = exchange.process if sure else channel.incarnation
        exchange.sent = seq
        exchange.connection.sent(exchange, channel, now_ms)
        pure = exchange.kind is Kind.READ and exchange.request.may_create
        return [Decided(exchange, decision), Send(exchange, channel, pure)]

    def _hold(
        self, exchange: Exchange, bound: Bound, follows: Channel | None, now_ms: float, *, shown: bool
    ) -> list[Action]:
        held = self.held.get(exchange)
        if held is not None:
            held.follows, held.bound = follows, bound
            held.showed(shown, now_ms)
            self._cut_short(held, now_ms)
            return []
        if not self.holds.has_room(exchange):
            return [CloseClient(exchange.connection, "too_many_held")]
        broker = self._cluster.view.brokers.get(exchange.connection.node_id)
        held = HeldRead(
            exchange=exchange,
            bound=bound,
            follows=follows,
            why=reason(exchange, bound, broker, stays=_stays(exchange)),
            since_ms=exchange.eligible_ms,
            deadline_ms=self._deadline_ms(exchange),
        )
        self._cut_short(held, now_ms)
        held.showed(shown, now_ms)
        self.holds.add(held)
        self._ask_again = True
        return [Decided(exchange, "hold")]

    def _cut_short(self, held: HeldRead, now_ms: float) -> None:
        """Nobody waits for a token out of reach, except for the connection to the broker that is to refuse it."""
        exchange = held.exchange
        if held.bound.unreachable and (
            exchange.connection.home is not None or not self._ledger.refuses_tokens(exchange)
        ):
            held.deadline_ms = min(held.deadline_ms, now_ms)

    def _deadline_ms(self, exchange: Exchange) -> float:
        return exchange.eligible_ms + self.settings.wait_timeout_ms

    def _put_back(self, exchange: Exchange, kind: Kind) -> None:
        """Puts a read that was sent back in front of the queue; what was held there waits behind it, in order again."""
        connection = exchange.connection
        if connection.front in self.held:
            self._let_go(connection.front)
        connection.settle(exchange)
        connection.ask_again(exchange, kind)

    def _let_go(self, exchange: Exchange) -> HeldRead:
        self._ask_again = True
        return self.holds.let_go(exchange)

    def _release(self, exchange: Exchange, outcome: str, now_ms: float) -> Released:
        held = self._let_go(exchange)
        return Released(exchange, held.why.value, outcome, now_ms - held.since_ms)

    def _open(self, node_id: NodeId | None, identity: Identity | None) -> list[Action]:
        if node_id is None or identity is None or (node_id, identity) in self._opening:
            return []
        self._opening.add((node_id, identity))
        return [OpenChannel(node_id, identity)]

    def _ahead(self, held: HeldRead) -> list[NodeId]:
        """Whom to probe for a read that waits for a number: the one that must answer, else those farthest ahead."""
        exchange = held.exchange
        own = exchange.connection.node_id
        if _stays(exchange) or exchange.kind is Kind.CREATE:
            return [own]
        if held.follows is not None:
            return [held.follows.node_id]
        brokers = self._cluster.view.brokers
        ranked = sorted(self._cluster.live, key=lambda node_id: (-brokers[node_id].visible, node_id != own))
        return ranked[:PROBE_FANOUT]

    def _give_up(self, held: HeldRead, seq: Seq, now_ms: float) -> list[Action]:
        exchange, connection = held.exchange, held.exchange.connection
        on_timeout = self.settings.on_timeout
        channel = None
        if on_timeout is OnTimeout.STALE:
            channel = connection.home
        elif on_timeout is OnTimeout.FRESHEST:
            channel = self._freshest(exchange, held, now_ms)
        if held.bound.unreachable and self._ledger.refuses_tokens(exchange) and connection.home is not None:
            channel, on_timeout = connection.home, OnTimeout.ERROR
        outcome = on_timeout.value if channel or on_timeout is OnTimeout.CLOSE else OnTimeout.ERROR.value
        released = self._release(exchange, outcome, now_ms)
        if channel is not None:
            exchange.stamp = None
            return [
                released,
                *self._send(exchange, channel, "unproven", seq, now_ms),
                *self.advance(connection, seq, now_ms),
            ]
        connection.drop_front(exchange)
        if outcome == OnTimeout.CLOSE.value:
            return [released, CloseClient(connection, "wait_timeout", exchange)]
        return [released, Refuse(exchange, explain(held, now_ms))]

    def _freshest(self, exchange: Exchange, held: HeldRead, now_ms: float) -> Channel | None:
        question = self._question(exchange, held.bound, held.follows, now_ms)
        brokers = self._cluster.view.brokers
        channels = [
            c
            for c in (question.home, *question.channels)
            if c is not None
            and c.node_id in brokers
            and brokers[c.node_id].speaks(question.api_key, question.api_version)
        ]
        return max(channels, key=lambda c: (brokers[c.node_id].visible, c is question.home), default=None)


def _stays(exchange: Exchange) -> bool:
    """Whether only the client's own broker may answer: nobody else knows, or nobody else knows the client."""
    return exchange.request.pinned or exchange.connection.identity is None
