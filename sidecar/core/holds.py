"""Holds: the gated reads that wait, each with a deadline, and in words what for.

Keeps and counts them. Which reads are held, and what becomes of one whose time is up, is decided in
`sidecar.core.gate`.
"""

from dataclasses import dataclass

from sidecar.core.bounds import Bound, Why
from sidecar.core.exchange import Exchange
from sidecar.core.view import Broker, Channel


@dataclass(eq=False, slots=True, kw_only=True)
class HeldRead:
    """A read that waits, always the front of its connection's queue.

    Attributes:
        follows: it may go on this channel only, behind an earlier read of its connection.
        visible_ms: since when a broker shows all that it requires, so that only the effect is missing.
    """

    exchange: Exchange
    bound: Bound
    follows: Channel | None
    why: Why
    since_ms: float
    deadline_ms: float
    visible_ms: float | None = None

    def showed(self, shown: bool, now_ms: float) -> None:
        """Notes whether a broker shows all that it requires now."""
        if not shown:
            self.visible_ms = None
        elif self.visible_ms is None:
            self.visible_ms = now_ms


class Holds:
    """All held reads, the oldest first.

    Args:
        requests_max, bytes_max: how many are kept, and of what size in all.
        effective_grace_ms: how long one waits when only the effect is missing.

    Attributes:
        reads: by exchange.
        bytes: size of their requests.
    """

    def __init__(self, *, requests_max: int, bytes_max: int, effective_grace_ms: int) -> None:
        self.reads: dict[Exchange, HeldRead] = {}
        self.bytes = 0
        self._requests_max = requests_max
        self._bytes_max = bytes_max
        self._effective_grace_ms = effective_grace_ms

    def limit(self, *, requests_max: int, bytes_max: int, effective_grace_ms: int) -> None:
        """Obeys other limits from now on; what is held already stays."""
        self._requests_max, self._bytes_max = requests_max, bytes_max
        self._effective_grace_ms = effective_grace_ms

    def has_room(self, exchange: Exchange) -> bool:
        """Whether the limits allow one more."""
        fits = self.bytes + len(exchange.request.payload) <= self._bytes_max
        return fits and len(self.reads) < self._requests_max

    def add(self, held: HeldRead) -> None:
        """Keeps a read; there must be room for it."""
        self.reads[held.exchange] = held
        self.bytes += len(held.exchange.request.payload)

    def let_go(self, exchange: Exchange) -> HeldRead:
        """Takes a read out; its bound is taken anew should it come back."""
        held = self.reads.pop(exchange)
        self.bytes -= len(exchange.request.payload)
        exchange.bound = None
        return held

    def due(self, now_ms: float) -> list[HeldRead]:
        """Those whose time is up."""
        return [held for held in self.reads.values() if self._deadline_ms(held) <= now_ms]

    def wakeup_ms(self) -> float:
        """When `due` has something."""
        return min((self._deadline_ms(held) for held in self.reads.values()), default=float("inf"))

    def _deadline_ms(self, held: HeldRead) -> float:
        if held.visible_ms is None:
            return held.deadline_ms
        return min(held.deadline_ms, held.visible_ms + self._effective_grace_ms)


def reason(exchange: Exchange, bound: Bound, broker: Broker | None, *, stays: bool) -> Why:
    """What a read waits for.

    Args:
        broker: the client's own.
        stays: only that one may answer.
    """
    if bound.claimed_at:
        return Why.CLIENT_STATE
    if bound.head_promised:
        return bound.head_why
    if exchange.connection.home is None and stays:
        return Why.CONNECTING
    if bound.to_probe:
        return Why.EARLIER_READ
    visible = broker is not None and broker.visible >= max(bound.visible, bound.effective)
    return Why.NOT_EFFECTIVE if visible else Why.BROKER_BEHIND


def explain(held: HeldRead, now_ms: float) -> str:
    """Why a read was given up, as a clause for log and answer."""
    waited = f"within {now_ms - held.since_ms:.0f} ms"
    if held.bound.unreachable:
        return f"the client asks for metadata offset {held.bound.claimed}, which no head of the log has reached"
    if held.bound.head_promised:
        return f"the head of the metadata log could not be confirmed {waited}"
    if held.visible_ms is not None:
        return f"no broker was seen to act upon the session's last change {waited}"
    return f"no broker had caught up with the session {waited}"
