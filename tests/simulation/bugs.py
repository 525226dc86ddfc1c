"""Bugs that others had (consistency.md section 9), and some of our own: each brought back by a patch of the core.

The product has no switches; a patch replaces the one function that holds the rule. Each bug names the weather that it
shows in and the invariants that are meant to catch it: a simulation that does not see them would prove nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from codec.api_keys import ApiKey
from codec.headers import ConsistencyState
from sidecar.core import apis, bounds, gate, head, positions, routing
from sidecar.core.actions import Action
from sidecar.core.apis import Kind as RequestKind
from sidecar.core.bounds import Bound
from sidecar.core.cluster import Cluster
from sidecar.core.connection import ClientConnection
from sidecar.core.events import Event, HeadAnswered
from sidecar.core.exchange import Exchange, Request
from sidecar.core.gate import Gate
from sidecar.core.head import QuorumAnswer, Verdict
from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, Identity, NodeId, Seq
from sidecar.core.ledger import Ledger
from sidecar.core.levels import required
from sidecar.core.routing import Question
from sidecar.core.sessions import Session, Sessions
from sidecar.core.sidecar import Sidecar
from sidecar.core.states import Complaint
from sidecar.core.view import Broker, Channel, Head
from tests.simulation.requests import note_of
from tests.simulation.weather import Kind

Patch = pytest.MonkeyPatch

STALE = frozenset({"proven_reads_are_fresh", "no_client_sees_time_go_back", "a_captured_bound_covers_what_was_seen"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One bug.

    Attributes:
        number: in consistency.md section 9; "own": found in this code by reading or by the simulation.
        bring_back: patches the core.
        weather: the seeds of this kind are run.
        caught_by: the invariants, one of which must fail.
    """

    number: str
    title: str
    bring_back: Callable[[Patch], None]
    weather: Kind
    caught_by: frozenset[str]


BUGS: list[Bug] = []


def bug(number: str, title: str, weather: Kind, *caught_by: str) -> Callable[[Callable[[Patch], None]], None]:
    """Registers a bug."""

    def register(bring_back: Callable[[Patch], None]) -> None:
        names = frozenset(caught_by) or STALE
        BUGS.append(Bug(number=number, title=title, bring_back=bring_back, weather=weather, caught_by=names))

    return register


@bug("1", "a head probe on its way is joined by a promise made later", Kind.CALM)
def _joined(patch: Patch) -> None:
    redeem_head = Bound.redeem_head
    patch.setattr(Bound, "redeem_head", lambda self, head: redeem_head(self, replace(head, asked=Seq(1 << 60))))


@bug("2", "a retried question takes the answer to the first one", Kind.ELECTIONS, "the_head_is_true")
def _old_answer(patch: Patch) -> None:
    head_answered = Cluster.head_answered

    def believe(self: Cluster, event: HeadAnswered, now_ms: float) -> tuple[list[Action], Verdict | None]:
        asked, _ = self._head_probes._under_way.get(event.via, (event.asked, 0.0))
        return head_answered(self, replace(event, asked=asked), now_ms)

    patch.setattr(Cluster, "head_answered", believe)


@bug("3", "the high watermark of a leader that has not committed is believed", Kind.ELECTIONS, "the_head_is_true")
def _uncommitted(patch: Patch) -> None:
    judge = head.judge

    def believe(known: Head | None, answer: QuorumAnswer) -> Verdict:
        verdict = judge(known, answer)
        return Verdict.CONFIRMED if verdict is Verdict.UNKNOWN else verdict

    patch.setattr(head, "judge", believe)


@bug("4", "an answer of an earlier epoch is believed", Kind.ELECTIONS, "epochs_never_go_back")
def _lower_epoch(patch: Patch) -> None:
    judge = head.judge

    def believe(known: Head | None, answer: QuorumAnswer) -> Verdict:
        return judge(None, answer) if judge(known, answer) is Verdict.DEPOSED else judge(known, answer)

    patch.setattr(head, "judge", believe)


@bug("5", "a session's number is dropped once some broker has caught up", Kind.LAG)
def _dropped(patch: Patch) -> None:
    broker_probed = Sessions.broker_probed

    def drop(self: Sessions, broker: Broker) -> None:
        broker_probed(self, broker)
        for session in self:
            if broker.visible >= session.bound.visible:
                session.bound.visible = UNKNOWN_OFFSET

    patch.setattr(Sessions, "broker_probed", drop)


@bug(
    "6",
    "brokers that have not said where they are count as caught up",
    Kind.DEGRADED,
    "broker_max_asks_all_live_brokers",
)
def _unprobed(patch: Patch) -> None:
    broker_max = head.broker_max
    patch.setattr(head, "broker_max", lambda brokers, known: broker_max([b for b in brokers if b.visible >= 0], known))


@bug("7", "a session's number is overwritten instead of maximised", Kind.LAG)
def _overwritten(patch: Patch) -> None:
    redeem_broker = Bound.redeem_broker

    def overwrite(self: Bound, broker: Broker) -> None:
        promises = len(self.brokers)
        redeem_broker(self, broker)
        if len(self.brokers) < promises:
            self.visible = broker.visible

    patch.setattr(Bound, "redeem_broker", overwrite)


@bug("11", "a position is kept across a restart of its broker", Kind.RESTARTS, "positions_are_true", *STALE)
def _kept(patch: Patch) -> None:
    patch.setattr(positions, "incarnation_ended", lambda broker: broker)


@bug("12", "what is visible is taken for effective", Kind.CALM)
def _visible(patch: Patch) -> None:
    def proven(bound: Bound, broker: Broker, channel: Channel, *, effective: bool) -> bool:
        return bounds.shown(bound, broker, channel)

    patch.setattr(routing, "proven", proven)


@bug("13", "the high watermark is taken for an offset", Kind.CALM, "the_head_is_true")
def _off_by_one(patch: Patch) -> None:
    advanced = head.advanced

    def exclusive(known: Head | None, answer: QuorumAnswer, asked: Seq) -> Head:
        return advanced(known, replace(answer, high_watermark=answer.high_watermark + 1), asked)

    patch.setattr(head, "advanced", exclusive)


@bug("14", "an answer of the controller leaves nothing in the session", Kind.LAG)
def _controller(patch: Patch) -> None:
    patch.setitem(apis.TRAITS, ApiKey.DESCRIBE_QUORUM, apis.PLAIN)


@bug("14", "a failed write leaves nothing in the session", Kind.LAG)
def _failed_write(patch: Patch) -> None:
    enter = Ledger.enter

    def forget(self: Ledger, exchange: Exchange, seq: Seq, now_ms: float, *, leader_changed: bool) -> None:
        if not note_of(exchange).wish.fails:
            enter(self, exchange, seq, now_ms, leader_changed=leader_changed)

    patch.setattr(Ledger, "enter", forget)


@bug("15", "numbers live on when the log is another one", Kind.MEMBERSHIP, "numbers_belong_to_this_log")
def _other_log(patch: Patch) -> None:
    patch.setattr(Sessions, "reset", lambda self, seq: None)


@bug("18", "a deposed leader is believed while nobody has seen the later epoch", Kind.ELECTIONS, "the_head_is_true")
def _no_lease(patch: Patch) -> None:
    patch.setattr(head, "lease_holds", lambda answer: True)


@bug("19", "a session that was evicted, or whose sidecar restarted, starts with nothing", Kind.RESTARTS)
def _evicted(patch: Patch) -> None:
    of = Sessions.of

    def forget(self: Sessions, name: str, seq: Seq, now_ms: float) -> Session:
        known = name in self._sessions
        session = of(self, name, seq, now_ms)
        if not known:
            session.bound = Bound()
            self._owed_head.discard(session)
        return session

    patch.setattr(Sessions, "of", forget)


@bug("20", "a position that was proven on one connection is believed of a newer one", Kind.MEMBERSHIP)
def _newer_connection(patch: Patch) -> None:
    for module in (bounds, gate):
        patch.setattr(module, "confirmed", lambda broker, channel: True)


@bug("21", "the bound of a pipelined read is taken before the write ahead of it is answered", Kind.CALM)
def _at_arrival(patch: Patch) -> None:
    enqueue = ClientConnection.enqueue

    def request(self: Gate, connection: ClientConnection, request: Request, seq: Seq, now_ms: float) -> list[Action]:
        session = self._ledger.join(connection, request, seq, now_ms)
        self._ask_again |= self._sessions.owed_head
        exchange = enqueue(connection, request, seq, now_ms)
        if exchange.kind is RequestKind.READ:
            exchange.bound = required(self.settings.policy.level, session.bound, seq)
        return self.advance(connection, seq, now_ms)

    patch.setattr(Gate, "request", request)


@bug("22", "a write overtakes a held read of its connection", Kind.LAG, "sends_keep_the_order")
def _overtaking(patch: Patch) -> None:
    eligible = ClientConnection.eligible

    def overtake(self: ClientConnection) -> tuple[Exchange, Channel | None] | None:
        write = next((waiting for waiting in self._queue if waiting.kind is RequestKind.WRITE), None)
        if write is None or self.home is None:
            return eligible(self)
        self._queue.remove(write)
        self._queue.insert(0, write)
        return write, None

    patch.setattr(ClientConnection, "eligible", overtake)


@bug("23", "the bound of a held read rises with what others do", Kind.LAG, "bounds_never_rise")
def _rising(patch: Patch) -> None:
    capture = Ledger.capture

    def again(self: Ledger, exchange: Exchange, seq: Seq, now_ms: float) -> Bound:
        exchange.bound = None
        return capture(self, exchange, seq, now_ms)

    patch.setattr(Ledger, "capture", again)


@bug("24", "what was sent after is decided by a clock that ties", Kind.CALM)
def _ties(patch: Patch) -> None:
    handle, redeem_head, redeem_broker = Sidecar.handle, Bound.redeem_head, Bound.redeem_broker

    def on_the_clock(self: Sidecar, event: Event, now_ms: float) -> list[Action]:
        self._seq = Seq(int(now_ms / 10))
        return handle(self, event, now_ms)

    patch.setattr(Sidecar, "next_seq", lambda self: self._seq)
    patch.setattr(Sidecar, "handle", on_the_clock)
    patch.setattr(Bound, "redeem_head", lambda self, head: redeem_head(self, replace(head, asked=Seq(head.asked + 1))))
    patch.setattr(
        Bound, "redeem_broker", lambda self, broker: redeem_broker(self, replace(broker, proven=Seq(broker.proven + 1)))
    )


@bug("own", "a read that is asked again keeps its bound though answers came meanwhile", Kind.NETWORK)
def _asked_again(patch: Patch) -> None:
    ask_again = ClientConnection.ask_again

    def keep(self: ClientConnection, exchange: Exchange, kind: RequestKind) -> None:
        bound = exchange.bound
        ask_again(self, exchange, kind)
        exchange.bound = bound

    patch.setattr(ClientConnection, "ask_again", keep)


@bug("own", "a read that may create topics does not count as a write", Kind.CALM, "sends_keep_the_order")
def _may_create(patch: Patch) -> None:
    patch.setattr(
        ClientConnection,
        "_ahead_on",
        lambda self, channel: all(read.channel is channel for read in self._reads_sent),
    )


@bug("own", "a broker that showed something is taken to have acted upon it", Kind.PRESSURE)
def _free_effect(patch: Patch) -> None:
    def proven(bound: Bound, broker: Broker, channel: Channel, *, effective: bool) -> bool:
        if not bounds.shown(bound, broker, channel):
            return False
        needed = max(bound.effective, bound.visible) if effective else bound.effective
        return needed == UNKNOWN_OFFSET or (bounds.confirmed(broker, channel) and broker.effective >= needed)

    patch.setattr(routing, "proven", proven)


# What brokers that implement the proposal say


@bug("8", "a token of a client is believed before a head has confirmed it", Kind.LAG, "numbers_belong_to_this_log")
def _believed(patch: Patch) -> None:
    patch.setattr(Bound, "claim", lambda self, offset, arrived, head: self.at_least(offset))


@bug("10", "a token above the head is waited for", Kind.LAG, "no_token_out_of_reach_is_waited_for")
def _waited_for(patch: Patch) -> None:
    judge_claim = Bound._judge_claim

    def wait(self: Bound, head: Head) -> None:
        judge_claim(self, head)
        self.unreachable = False

    patch.setattr(Bound, "_judge_claim", wait)


@bug("own", "a token in the answer to a write replaces the promise", Kind.LAG)
def _replaced(patch: Patch) -> None:
    enter = Ledger.enter

    def replace_promise(self: Ledger, exchange: Exchange, seq: Seq, now_ms: float, *, leader_changed: bool) -> None:
        enter(self, exchange, seq, now_ms, leader_changed=leader_changed)
        session = exchange.connection.session
        if exchange.kind is RequestKind.WRITE and exchange.token != UNKNOWN_OFFSET and session is not None:
            session.bound.head = session.bound.head_effective = NEVER
            self._sessions._owed_head.discard(session)

    patch.setattr(Ledger, "enter", replace_promise)


@bug("own", "a token in the answer to a write is taken for the broker's position", Kind.LAG, "positions_are_true")
def _of_a_write(patch: Patch) -> None:
    hear = Sidecar._hear

    def take(
        self: Sidecar, exchange: Exchange, channel: Channel, state: ConsistencyState | None, seq: Seq, now_ms: float
    ) -> list[Action]:
        kind, exchange.kind = exchange.kind, RequestKind.READ
        actions = hear(self, exchange, channel, state, seq, now_ms)
        exchange.kind = kind
        return actions

    patch.setattr(Sidecar, "_hear", take)


@bug(
    "own", "a token of a former incarnation is taken for the present one's", Kind.RESTARTS, "positions_are_true", *STALE
)
def _of_a_former_process(patch: Patch) -> None:
    heard = Cluster.heard

    def believe(self: Cluster, node_id: NodeId, *, process: int, **rest: Any) -> None:
        heard(self, node_id, process=self.view.brokers[node_id].incarnation, **rest)

    patch.setattr(Cluster, "heard", believe)


@bug("own", "a probe that was overtaken by a token ends the incarnation", Kind.NETWORK, "incarnations_end_for_a_reason")
def _overtaken(patch: Patch) -> None:
    probed = positions.probed

    def end(broker: Broker, *, asked: Seq, **rest: Any) -> Broker:
        return probed(replace(broker, learned=NEVER), asked=asked, **rest)

    patch.setattr(positions, "probed", end)


@bug("own", "a broker that refuses a stamp keeps its positions", Kind.MEMBERSHIP, "a_refusal_is_not_asked_for_again")
def _trusted_still(patch: Patch) -> None:
    def complained(
        self: Sidecar, exchange: Exchange, channel: Channel, complaint: Complaint, seq: Seq, now_ms: float
    ) -> list[Action]:
        return self.gate.complained(exchange, complaint, seq, now_ms)

    patch.setattr(Sidecar, "_complained", complained)


@bug(
    "own",
    "a read is routed on whatever channel is open, whoever is logged in there",
    Kind.LAG,
    "answers_are_fetched_as_their_client",
)
def _as_anybody(patch: Patch) -> None:
    question = Gate._question

    def ask(self: Gate, exchange: Exchange, bound: Bound, follows: Channel | None, now_ms: float) -> Question:
        found = question(self, exchange, bound, follows, now_ms)
        return replace(found, channels=list(self._cluster.channels.values())) if found.channels else found

    patch.setattr(Gate, "_question", ask)


@bug(
    "own",
    "a client whose login is refused elsewhere goes on being routed",
    Kind.LAG,
    "channels_are_opened_as_somebody_who_is_there",
    "routed_reads_go_to_an_open_channel",
)
def _still_routed(patch: Patch) -> None:
    patch.setattr(Gate, "identity_gone", lambda self, identity: None)

    def gone(self: Sidecar, identity: Identity, seq: Seq, now_ms: float) -> list[Action]:
        return []

    patch.setattr(Sidecar, "_identity_gone", gone)
