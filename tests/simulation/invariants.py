"""What must hold whatever happens; white box: the simulator compares the core's state with the truth that it knows.

Each function is one invariant; its name is that of the `Violation`. `EVERY_STEP` are checked after each event, the
others where the event or action that they speak of passes by.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sidecar.core.apis import Kind
from sidecar.core.bounds import Bound
from sidecar.core.connection import ClientConnection
from sidecar.core.events import (
    BrokersSeen,
    ChannelClosed,
    ClusterDescribed,
    Event,
    HeadAnswered,
    IdentityGone,
)
from sidecar.core.exchange import Exchange
from sidecar.core.ids import NEVER, OWN, UNKNOWN_OFFSET, Identity, NodeId, Seq
from sidecar.core.levels import Level
from sidecar.core.states import Complaint
from sidecar.core.view import Broker, Channel, Head, Load
from tests.simulation.brokers import Process
from tests.simulation.requests import READS, WRITES, Note, Reply, Seen, note_of, seen_in
from tests.simulation.story import Violation

if TYPE_CHECKING:
    from tests.simulation.clients import Client
    from tests.simulation.driver import Driver
    from tests.simulation.world import World

PROVEN = ("forward", "route")
TICKS_MAX = 5


@dataclass(slots=True)
class Before:
    """What the step before left, for invariants about change."""

    epoch: int = -1
    head: Head | None = None
    stand_in: Seq = NEVER
    bounds: dict[Exchange, tuple[Bound, int]] = field(default_factory=dict)


# Freshness


def proven_reads_are_fresh(world: "World", exchange: Exchange, note: Note, reply: Reply) -> None:
    """A read answered as proven shows all that its session had seen when it became eligible.

    With `linearizable` all that was committed when it arrived; where the depth is effective, or the session changed
    access, the broker had acted upon it. A Metadata request that creates topics is checked alike.
    """
    if not world.weather.fresh or note.decision not in PROVEN or note.generation != world.generation:
        return
    level = world.weather.level
    if level is Level.EVENTUAL:
        return
    required = note.seen.visible
    if level is Level.LINEARIZABLE and exchange.kind is Kind.READ:
        required = max(required, note.committed)
    if note.claim is not None and not note.wish.foreign:
        required = max(required, note.claim.consistency_token)
    if reply.visible < required:
        raise Violation("proven_reads_are_fresh", f"{note} shows {reply.visible}, its session had seen {required}")
    acted = max(note.seen.effective, required) if exchange.request.effective else note.seen.effective
    if reply.effective < acted:
        raise Violation(
            "proven_reads_are_fresh", f"{note}: the broker acts upon {reply.effective}, the session had seen {acted}"
        )


def no_client_sees_time_go_back(client: "Client", exchange: Exchange, note: Note, reply: Reply) -> None:
    """In the order in which a client gets its answers, no proven read shows less than the answers before it."""
    world = client.driver.world
    name = note.generation, exchange.request.session_name
    floor = client.floor.get(name, Seen())
    checked = (
        world.weather.fresh
        and world.weather.level is not Level.EVENTUAL
        and note.generation == world.generation
        and exchange.kind in (Kind.READ, Kind.CREATE)
        and note.decision in PROVEN
    )
    if checked and reply.visible < floor.visible:
        raise Violation(
            "no_client_sees_time_go_back", f"{note} shows {reply.visible}, answers before it showed {floor.visible}"
        )
    if exchange.kind is not Kind.PLAIN:
        client.floor[name] = floor.merged(seen_in(exchange, reply))


def a_captured_bound_covers_what_was_seen(driver: "Driver", exchange: Exchange, note: Note, seq: int) -> None:
    """The bound of a read, at its true worth, covers what its session had seen, and for `linearizable` the head."""
    world, bound = driver.world, exchange.bound
    if not world.weather.fresh or world.weather.level is Level.EVENTUAL or world.swapped:
        return
    if note.generation == world.generation and note.decision in (*PROVEN, "hold") and bound is not None:
        worth = _worth(driver, bound)
        required = note.seen.visible
        if world.weather.level is Level.LINEARIZABLE and exchange.kind is Kind.READ:
            required = max(required, note.committed)
        if worth < required:
            raise Violation(
                "a_captured_bound_covers_what_was_seen", f"{note} at {seq} requires {worth}, had seen {required}"
            )


def _worth(driver: "Driver", bound: Bound) -> int:
    worth = max(bound.visible, bound.effective, driver.history.at(bound.head), driver.history.at(bound.head_effective))
    for node_id, promise in (*bound.brokers.items(), *bound.acted.items()):
        worth = max(worth, driver.promised.get((node_id, promise.incarnation, promise.seq), UNKNOWN_OFFSET))
    return worth


def bounds_never_rise(driver: "Driver", event: Event) -> None:
    """What a held read requires is taken once; it does not rise with what others of its session do meanwhile."""
    before, now = driver.before.bounds, driver.before.bounds = driver.before.bounds, {}
    about = getattr(getattr(event, "exchange", event), "connection", None)
    renewing = isinstance(event, (ChannelClosed, IdentityGone, ClusterDescribed, BrokersSeen, HeadAnswered))
    for exchange, held in driver.core.gate.held.items():
        latest = max(
            [
                held.bound.head,
                held.bound.head_effective,
                *(promise.seq for promise in (*held.bound.brokers.values(), *held.bound.acted.values())),
            ]
        )
        now[exchange] = held.bound, latest
        bound, promised = before.get(exchange, (held.bound, latest))
        renewed = bound is not held.bound and not renewing and about is not exchange.connection
        if renewed or (bound is held.bound and latest > promised):
            raise Violation("bounds_never_rise", f"{note_of(exchange)}: promise {latest}, was {promised}")


def stamped_reads_are_not_refused(world: "World", note: Note, complaint: Complaint) -> None:
    """A broker that is told what a read requires has it: the proof came first. Another log may have come in between."""
    if (
        complaint is Complaint.STALE
        and not world.weather.fussy
        and note.generation == world.generation
        and not world.swapped
    ):
        raise Violation("stamped_reads_are_not_refused", f"{note} was refused: stale")


def a_refusal_is_not_asked_for_again(driver: "Driver", note: Note, channel: Channel) -> None:
    """A read that a broker refused goes there again only once all that was known of that broker was asked anew."""
    broker = driver.core.cluster.view.brokers.get(channel.node_id)
    if broker is not None and note.decision in PROVEN and note.refused_by == (broker.node_id, broker.incarnation):
        raise Violation("a_refusal_is_not_asked_for_again", f"{note} goes back to broker {broker.node_id} unasked")


# The head


def the_head_is_true(driver: "Driver", _event: Event) -> None:
    """The head is at most what is committed, and at least what was committed when its probe was sent."""
    head, world = driver.core.cluster.view.head, driver.world
    if head is None or head is driver.before.head or world.swapped:
        return
    driver.before.head = head
    committed = world.log.committed
    if head.offset > committed:
        raise Violation("the_head_is_true", f"head {head} above {committed}, which is committed")
    if head.leader_epoch >= 0 and head.offset < driver.history.at(head.asked):
        raise Violation(
            "the_head_is_true", f"{head}, but {driver.history.at(head.asked)} was committed at {head.asked}"
        )


def broker_max_asks_all_live_brokers(driver: "Driver", _event: Event) -> None:
    """Where the brokers' positions stand in for the head, each live one was asked since the head's moment."""
    view = driver.core.cluster.view
    if view.head is None or view.head.leader_epoch >= 0 or not driver.core.cluster.asks_brokers:
        return
    live = [broker for broker in view.brokers.values() if broker.up]
    late = [broker for broker in live if broker.visible > view.head.offset]
    if late:
        raise Violation("broker_max_asks_all_live_brokers", f"{view.head} is below {late}")
    if view.head.asked > driver.before.stand_in:
        driver.before.stand_in = view.head.asked
        silent = [broker for broker in live if broker.proven < view.head.asked]
        if not live or silent:
            raise Violation("broker_max_asks_all_live_brokers", f"{view.head} though {silent or 'nobody lives'}")


def epochs_never_go_back(driver: "Driver", event: Event) -> None:
    """No leader of an earlier epoch is believed once a later one is known."""
    head = driver.core.cluster.view.head
    epoch = head.leader_epoch if head is not None else -1
    if isinstance(event, HeadAnswered) and epoch < driver.before.epoch:
        raise Violation("epochs_never_go_back", f"epoch {epoch} after {driver.before.epoch}")
    driver.before.epoch = epoch


def numbers_belong_to_this_log(driver: "Driver", _event: Event) -> None:
    """No session requires, and no held read waits for, an offset that is not committed: it might wait for ever."""
    if driver.world.swapped:
        return
    committed = driver.world.log.committed
    bounds = [session.bound for session in driver.core.sessions]
    bounds += [held.bound for held in driver.core.gate.held.values()]
    for bound in bounds:
        if max(bound.visible, bound.effective) > committed:
            raise Violation(
                "numbers_belong_to_this_log", f"{bound.visible}/{bound.effective} required, {committed} is committed"
            )


# Order


def answers_leave_in_order(client: "Client", note: Note) -> None:
    """Answers leave in the order of the requests, whoever made them."""
    if not client.expected or client.expected[0] is not note:
        raise Violation("answers_leave_in_order", f"{note} answered, expected {[str(n) for n in client.expected]}")


def home_answers_belong_to_their_requests(sent: Exchange, expected: Exchange, connection: ClientConnection) -> None:
    """The core knows which request the next answer on the home connection belongs to."""
    known = connection.home_answered()
    if known is not sent or expected is not sent:
        raise Violation(
            "home_answers_belong_to_their_requests", f"{note_of(sent)} taken for {known and note_of(known)}"
        )


def nothing_overtakes_a_waiting_write(client: "Client", note: Note) -> None:
    """While a write waits for its turn, no later plain request goes to the broker."""
    for earlier in client.expected:
        if earlier.number < note.number and earlier.state == "waiting" and _is_write(earlier):
            raise Violation("nothing_overtakes_a_waiting_write", f"{note} overtakes {earlier}")


def sends_keep_the_order(client: "Client", exchange: Exchange, note: Note, channel: Channel) -> None:
    """A write goes behind every read before it, a read behind every write before it; reads follow each other.

    Only a read that gave up waiting may leave the channel of the read before it, at the price of being called unproven.
    """
    for earlier in client.expected:
        if earlier.number >= note.number:
            break
        if not _is_gated(earlier) or earlier.state == "answered" or note.decision == "unproven":
            continue
        waits = earlier.state == "waiting"
        written = _is_write(earlier) or earlier.kind is Kind.CREATE
        elsewhere = earlier.channel is not channel or earlier.wish.may_create
        if exchange.kind is Kind.READ:
            if waits or elsewhere or written:
                raise Violation("sends_keep_the_order", f"read {note} overtakes {earlier} ({earlier.state})")
        elif waits or (elsewhere and not written):
            raise Violation("sends_keep_the_order", f"write {note} overtakes {earlier} ({earlier.state})")
    if (exchange.request.pinned or exchange.kind is not Kind.READ) and channel is not exchange.connection.home:
        raise Violation("sends_keep_the_order", f"{note} leaves the client's own broker")


def routed_reads_go_to_an_open_channel(driver: "Driver", exchange: Exchange, channel: Channel) -> None:
    """A read is routed only where its client may be sent, on a channel that is open."""
    known = driver.channels.get((channel.node_id, channel.identity))
    if exchange.connection.identity is None or known is None or known.channel_id != channel.channel_id:
        raise Violation("routed_reads_go_to_an_open_channel", f"{note_of(exchange)} sent on {channel}")


def answers_are_fetched_as_their_client(client: "Client", note: Note, principal: str) -> None:
    """What a client reads from another broker is what its own principal may see there."""
    if principal != client.principal:
        raise Violation("answers_are_fetched_as_their_client", f"{note} of {client.principal} fetched as {principal}")


def channels_are_opened_as_somebody_who_is_there(identity: Identity, principals: Mapping[Identity, str]) -> None:
    """Nobody logs in as a client that has left, or that a broker has refused."""
    if identity != OWN and identity not in principals:
        raise Violation("channels_are_opened_as_somebody_who_is_there", f"a channel as {identity}")


def _is_write(note: Note) -> bool:
    return note.wish.api_key in WRITES


def _is_gated(note: Note) -> bool:
    return note.wish.api_key in WRITES or note.wish.api_key in READS


# Holds


def holds_are_bounded(driver: "Driver", _event: Event) -> None:
    """Every held read is the first of its connection, has a deadline, and does not outlive it; the limits hold.

    One that is held again, when its time is up already, ends with the tick that the core asks for at once.
    """
    gate, weather, now_ms = driver.core.gate, driver.world.weather, driver.clock.now_ms
    for exchange, held in gate.held.items():
        late = held.deadline_ms < now_ms < driver.core.wakeup_ms()
        note = note_of(exchange)
        since_ms = note.arrived_ms if not note.behind_write and exchange.kind is Kind.READ else exchange.eligible_ms
        if held.deadline_ms > since_ms + weather.wait_timeout_ms or late:
            raise Violation("holds_are_bounded", f"{note_of(exchange)} held until {held.deadline_ms} at {now_ms}")
        if exchange.connection.front is not exchange or exchange.connection.closed or exchange.channel is not None:
            raise Violation("holds_are_bounded", f"{note_of(exchange)} is held out of turn")
    if len(gate.held) > weather.held_requests_max:
        raise Violation("holds_are_bounded", f"{len(gate.held)} held")


def held_bytes_are_true(driver: "Driver", _event: Event) -> None:
    """The bytes that count as held are those of the held requests."""
    gate = driver.core.gate
    truth = sum(len(exchange.request.payload) for exchange in gate.held)
    if gate.holds.bytes != truth:
        raise Violation("held_bytes_are_true", f"{gate.holds.bytes}, should be {truth}")


def no_token_out_of_reach_is_waited_for(driver: "Driver", _event: Event) -> None:
    """A token above a head that was asked for after it came is not waited for, once a broker is there to refuse it."""
    head = driver.core.cluster.view.head
    if head is None or head.leader_epoch < 0:
        return
    for exchange, held in driver.core.gate.held.items():
        bound = held.bound
        beyond = NEVER < bound.claimed_at < head.asked and head.offset < bound.claimed
        refusable = exchange.connection.home is not None
        if beyond and refusable and held.deadline_ms > driver.clock.now_ms:
            raise Violation("no_token_out_of_reach_is_waited_for", f"{note_of(exchange)} waits for {bound.claimed}")


def the_core_does_not_spin(ticks: int) -> None:
    """A tick gets done what was due; the core does not ask for the next one at the same moment again and again."""
    if ticks > TICKS_MAX:
        raise Violation("the_core_does_not_spin", f"{ticks} ticks without progress")


# Accounts


def loads_are_true(driver: "Driver", _event: Event) -> None:
    """The load of a broker is what open clients have in flight there; waiting answers count with their size."""
    truth: Counter[Load] = Counter()
    loads = {channel.load for channel in driver.core.cluster.channels.values()} | set(
        driver.core.cluster.loads.values()
    )
    for client in driver.clients.values():
        home = client.connection.home
        if home is not None:
            truth[home.load] += len(client.at_home)
        for channel in client.routed.values():
            truth[channel.load] += 1
        if client.connection.waiting_bytes != sum(
            len(exchange.answer) for exchange in client.connection._exchanges if exchange.answer is not None
        ):
            raise Violation("loads_are_true", f"{client.name}: {client.connection.waiting_bytes} bytes wait")
    for load in loads | set(truth):
        if load.in_flight != truth[load]:
            raise Violation("loads_are_true", f"{load.in_flight} in flight, should be {truth[load]}")


def debts_are_true(driver: "Driver", _event: Event) -> None:
    """The head is asked for exactly while a session waits for it; promises on a broker are on that broker's list."""
    sessions = driver.core.sessions
    owed = {session for session in sessions if session.bound.head_promised != NEVER}
    if sessions._owed_head != owed:
        raise Violation(
            "debts_are_true", f"owed {[s.name for s in sessions._owed_head]}, pending {[s.name for s in owed]}"
        )
    for session in sessions:
        for node_id in (*session.bound.brokers, *session.bound.acted):
            if session not in sessions._owed_broker.get(node_id, ()):
                raise Violation("debts_are_true", f"the promise of {session.name} on broker {node_id} is on no list")


def sessions_are_bounded(driver: "Driver", _event: Event) -> None:
    """No more sessions are kept than configured; those of closed connections only are gone."""
    sessions = driver.core.sessions
    if len(sessions) > driver.world.weather.sessions_max:
        raise Violation("sessions_are_bounded", f"{len(sessions)} sessions")
    if any(session.clients < 0 for session in sessions):
        raise Violation("sessions_are_bounded", "more clients left than came")


def closed_connections_leave_nothing(driver: "Driver", _event: Event) -> None:
    """What a client that left had held, queued or in flight is free."""
    core = driver.core
    kept = set(core.connections.values())
    if kept != driver.clients.keys():
        raise Violation("closed_connections_leave_nothing", f"{len(kept)} connections are kept")
    if any(exchange.connection.closed for exchange in core.gate.held):
        raise Violation("closed_connections_leave_nothing", "a request of a closed connection is held")
    open_names = {f"connection:{connection.connection_id}" for connection in kept}
    stale = [s.name for s in core.sessions if s.name.startswith("connection:") and s.name not in open_names]
    if stale:
        raise Violation("closed_connections_leave_nothing", f"sessions {stale} of closed connections")


# Probes


def probes_keep_their_pace(driver: "Driver", node_id: NodeId) -> None:
    """At most one position probe is under way at a broker, and they keep their least distance."""
    last_ms = driver.probed_ms.get(node_id, float("-inf"))
    if node_id in driver.probing:
        raise Violation("probes_keep_their_pace", f"broker {node_id} is being probed already")
    if driver.clock.now_ms - last_ms < driver.world.weather.min_interval_ms - 1e-6:
        raise Violation("probes_keep_their_pace", f"broker {node_id} was probed at {last_ms}")


def positions_are_true(driver: "Driver", _event: Event) -> None:
    """What is known of a broker's position, the process that reported it does have."""
    for broker in driver.core.cluster.view.brokers.values():
        process = driver.process_of.get((broker.node_id, broker.incarnation))
        if process is not None and (broker.visible > process.visible or broker.effective > process.effective):
            raise Violation("positions_are_true", f"{broker}, but it is at {process.visible}/{process.effective}")


def incarnations_end_for_a_reason(driver: "Driver", before: Broker, after: Broker | None, process: Process) -> None:
    """A position is not taken for another process's while the one that is known answers."""
    known = driver.process_of.get((before.node_id, before.incarnation))
    if after is not None and after.incarnation != before.incarnation and known is process:
        raise Violation("incarnations_end_for_a_reason", f"{before} is {after} now, though it is the same process")


# Liveness


def everything_is_answered(world: "World") -> None:
    """Once the faults are over, every request is answered within the bounds, or its connection was closed."""
    for client in world.driver.clients.values():
        if client.expected or client.unread:
            waiting = [f"{note} ({note.state})" for note in client.expected]
            raise Violation("everything_is_answered", f"{client.name}: {waiting}, unread {len(client.unread)}")
    if world.driver.core.gate.held:
        raise Violation("everything_is_answered", "something is held")


def every_session_can_read(world: "World", notes: list[Note]) -> None:
    """Once the faults are over, a read of every session is proven: no promise is left that nobody can redeem."""
    for note in notes:
        if note.reply is None or note.decision not in PROVEN:
            raise Violation("every_session_can_read", f"{note}: {note.decision or note.state}")


EVERY_STEP = (
    bounds_never_rise,
    the_head_is_true,
    broker_max_asks_all_live_brokers,
    epochs_never_go_back,
    numbers_belong_to_this_log,
    holds_are_bounded,
    held_bytes_are_true,
    no_token_out_of_reach_is_waited_for,
    loads_are_true,
    debts_are_true,
    sessions_are_bounded,
    closed_connections_leave_nothing,
    positions_are_true,
)


def check(driver: "Driver", event: Event) -> None:
    """Checks what must hold after every step."""
    for invariant in EVERY_STEP:
        invariant(driver, event)
