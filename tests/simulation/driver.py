"""The driver of the simulation: obeys the duties in `sidecar.core.sidecar` as `sidecar.net` does, on model connections.

Reports every event, carries out every action, and has the invariants checked after each step.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from codec.api_keys import ApiKey
from sidecar.core.actions import (
    Action,
    CloseClient,
    Decided,
    Deliver,
    Noted,
    OpenChannel,
    Probe,
    ProbeHead,
    Rediscover,
    Refuse,
    Released,
    ReopenHome,
    ResetProbe,
    Send,
    Unwatch,
    Watch,
)
from sidecar.core.apis import Kind
from sidecar.core.connection import ClientConnection
from sidecar.core.events import (
    AnswerMade,
    AnswerReceived,
    ChannelClosed,
    ChannelOpened,
    ClientClosed,
    Event,
    HeadAnswered,
    HeadFailed,
    IdentityChanged,
    IdentityGone,
    ProbeAnswered,
    ProbeClosed,
    ProbeOpened,
    Tick,
)
from sidecar.core.exchange import Exchange
from sidecar.core.head import QuorumAnswer, judge
from sidecar.core.ids import OWN, Identity, NodeId, Seq
from sidecar.core.sidecar import Sidecar
from tests.simulation import invariants
from tests.simulation.brokers import Process
from tests.simulation.clients import Client
from tests.simulation.links import Link
from tests.simulation.metadata_log import CommitHistory
from tests.simulation.requests import Reply, note_of, seen_in

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWER = b"answer"

Way = tuple[NodeId, Identity]
"""Which channel: to whom, as whom."""


@dataclass(frozen=True, slots=True)
class OpenChannelLink:
    """One channel for routed reads, and who is logged in on it."""

    channel_id: int
    link: Link
    principal: str


class Driver:
    """One life of a sidecar.

    Attributes:
        clients: the open ones.
        history: what was committed at which event.
        process_of: the process whose position the core knows as that incarnation of the node.
        promised: what a broker had when an answer left a promise on it, by node, incarnation and event.
        probing: the position probe that is under way at each broker.
        probed_ms: when the last one was sent on the present connection.
    """

    def __init__(self, world: "World", core: Sidecar) -> None:
        self.world = world
        self.core = core
        self.clock = world.clock
        self.clients: dict[ClientConnection, Client] = {}
        self.channels: dict[Way, OpenChannelLink] = {}
        self.history = CommitHistory(world.log.committed)
        self.process_of: dict[tuple[int, int], Process] = {}
        self.promised: dict[tuple[int, int, int], int] = {}
        self.probing: dict[int, Seq] = {}
        self.probed_ms: dict[int, float] = {}
        self.before = invariants.Before()
        self.dead = False
        self._events: deque[Event] = deque()
        self._handling = False
        self._tick_ms = float("inf")
        self._ticks = 0
        self._last_channel_id = 0
        self._watched: dict[int, int] = {}
        self._probes: dict[int, Link] = {}
        self._heads: dict[int, Link] = {}
        self._asked: dict[int, list[Seq]] = {}
        self._opening: dict[Way, Link] = {}
        self._principals: dict[Identity, str] = {}
        self._last_identity = OWN

    # Events in, actions out

    def handle(self, event: Event) -> None:
        """Gives an event to the core and carries out what it orders; events that this causes come after."""
        self._events.append(event)
        if self._handling or self.dead:
            return
        self._handling = True
        while self._events:
            self._step(self._events.popleft())
        self._handling = False
        self._plan_tick()
        for client in list(self.clients.values()):
            if client.unread:
                client.read_on()

    def _step(self, event: Event) -> None:
        world, core, now_ms = self.world, self.core, self.clock.now_ms
        seq = Seq(core.next_seq() + 1)
        world.story.tell(now_ms, seq, "event", event)
        world.counts["steps"] += 1
        if isinstance(event, AnswerReceived):
            self._note_promise(event, seq)
        elif isinstance(event, ChannelClosed):
            self._forget_routed(event.channel_id)
        elif isinstance(event, IdentityGone):
            self._close_channels(event.identity)
        elif isinstance(event, ClientClosed):
            self._client_closed(event.connection)
        actions = core.handle(event, now_ms)
        for action in actions:
            if not isinstance(action, (Decided, Deliver)):
                world.story.tell(now_ms, seq, "action", action)
            self._carry_out(action, seq)
        if world.swapped:
            world.noticed()
        world.forget_effects()
        idle = isinstance(event, Tick) and not actions and core.wakeup_ms() <= now_ms
        self._ticks = self._ticks + 1 if idle else 0
        invariants.check(self, event)

    def _note_promise(self, event: AnswerReceived, seq: Seq) -> None:
        """Remembers what the answering broker has now, in case the core promises just that."""
        channel = event.exchange.channel or event.exchange.connection.home
        broker = channel and self.core.cluster.view.brokers.get(channel.node_id)
        if broker:
            process = self.process_of.get((broker.node_id, broker.incarnation))
            # A process that is gone cannot be asked any more: when that is noticed, the head takes its place.
            alive = process is not None and process.alive
            visible = process.visible if process is not None and alive else self.world.log.committed
            self.promised[broker.node_id, broker.incarnation, seq] = visible

    def _plan_tick(self) -> None:
        wakeup_ms = self.core.wakeup_ms()
        if wakeup_ms < self._tick_ms:
            self._tick_ms = max(wakeup_ms, self.clock.now_ms)
            self.clock.at(self._tick_ms, self._tick, self._tick_ms)

    def _tick(self, planned_ms: float) -> None:
        if not self.dead and planned_ms == self._tick_ms:
            self._tick_ms = float("inf")
            invariants.the_core_does_not_spin(self._ticks)
            self.handle(Tick())

    def _carry_out(self, action: Action, seq: Seq) -> None:
        match action:
            case Send(exchange, channel, pure):
                self._send(exchange, channel.channel_id, pure=pure)
            case Deliver(connection):
                if not (client := self.clients[connection]).closed:
                    client.deliver()
            case Refuse(exchange):
                self.world.counts["refused"] += 1
                note_of(exchange).state = "answered"
                self.handle(AnswerMade(exchange, ANSWER))
            case CloseClient(connection, cause):
                self.world.counts[f"closed {cause}"] += 1
                self.clients[connection].leave()
            case ReopenHome(connection):
                self.world.counts["homes reopened"] += 1
                self.clients[connection].reopen_home()
            case Watch(address):
                self._watched[address.node_id] = address.port
                self._keep_probing(address.node_id, address.port)
            case Unwatch(node_id):
                self._unwatch(node_id)
            case OpenChannel(node_id, identity):
                self._open_channel(node_id, identity)
            case ResetProbe(node_id):
                self.world.counts["probes reset"] += 1
                self._probes[node_id].close()
                self._probe_ended(self._probes[node_id], node_id, report=False)
                for way in self._ways(node_id):
                    self.channels[way].link.close()
                    self._channel_ended(way)
            case Probe(node_id, asked):
                self._probe(node_id, asked)
            case ProbeHead(via, asked):
                self._probe_head(via, asked)
            case Rediscover():
                self.world.rediscover()
            case Released(exchange, _, outcome):
                self.world.counts[f"released {outcome}"] += 1
            case Decided(exchange, decision):
                self._decided(exchange, decision, seq)
            case Noted():
                pass
            case _:
                assert_never(action)

    # Clients

    def answered(self, exchange: Exchange, reply: Reply) -> None:
        """A broker answered: tells the core, or passes a plain answer on."""
        note, connection = note_of(exchange), exchange.connection
        client = note.client
        note.reply = reply
        state = reply.state if client.flexible else None
        if exchange.stamp is not None and reply.complaint is not None:
            self.world.counts[f"complaint {reply.complaint.name}"] += 1
            invariants.stamped_reads_are_not_refused(self.world, note, reply.complaint)
            note.state = "waiting"
            broker = self.core.cluster.view.brokers.get(NodeId(reply.process.node_id))
            note.refused_by = (broker.node_id, broker.incarnation) if broker is not None else None
            self.handle(AnswerReceived(exchange, b"", state=state, complaint=reply.complaint))
            return
        if note.wish.api_key is ApiKey.API_VERSIONS:
            connection.home_showed(reply.visible)
        if reply.creates:
            note.state = "waiting"
            self.world.counts["creates"] += 1
            self.handle(AnswerReceived(exchange, ANSWER, creates=True, state=state))
            return
        note.state = "answered"
        if exchange.kind is Kind.PLAIN and note.wish.api_key is not ApiKey.DESCRIBE_QUORUM and not note.wish.moved:
            if connection.is_next(exchange):
                connection.left(exchange)
                client.deliver_one(exchange)
                client.deliver()
            else:
                connection.answered(exchange, ANSWER)
            client.read_on()
            return
        if exchange.kind in (Kind.READ, Kind.CREATE):
            invariants.proven_reads_are_fresh(self.world, exchange, note, reply)
        self.world.see(exchange.request.session_name, note, seen_in(exchange, reply))
        self.handle(AnswerReceived(exchange, ANSWER, leader_changed=note.wish.moved, state=state))

    def _decided(self, exchange: Exchange, decision: str, seq: Seq) -> None:
        note = note_of(exchange)
        note.decision = decision
        self.world.counts[f"decided {decision}"] += 1
        if exchange.kind in (Kind.READ, Kind.CREATE) and note.kind is not exchange.kind:
            note.kind = exchange.kind
            note.seen = self.world.seen(exchange.request.session_name)
            invariants.a_captured_bound_covers_what_was_seen(self, exchange, note, seq)

    def _send(self, exchange: Exchange, channel_id: int, *, pure: bool) -> None:
        note, world = note_of(exchange), self.world
        client = note.client
        client.routed.pop(exchange, None)
        channel = exchange.channel
        assert channel is not None
        invariants.sends_keep_the_order(client, exchange, note, channel)
        invariants.a_refusal_is_not_asked_for_again(self, note, channel)
        note.channel = channel
        if channel is exchange.connection.home:
            client.send(exchange, world.work_of(exchange, pure=pure))
            return
        invariants.routed_reads_go_to_an_open_channel(self, exchange, channel)
        note.state = "sent"
        client.routed[exchange] = channel
        way = self.channels[channel.node_id, channel.identity]

        def on_answer(reply: Reply) -> None:
            if not client.closed:
                del client.routed[exchange]
                invariants.answers_are_fetched_as_their_client(client, note, way.principal)
                self.world.counts["fetched as a client"] += way.principal != "sidecar"
                self.answered(exchange, reply)

        way.link.send(world.work_of(exchange, pure=pure), on_answer)

    # Our own connections

    def next_channel_id(self) -> int:
        """A name for a new connection."""
        self._last_channel_id += 1
        return self._last_channel_id

    def connect(self, node_id: int, *, on_open: Callable[[Link], None], on_end: Callable[[Link], None]) -> Link:
        """A connection to the broker, where the core believes it to be."""
        port = self._watched[node_id]
        return Link(self.world.network, self.world.nodes[node_id], port, on_open=on_open, on_end=on_end)

    def _keep_probing(self, node_id: int, port: int) -> None:
        if self.dead or self._watched.get(node_id) != port or node_id in self._probes:
            return

        def on_open(_link: Link) -> None:
            self.probing.pop(node_id, None)
            self.probed_ms.pop(node_id, None)
            self.handle(ProbeOpened(NodeId(node_id)))

        self._probes[node_id] = self.connect(
            node_id, on_open=on_open, on_end=lambda link: self._probe_ended(link, node_id, report=True)
        )

    def _probe_ended(self, link: Link, node_id: int, *, report: bool) -> None:
        if self._probes.get(node_id) is link:
            del self._probes[node_id]
            self.probing.pop(node_id, None)
            self.clock.after(self.world.random.uniform(5, 40), self._keep_probing, node_id, self._watched[node_id])
            if report and link.opened:
                self.handle(ProbeClosed(NodeId(node_id), "closed"))

    def _probe(self, node_id: NodeId, asked: Seq) -> None:
        invariants.probes_keep_their_pace(self, node_id)
        self.probing[node_id] = asked
        self.probed_ms[node_id] = self.clock.now_ms

        def on_answer(reply: Reply) -> None:
            self.probing.pop(node_id, None)
            carries_state = self.world.weather.carries_state
            before = self.core.cluster.view.brokers[node_id]
            self.handle(ProbeAnswered(node_id, asked, reply.visible, carries_state=carries_state))
            broker = self.core.cluster.view.brokers.get(node_id)
            invariants.incarnations_end_for_a_reason(self, before, broker, reply.process)
            if broker is not None and broker.proven >= asked:
                self.process_of[node_id, broker.incarnation] = reply.process

        self._probes[node_id].send(self.world.look, on_answer)

    def _probe_head(self, via: NodeId, asked: Seq) -> None:
        asked_here = self._asked.setdefault(via, [])
        asked_here.append(asked)
        link = self._heads.get(via)
        if link is None:

            def on_open(_link: Link) -> None:
                for waiting in asked_here:
                    self._ask_head(via, waiting)

            self._heads[via] = self.connect(via, on_open=on_open, on_end=lambda link: self._head_ended(link, via))
        elif link.opened:
            self._ask_head(via, asked)

    def _ask_head(self, via: NodeId, asked: Seq) -> None:
        def on_answer(answer: QuorumAnswer | None) -> None:
            self._asked[via].remove(asked)
            if answer is None:
                self.handle(HeadFailed(via, asked, refused=True))
                return
            verdict = judge(self.core.cluster.view.head, answer)
            self.world.counts[f"head {verdict.name}"] += 1
            self.handle(HeadAnswered(via, asked, answer))

        self._heads[via].send(self.world.describe_quorum, on_answer)

    def _head_ended(self, link: Link, via: NodeId) -> None:
        if self._heads.get(via) is link:
            del self._heads[via]
            for asked in self._asked.pop(via, []):
                self.handle(HeadFailed(via, asked, refused=False))

    def _open_channel(self, node_id: NodeId, identity: Identity) -> None:
        channel_id, way = self.next_channel_id(), (node_id, identity)
        invariants.channels_are_opened_as_somebody_who_is_there(identity, self._principals)
        principal = "sidecar" if identity == OWN else self._principals[identity]

        def on_open(link: Link) -> None:
            del self._opening[way]
            if identity != OWN and self.world.login_random.random() < self.world.weather.login_refused:
                self.world.counts["login refused"] += 1
                link.close()
                self.handle(ChannelClosed(node_id, None, identity))
                self._forget_identity(identity)
                return
            self.channels[way] = OpenChannelLink(channel_id, link, principal)
            self.handle(ChannelOpened(node_id, channel_id, link.shown, identity))

        def on_end(link: Link) -> None:
            if link.opened:
                self._channel_ended(way)
            else:
                self._opening.pop(way, None)
                self.handle(ChannelClosed(node_id, None, identity))

        self._opening[way] = self.connect(node_id, on_open=on_open, on_end=on_end)

    def _channel_ended(self, way: Way) -> None:
        if way in self.channels:
            channel = self.channels.pop(way)
            node_id, identity = way
            self.handle(ChannelClosed(node_id, channel.channel_id, identity))

    def _ways(self, node_id: int) -> list[Way]:
        return [way for way in self.channels if way[0] == node_id]

    # Who clients are

    def logged_in(self, client: Client, *, fresh: bool) -> None:
        """A broker has accepted this client; with ``fresh`` credentials, what it was before is somebody else."""
        known = [identity for identity, principal in self._principals.items() if principal == client.principal]
        if fresh or not known:
            self._last_identity = Identity(self._last_identity + 1)
            self._principals[self._last_identity] = client.principal
            known = [self._last_identity]
        before = client.connection.identity
        self.handle(IdentityChanged(client.connection, known[-1]))
        self._forget_unused(before)

    def logs_in(self, client: Client) -> None:
        """This client begins to log in again."""
        before = client.connection.identity
        self.handle(IdentityChanged(client.connection, None))
        self._forget_unused(before)

    def _client_closed(self, connection: ClientConnection) -> None:
        self.world.client_left(self.clients.pop(connection))
        self._forget_unused(connection.identity)

    def _forget_unused(self, identity: Identity | None) -> None:
        if identity in self._principals and all(c.connection.identity != identity for c in self.clients.values()):
            self._forget_identity(identity)

    def _forget_identity(self, identity: Identity) -> None:
        if self._principals.pop(identity, None) is not None:
            self.handle(IdentityGone(identity))

    def _close_channels(self, identity: Identity) -> None:
        for way in [way for way in self._opening if way[1] == identity]:
            self._opening.pop(way).close()
        for way in [way for way in self.channels if way[1] == identity]:
            channel = self.channels.pop(way)
            channel.link.close()
            self._forget_routed(channel.channel_id)

    def _forget_routed(self, channel_id: int | None) -> None:
        for client in self.clients.values():
            for exchange in [e for e, channel in client.routed.items() if channel.channel_id == channel_id]:
                del client.routed[exchange]
                note_of(exchange).state = "waiting"
                self.world.counts["asked again"] += 1

    def _unwatch(self, node_id: int) -> None:
        del self._watched[node_id]
        for links in (self._probes, self._heads):
            if (link := links.pop(node_id, None)) is not None:
                link.close()
        for way in [way for way in self._opening if way[0] == node_id]:
            self._opening.pop(way).close()
        self.probing.pop(node_id, None)
        self._asked.pop(node_id, None)
        for way in self._ways(node_id):
            self.channels[way].link.close()
            self._forget_routed(self.channels[way].channel_id)
            self._channel_ended(way)
        for client in list(self.clients.values()):
            if client.connection.node_id == node_id:
                client.home_gone()

    def end(self) -> None:
        """The sidecar dies, and its connections with it."""
        self.dead = True
        for client in self.clients.values():
            client.abandon()
            self.world.client_left(client)
        channels = [channel.link for channel in self.channels.values()]
        for link in (*self._probes.values(), *self._heads.values(), *self._opening.values(), *channels):
            link.close()
