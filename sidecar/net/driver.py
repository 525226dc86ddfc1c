"""The driver: reports what happens to the core, and carries out what the core orders. The only place where both meet.

Obeys the duties in `sidecar.core.sidecar`. Decides nothing.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import assert_never

from codec import CodecError
from codec.headers import stamp_request, strip_response, with_response_correlation_id
from config.sidecar import Limits
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
from sidecar.core.addresses import NodePorts, PortsExhausted
from sidecar.core.answers import Reading, brokers_named, misses_topics, read_answer, refusal, throttle_time_ms
from sidecar.core.apis import Kind, Trace, api_name
from sidecar.core.connection import ClientConnection
from sidecar.core.events import (
    Address,
    AnswerMade,
    AnswerReceived,
    BrokersSeen,
    ChannelThrottled,
    ClientClosed,
    Event,
    LeaderChanged,
    Tick,
)
from sidecar.core.exchange import Exchange
from sidecar.core.ids import Identity, NodeId, Seq
from sidecar.core.long_answers import LongAnswer
from sidecar.core.requests import as_pure_read, request_body
from sidecar.core.sessions import Scope
from sidecar.core.sidecar import Sidecar
from sidecar.core.states import complaint_in, state_in
from sidecar.core.timeouts import ClusterFacts
from sidecar.core.versions import READ_HERE
from sidecar.core.view import Channel
from sidecar.net.access import Endpoint
from sidecar.net.counters import Counters
from sidecar.net.identities import LOGIN_KEYS, Identities
from sidecar.net.parties import ClientParty, DiscoveryParty, LinksParty, ListenerParty
from sidecar.net.patience import Backoff, Repeats

log = logging.getLogger("tidegate.sidecar")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """What the driver itself needs of the configuration."""

    limits: Limits
    scope: Scope
    connect_timeout_ms: int
    expose_state: bool


class Driver:
    """See the module.

    Attributes:
        core: the decisions.
        counters: what happened.
        identities: who clients are to the brokers.
        backoff: for closes that are due to a broker, by node id; None for no broker at all.
        listeners: where clients come in; set by `sidecar.app`.
        links: the sidecar's own connections; set by `sidecar.app`.
        discovery: asks who the brokers are; set by `sidecar.app`.
        expose_state: clients get the ConsistencyState that answers carry.
    """

    def __init__(self, core: Sidecar, settings: DriverSettings) -> None:
        self.core = core
        self.limits = settings.limits
        self.scope = settings.scope
        self.connect_timeout_ms = settings.connect_timeout_ms
        self.expose_state = settings.expose_state
        self.counters = Counters()
        self.backoff = Backoff()
        self._repeats = Repeats()
        self.listeners: list[ListenerParty] = []
        self.links: LinksParty
        self.discovery: DiscoveryParty
        self.identities = Identities(self)
        self._loop = asyncio.get_running_loop()
        self._clients: dict[ClientConnection, ClientParty] = {}
        self._events: deque[Event] = deque()
        self._handling = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = float("inf")
        self._last_channel_id = 0
        self._readers: set[ClientParty] = set()
        self._closed = False

    # Time and order

    def now_ms(self) -> float:
        """The loop's clock, in ms; finer than uvloop tells it, which knows whole milliseconds."""
        return time.monotonic() * 1000

    def next_seq(self) -> Seq:
        """The number of what happens now."""
        return self.core.next_seq()

    def next_channel_id(self) -> int:
        """A name for a new connection to a broker."""
        self._last_channel_id += 1
        return self._last_channel_id

    def handle(self, event: Event) -> None:
        """Gives an event to the core and carries out its orders; events that they cause come after."""
        if self._closed:
            return
        self._events.append(event)
        if self._handling:
            return
        self._handling = True
        try:
            while self._events:
                for action in self.core.handle(self._events.popleft(), self.now_ms()):
                    self._carry_out(action)
        finally:
            self._handling = False
        self._set_timer()

    def close(self) -> None:
        """Stops the timer; nothing is handled any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        wakeup_ms = self.core.wakeup_ms()
        if self._closed or (wakeup_ms >= self._timer_ms and self._timer is not None):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = wakeup_ms
        self._timer = self._loop.call_at(wakeup_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._timer, self._timer_ms = None, float("inf")
        self.handle(Tick())

    def warn(self, peer: str, text: str) -> None:
        """Logs what is wrong with a connection, unless the same was said of that host within the last minute."""
        if self._repeats.is_news((peer.rpartition(":")[0], text), self._loop.time()):
            log.warning("connection from %s %s", peer, text)

    async def endpoint(self, node_id: NodeId) -> Endpoint:
        """Where connections of clients to this broker go.

        Raises:
            OSError: the broker is not known, or its name does not resolve.
        """
        return await self.links.endpoint(node_id)

    def close_channels(self, identity: Identity) -> None:
        """Ends the channels of an identity, without a word to the core."""
        self.links.close_channels(identity)

    # Clients

    @property
    def clients(self) -> list[ClientParty]:
        """The clients that have a place in the core."""
        return list(self._clients.values())

    def open_client(self, client: ClientParty, node_id: NodeId | None) -> ClientConnection | None:
        """Gives a new client its place in the core; None if no broker can serve it."""
        connection = self.core.open_client(node_id, client.listener.identity)
        if connection is not None:
            self._clients[connection] = client
        return connection

    def client_closed(self, client: ClientParty) -> None:
        """Forgets a client."""
        self._clients.pop(client.connection, None)
        self._readers.discard(client)
        self.identities.left(client.connection)
        self.handle(ClientClosed(client.connection))

    def read_again(self, client: ClientParty) -> None:
        """Lets the client be read from again, as far as it may, once the current event has been dealt with."""
        if not self._readers:
            self._loop.call_soon(self._read_again)
        self._readers.add(client)

    def _read_again(self) -> None:
        readers, self._readers = self._readers, set()
        for client in readers:
            client.update_reading()

    def answered(self, exchange: Exchange, payload: bytes, ports: NodePorts) -> None:
        """A broker answered: makes its addresses ours, and tells the core what the answer means."""
        connection, request = exchange.connection, exchange.request
        client = self._clients.get(connection)
        if client is None:
            return
        self._observe_upstream(exchange)
        if not connection.is_next(exchange):
            exchange.lined_up_ms = self.now_ms()
        state = state_in(payload, request.api_key, request.api_version)
        try:
            if exchange.stamp is not None and (found := complaint_in(payload, request.api_key, request.api_version)):
                self.handle(AnswerReceived(exchange, b"", state=state, complaint=found))
                return
            if state is not None and not self.expose_state:
                payload = strip_response(payload, request.api_key, request.api_version)
            if exchange.kind is Kind.READ and request.may_create and misses_topics(payload, request.api_version):
                self.handle(AnswerReceived(exchange, b"", creates=True, state=state))
                return
            reading = self._read(payload, request.api_key, request.api_version, ports)
        except CodecError as error:
            log.warning("client %s closed: a broker's answer cannot be read: %s", client.peer, error)
            client.close("broker_malformed")
            return
        except PortsExhausted:
            log.error(
                "client %s closed: listener %s has no node port for any broker of the cluster; widen its node_ports",
                client.peer,
                client.listener.name,
            )
            client.close("no_node_port")
            return
        connection.home_showed(reading.shown)
        if request.api_key in LOGIN_KEYS:
            self.identities.answered(connection, request, payload)
        if exchange.kind is Kind.PLAIN and request.trace is Trace.NONE and not reading.leader_changed:
            client.answer_plain(exchange, reading.payload)
            client.deliver()
        else:
            self.handle(AnswerReceived(exchange, reading.payload, leader_changed=reading.leader_changed, state=state))

    def passes(self, exchange: Exchange, answer: LongAnswer, ports: NodePorts) -> bytes:
        """All of a large answer has come: tells the core what it means, and returns the bytes of it that remain.

        Raises:
            codec.CodecError: the bytes are no such answer.
        """
        self._make_ports(answer.named())
        if answer.leader_changed:
            self.handle(LeaderChanged(exchange, answer.state))
        return answer.last(ports)

    def _read(self, payload: bytes, api_key: int, api_version: int, ports: NodePorts) -> Reading:
        if api_key not in READ_HERE:
            return Reading(payload)
        self._make_ports(brokers_named(payload, api_key, api_version))
        return read_answer(payload, api_key, api_version, ports)

    def _make_ports(self, named: tuple[Address, ...]) -> None:
        fresh = tuple(address for address in named if address.node_id not in self.core.cluster.addresses)
        if fresh:
            self._execute_now(BrokersSeen(fresh))

    def _execute_now(self, event: BrokersSeen) -> None:
        """Takes one event out of turn: the answer that names these brokers is about to leave, and they need ports."""
        for action in self.core.handle(event, self.now_ms()):
            self._carry_out(action)

    # Orders

    def _carry_out(self, action: Action) -> None:
        match action:
            case Send():
                self._send(action)
            case Deliver(connection):
                if (client := self._clients.get(connection)) is not None:
                    client.deliver()
            case Decided(exchange, decision):
                self.counters.requests[exchange.request.api_key, decision] += 1
            case Refuse():
                self._refuse(action)
            case CloseClient(connection, cause, at):
                if (client := self._clients.get(connection)) is not None:
                    client.close(cause, at)
            case ReopenHome(connection):
                if (client := self._clients.get(connection)) is not None:
                    client.reopen_home()
            case Watch(address):
                self._watch(address)
            case Unwatch(node_id):
                self._unwatch(node_id)
            case OpenChannel(node_id, identity):
                self.links.open_channel(node_id, identity)
            case ResetProbe(node_id):
                self.links.reset_probe(node_id)
            case Probe(node_id, asked):
                self.links.probe(node_id, asked)
            case ProbeHead(via, asked):
                self.links.probe_head(via, asked)
            case Rediscover():
                self.discovery.hasten()
            case Released():
                self._count_release(action)
            case Noted(level, message):
                log.log(logging.getLevelNamesMapping()[level.upper()], "%s", message)
            case _:
                assert_never(action)

    def _send(self, action: Send) -> None:
        exchange, channel = action.exchange, action.channel
        client = self._clients.get(exchange.connection)
        if client is None:
            return
        payload = as_pure_read(exchange.request) if action.pure else exchange.request.payload
        if exchange.stamp is not None:
            payload = stamp_request(payload, exchange.stamp)
        if channel is exchange.connection.home:
            if exchange.request.api_key in LOGIN_KEYS:
                self.identities.asked(exchange.connection, exchange.request)
            client.send_home(payload)
            return

        def on_answer(answer: bytes) -> None:
            self._note_throttle(exchange, channel, answer)
            if not exchange.connection.closed:
                restored = with_response_correlation_id(answer, exchange.request.correlation_id)
                self.answered(exchange, restored, client.listener.ports)

        self.links.relay(channel.node_id, channel.identity, payload, on_answer)

    def _note_throttle(self, exchange: Exchange, channel: Channel, answer: bytes) -> None:
        """The client takes the time in the answer as its own; it is the channel that the broker does not read from."""
        request = exchange.request
        with contextlib.suppress(CodecError):
            if (throttle_ms := throttle_time_ms(answer, request.api_key, request.api_version)) > 0:
                self.handle(ChannelThrottled(channel, throttle_ms))

    def _refuse(self, action: Refuse) -> None:
        exchange, cluster = action.exchange, self.core.cluster
        client = self._clients.get(exchange.connection)
        if client is None:
            return
        brokers = []
        for address in sorted(cluster.addresses.values(), key=lambda a: a.node_id):
            at = client.listener.ports.advertised(address.node_id)
            if at is not None:
                brokers.append((address.node_id, *at, address.rack))
        facts = ClusterFacts(cluster_id=cluster.cluster_id, controller_id=cluster.controller_id, brokers=tuple(brokers))
        try:
            payload = refusal(exchange.request, request_body(exchange.request), facts, action.reason)
        except CodecError:
            payload = None
        log.warning("client %s: %s not answered: %s", client.peer, api_name(exchange.request.api_key), action.reason)
        if payload is None:
            client.close("wait_timeout", exchange)
        else:
            self.handle(AnswerMade(exchange, payload))

    def _watch(self, address: Address) -> None:
        for listener in self.listeners:
            listener.serve(address.node_id)
        self.links.watch(address)

    def _unwatch(self, node_id: NodeId) -> None:
        self.links.unwatch(node_id)
        for client in list(self._clients.values()):
            if client.connection.node_id == node_id:
                client.close("broker_left")

    # Counting

    def observe_passed(self, exchange: Exchange, now_ms: float) -> None:
        """The answer to a plain request has left as it came."""
        self.counters.passed_seconds[exchange.request.api_key].observe((now_ms - exchange.arrived_ms) / 1000)

    def observe(self, exchange: Exchange, now_ms: float) -> None:
        """An answer that was read, kept or made here has left."""
        counters, api_key = self.counters, exchange.request.api_key
        took_ms = now_ms - exchange.arrived_ms
        counters.request_seconds[api_key].observe(took_ms / 1000)
        in_line_ms = _waited_to_go_ms(exchange)
        if exchange.lined_up_ms:
            in_line_ms += now_ms - exchange.lined_up_ms
        if in_line_ms > 0:
            counters.head_of_line_seconds.observe(in_line_ms / 1000)
        own_ms = took_ms - in_line_ms - exchange.elsewhere_ms
        counters.sidecar_seconds[api_key].observe(max(0.0, own_ms) / 1000)

    def _observe_upstream(self, exchange: Exchange) -> None:
        took_ms = self.now_ms() - exchange.sent_ms
        exchange.elsewhere_ms += took_ms
        self.counters.upstream_seconds[exchange.request.api_key].observe(took_ms / 1000)

    def _count_release(self, action: Released) -> None:
        api_key = action.exchange.request.api_key
        self.counters.holds[api_key, action.why, action.outcome] += 1
        self.counters.held_seconds[api_key].observe(action.held_ms / 1000)
        action.exchange.elsewhere_ms += action.held_ms
        if action.exchange.prevented:
            self.counters.prevented[api_key] += 1


def _waited_to_go_ms(exchange: Exchange) -> float:
    """How long a request waited for earlier ones of its connection: a read until eligible, a write until it went."""
    went_ms = exchange.eligible_ms if exchange.kind is Kind.READ else exchange.sent_ms
    return max(0.0, went_ms - exchange.arrived_ms)
