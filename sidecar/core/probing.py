"""Probing: when which broker is asked for its position, and who is asked for the head.

While anyone waits the next probe goes out as the last is answered, at least ``min_interval_ms`` apart; otherwise one
every ``idle_interval_ms``. One probe answers all who wait for it, so its cost does not depend on the request rate.
Where answers to reads tell the position, they count as probes, and fewer are sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sidecar.core.ids import NEVER, NodeId, Seq

HEDGE_MS = 200
"""An answer about the head that takes longer is asked for through another broker as well (a stopped controller makes
every forwarded request hang)."""
RETRY_MS = 20
"""Between attempts at the head that were answered but did not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The ``cluster.probe`` section of the configuration, in ms."""

    idle_interval_ms: int = 1000
    min_interval_ms: int = 2
    timeout_ms: int = 1000


class _Line:
    """The probes of one broker: at most one is under way."""

    __slots__ = ("asked", "sent_ms", "under_way")

    def __init__(self) -> None:
        self.under_way = False
        self.asked: Seq = NEVER
        self.sent_ms = float("-inf")


class PositionProbes:
    """One line of probes for each broker whose probe connection is open."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._lines: dict[NodeId, _Line] = {}
        self._wanted: frozenset[NodeId] = frozenset()

    def opened(self, node_id: NodeId) -> None:
        """A probe connection is open; the first probe is due at once."""
        self._lines[node_id] = _Line()

    def closed(self, node_id: NodeId) -> None:
        """The probe connection closed, and what was under way with it."""
        self._lines.pop(node_id, None)

    def want(self, node_ids: frozenset[NodeId]) -> None:
        """From now on these are asked as fast as allowed, until the next call."""
        self._wanted = node_ids

    def answered(self, node_id: NodeId, asked: Seq) -> bool:
        """Notes an answer; False if it does not belong to the probe that is under way."""
        line = self._lines.get(node_id)
        if line is None or not line.under_way or line.asked != asked:
            return False
        line.under_way = False
        return True

    def heard(self, node_id: NodeId, sent_ms: float) -> None:
        """Notes that the answer to a read sent at ``sent_ms`` told the position: as good as a probe sent then."""
        line = self._lines.get(node_id)
        if line is not None and not line.under_way:
            line.sent_ms = max(line.sent_ms, sent_ms)

    def due(self, now_ms: float, seq: Seq) -> list[NodeId]:
        """The brokers to probe now; they count as probed at ``seq``."""
        due = [node_id for node_id, line in self._lines.items() if self._due_ms(node_id, line) <= now_ms]
        for node_id in due:
            line = self._lines[node_id]
            line.under_way, line.asked, line.sent_ms = True, seq, now_ms
        return due

    def overdue(self, now_ms: float) -> list[NodeId]:
        """The brokers that have not answered in time."""
        timeout_ms = self._pace.timeout_ms
        return [n for n, line in self._lines.items() if line.under_way and line.sent_ms + timeout_ms <= now_ms]

    def wakeup_ms(self) -> float:
        """When `due` or `overdue` has something next."""
        return min(
            (
                line.sent_ms + self._pace.timeout_ms if line.under_way else self._due_ms(node_id, line)
                for node_id, line in self._lines.items()
            ),
            default=float("inf"),
        )

    def _due_ms(self, node_id: NodeId, line: _Line) -> float:
        if line.under_way:
            return float("inf")
        pace = self._pace
        return line.sent_ms + (pace.min_interval_ms if node_id in self._wanted else pace.idle_interval_ms)


class HeadProbes:
    """Questions about the head, through one broker at a time, or another one when that takes long."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._under_way: dict[NodeId, tuple[Seq, float]] = {}
        self._not_before_ms = float("-inf")
        self._last_sent_ms = float("-inf")
        self._turn = 0
        self._preferred: NodeId | None = None
        self._wanted = False

    def want(self, wanted: bool) -> None:
        """From now on the head is asked for as fast as allowed, until the next call."""
        self._wanted = wanted

    def prefer(self, node_id: NodeId) -> None:
        """The next question goes through this broker: it relayed a write, so it knows the leader that committed it."""
        self._preferred = node_id

    def answered(self, via: NodeId, asked: Seq) -> bool:
        """Notes an answer, or a failure; False if it was given up before."""
        if self._under_way.get(via, (NEVER, 0.0))[0] != asked:
            return False
        del self._under_way[via]
        return True

    def back_off(self, now_ms: float, delay_ms: float = RETRY_MS) -> None:
        """The last answer did not count: ask again a little later, through another broker."""
        self._not_before_ms = now_ms + delay_ms
        self._preferred = None
        self._turn += 1

    def lost(self, node_id: NodeId) -> None:
        """The connection to that broker closed, and the question with it."""
        self._under_way.pop(node_id, None)

    def due(self, now_ms: float, seq: Seq, through: Iterable[NodeId]) -> NodeId | None:
        """The broker to ask through now, None if it is not time or nobody is left to ask."""
        if self._due_ms() > now_ms:
            return None
        free = sorted(node_id for node_id in through if node_id not in self._under_way)
        if not free:
            return None
        via = self._preferred if self._preferred in free else free[self._turn % len(free)]
        self._preferred = None
        self._under_way[via] = (seq, now_ms)
        self._last_sent_ms = now_ms
        return via

    def overdue(self, now_ms: float) -> list[tuple[NodeId, Seq]]:
        """The questions that were not answered in time; they are given up."""
        timeout_ms = self._pace.timeout_ms
        late = [(n, asked) for n, (asked, sent_ms) in self._under_way.items() if sent_ms + timeout_ms <= now_ms]
        for node_id, _ in late:
            del self._under_way[node_id]
        return late

    def wakeup_ms(self, through: Iterable[NodeId]) -> float:
        """When `due`, given the same brokers, or `overdue` has something next."""
        late = min((sent_ms + self._pace.timeout_ms for _, sent_ms in self._under_way.values()), default=float("inf"))
        return late if all(node_id in self._under_way for node_id in through) else min(self._due_ms(), late)

    def _due_ms(self) -> float:
        pace = self._pace
        if self._under_way:
            return self._last_sent_ms + HEDGE_MS if self._wanted else float("inf")
        interval = pace.min_interval_ms if self._wanted else pace.idle_interval_ms
        return max(self._last_sent_ms + interval, self._not_before_ms)
