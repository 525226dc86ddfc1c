"""Bounds: what a session requires of a broker before that broker may answer its reads (consistency.md section 4).

A bound is a number, or a *promise* that a later probe turns into a number: "at least the head as of any probe sent
after event s", "at least what broker b had at event s". Promises cost nothing when they are made and are redeemed
together, for everybody who waits, by the first probe that was sent after them.

Pure values and arithmetic; who probes, and when, is not known here.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, NodeId, Offset, Seq
from sidecar.core.view import Broker, Channel, Head


class Why(Enum):
    """What a read waits for, in words for `/held` and the metrics."""

    OWN_WRITE = "own write"
    NEW_SESSION = "new session"
    LINEARIZABLE = "linearizable"
    LOST_BROKER = "lost broker"
    EARLIER_READ = "earlier read"
    BROKER_BEHIND = "broker behind"
    NOT_EFFECTIVE = "not effective"
    CONNECTING = "connecting"
    CLIENT_STATE = "client state"


GONE: Final = -1
"""No incarnation at all: the broker left the cluster, or its address."""


@dataclass(frozen=True, slots=True)
class AfterBroker:
    """``after(b, s)``: at least what this incarnation of the broker had at ``seq``."""

    incarnation: int
    seq: Seq

    def redeemed_by(self, broker: Broker) -> bool:
        """Whether the position of ``broker`` was asked for after the promise was made, of the same process."""
        return self.incarnation == broker.incarnation and self.seq < broker.proven


@dataclass(frozen=True, slots=True)
class AfterActing(AfterBroker):
    """The same of what the broker had acted upon.

    It stays a promise when it is redeemed: on its own broker it is free for ever, while the number would have to be
    proven to act there, which takes the next record of the log.

    Attributes:
        offset: what is required of every other broker; -1 until the next probe.
    """

    offset: Offset = UNKNOWN_OFFSET


class Bound:
    """What must be proven, as numbers and promises. Only ever grows, until it is `capture`d by a read.

    Attributes:
        visible: offset that the answer must show.
        effective: offset that the broker must have acted upon, for reads of any depth.
        head: the latest promise on the head that is not yet a number, `NEVER` if there is none.
        head_why: what made that promise.
        head_effective: the same, for the effective offset.
        brokers: the latest promise on each broker, for what it had shown.
        acted: the same for what it had acted upon, which is all that an answer of its authorizer can show.
        claimed: an offset that the client asks for and nobody has confirmed yet; only ever in the bound of one read.
        claimed_at: when that read arrived.
        unreachable: a head that was asked for after that is below what the client asks for: no waiting helps.
    """

    __slots__ = (
        "acted",
        "brokers",
        "claimed",
        "claimed_at",
        "effective",
        "head",
        "head_effective",
        "head_why",
        "unreachable",
        "visible",
    )

    def __init__(self) -> None:
        self.visible: Offset = UNKNOWN_OFFSET
        self.effective: Offset = UNKNOWN_OFFSET
        self.head: Seq = NEVER
        self.head_why = Why.NEW_SESSION
        self.head_effective: Seq = NEVER
        self.brokers: dict[NodeId, AfterBroker] = {}
        self.acted: dict[NodeId, AfterActing] = {}
        self.claimed: Offset = UNKNOWN_OFFSET
        self.claimed_at: Seq = NEVER
        self.unreachable = False

    def capture(self) -> "Bound":
        """A copy for one read: the session may move on, this read's requirement does not rise with it."""
        copy = Bound()
        copy.visible, copy.effective = self.visible, self.effective
        copy.head, copy.head_why, copy.head_effective = self.head, self.head_why, self.head_effective
        copy.brokers, copy.acted = dict(self.brokers), dict(self.acted)
        return copy

    # What raises a bound

    def after_head(self, seq: Seq, why: Why, *, effective: bool = False) -> None:
        """Promises the head as of a probe sent after ``seq``; a later promise includes an earlier one."""
        if seq > self.head:
            self.head, self.head_why = seq, why
        if effective:
            self.head_effective = max(self.head_effective, seq)

    def after_broker(self, broker: Broker, seq: Seq) -> None:
        """Promises what ``broker`` had at ``seq``."""
        former = self.brokers.get(broker.node_id)
        self.brokers[broker.node_id] = AfterBroker(broker.incarnation, seq)
        if former is not None and former.incarnation != broker.incarnation:
            # What the former process had can no longer be asked of it; the head includes it.
            self.after_head(former.seq, Why.LOST_BROKER)

    def after_acting(self, broker: Broker, seq: Seq) -> None:
        """Promises what ``broker`` had acted upon at ``seq``."""
        self.give_up_broker(broker.node_id, broker.incarnation)
        self.acted[broker.node_id] = AfterActing(broker.incarnation, seq)

    def at_least(self, offset: Offset, *, effective: bool = False) -> None:
        """Requires an offset that a broker of this cluster has named: a number at once."""
        self.visible = max(self.visible, offset)
        if effective:
            self.effective = max(self.effective, offset)

    def claim(self, offset: Offset, arrived: Seq, head: Head | None) -> None:
        """Requires what the client asks for: a number once a head shows that it exists, else it might wait for ever.

        Args:
            arrived: when the read came.
            head: the present one.
        """
        self.claimed, self.claimed_at = offset, arrived
        if head is not None:
            self._judge_claim(head)

    # What redeems a promise

    def redeem_head(self, head: Head) -> None:
        """Takes a confirmed head as the number of every head promise that was made before its probe was sent."""
        if NEVER < self.head < head.asked:
            self.visible = max(self.visible, head.offset)
            self.head = NEVER
            # The number now required includes all that any broker had before the head was asked.
            self.brokers = {node_id: p for node_id, p in self.brokers.items() if p.seq >= head.asked}
            self.acted = {node_id: p for node_id, p in self.acted.items() if p.seq >= head.asked}
        if NEVER < self.head_effective < head.asked:
            self.effective = max(self.effective, head.offset)
            self.head_effective = NEVER
        if self.claimed_at:
            self._judge_claim(head)

    def _judge_claim(self, head: Head) -> None:
        if head.offset >= self.claimed:
            self.at_least(self.claimed)
            self.claimed_at = NEVER
        elif self.claimed_at < head.asked and head.leader_epoch >= 0:
            self.unreachable = True

    def redeem_broker(self, broker: Broker) -> None:
        """Takes the position of ``broker`` as the number of an earlier promise on the same incarnation of it."""
        promise = self.brokers.get(broker.node_id)
        if promise is not None and promise.redeemed_by(broker):
            self.visible = max(self.visible, broker.visible)
            del self.brokers[broker.node_id]
        acted = self.acted.get(broker.node_id)
        if acted is not None and acted.offset == UNKNOWN_OFFSET and acted.redeemed_by(broker):
            self.acted[broker.node_id] = replace(acted, offset=broker.visible)

    def give_up_broker(self, node_id: NodeId, incarnation: int) -> None:
        """Turns a promise on an incarnation that ended into one on the head, which includes all that any broker had.

        Args:
            incarnation: the present one; `GONE` when the broker left.
        """
        promise = self.brokers.get(node_id)
        if promise is not None and promise.incarnation != incarnation:
            self.after_head(promise.seq, Why.LOST_BROKER)
            del self.brokers[node_id]
        acted = self.acted.get(node_id)
        if acted is not None and acted.incarnation != incarnation:
            if acted.offset == UNKNOWN_OFFSET:
                self.after_head(acted.seq, Why.LOST_BROKER)
            self.visible = max(self.visible, acted.offset)
            del self.acted[node_id]

    @property
    def to_probe(self) -> set[NodeId]:
        """The brokers whose promises the next probe turns into numbers."""
        return {*self.brokers, *(node_id for node_id, p in self.acted.items() if p.offset == UNKNOWN_OFFSET)}

    @property
    def head_promised(self) -> Seq:
        """The latest moment whose head is waited for, at either depth or for a claim; `NEVER` if all are numbers."""
        return max(self.head, self.head_effective, self.claimed_at)


def confirmed(broker: Broker, channel: Channel) -> bool:
    """Whether the broker's position speaks for this connection: its probe was sent after the connection was open."""
    return broker.proven > channel.established


def shown(bound: Bound, broker: Broker, channel: Channel) -> bool:
    """Whether an answer on ``channel`` is sure to show all that ``bound`` requires, acted upon or not.

    A promise on the broker itself is free while its incarnation lasts: what a process had, it has.
    """
    if bound.head_promised:
        return False
    sure = confirmed(broker, channel)
    for node_id, promise in bound.brokers.items():
        if not (sure and node_id == broker.node_id and promise.incarnation == broker.incarnation):
            return False
    elsewhere = _acted_elsewhere(bound, broker, sure=sure)
    if elsewhere is None:
        return False
    visible = max(channel.shown, broker.visible) if sure else channel.shown
    return visible >= max(bound.visible, bound.effective, elsewhere)


def proven(bound: Bound, broker: Broker, channel: Channel, *, effective: bool) -> bool:
    """Whether an answer on ``channel`` is sure to meet ``bound``.

    Args:
        effective: the read is of depth effective: all that it requires must have been acted upon.
    """
    if not shown(bound, broker, channel) or (effective and bound.brokers):
        # What a broker had shown, it need not have acted upon: a promise on it is free for the visible depth only.
        return False
    sure = confirmed(broker, channel)
    required = bound.effective
    if effective:
        required = max(required, bound.visible, _acted_elsewhere(bound, broker, sure=sure) or UNKNOWN_OFFSET)
    return required == UNKNOWN_OFFSET or (sure and broker.effective >= required)


def _acted_elsewhere(bound: Bound, broker: Broker, *, sure: bool) -> Offset | None:
    """The highest offset that other processes had acted upon when they answered; None while it is not known."""
    highest = UNKNOWN_OFFSET
    for node_id, promise in bound.acted.items():
        if sure and node_id == broker.node_id and promise.incarnation == broker.incarnation:
            continue
        if promise.offset == UNKNOWN_OFFSET:
            return None
        highest = max(highest, promise.offset)
    return highest
