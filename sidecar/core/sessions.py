"""Sessions: who shares what has been seen, and what each of them is owed (consistency.md sections 3 and 4)."""

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum

from sidecar.core.bounds import GONE, Bound, Why
from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, NodeId, Seq
from sidecar.core.view import Broker, Head


class Scope(Enum):
    """Who shares a session. Named as in the configuration."""

    CONNECTION = "connection"
    CLIENT_ID = "client_id"
    SERVICE = "service"


class Session:
    """One party that must never see time go back.

    Attributes:
        clients: open connections that belong to it.
    """

    __slots__ = ("bound", "clients", "last_seen_ms", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.bound = Bound()
        self.clients = 0
        self.last_seen_ms = 0.0


def session_name(scope: Scope, connection_id: int, client_id: str | None) -> str:
    """The name of the session that a request belongs to."""
    match scope:
        case Scope.SERVICE:
            return "service"
        case Scope.CLIENT_ID:
            return f"client_id:{client_id or ''}"
        case Scope.CONNECTION:
            return f"connection:{connection_id}"


class Sessions:
    """All sessions, the least recently seen first.

    Forgetting one is safe: whoever comes back starts with a promise on the head, which includes all that was seen. Only
    that visible reads wait until a change of access acts is forgotten: demanded of every new session, it would make the
    first read of each wait for the next record, for ever on an idle cluster without NoOps.

    Args:
        sessions_max: how many are kept.
        idle_ms: how long one without clients is kept.
    """

    def __init__(self, sessions_max: int, idle_ms: int) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._sessions_max = sessions_max
        self._idle_ms = idle_ms
        self._owed_head: set[Session] = set()
        self._owed_broker: dict[NodeId, set[Session]] = {}

    def limit(self, sessions_max: int, idle_ms: int) -> None:
        """Obeys other limits from now on."""
        self._sessions_max, self._idle_ms = sessions_max, idle_ms

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def of(self, name: str, seq: Seq, now_ms: float) -> Session:
        """The session of that name; a new one is owed the head as of now: what it was promised before is unknown."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session(name)
            self.owe_head(session, seq, Why.NEW_SESSION)
            while len(self._sessions) > self._sessions_max:
                self._forget(next(iter(self)))
        session.last_seen_ms = now_ms
        self._sessions.move_to_end(name)
        return session

    def forget_idle(self, now_ms: float) -> None:
        """Drops the sessions without clients that were not seen for `idle_ms`."""
        idle = [s for s in self if not s.clients and now_ms - s.last_seen_ms > self._idle_ms]
        for session in idle:
            self._forget(session)

    def client_left(self, session: Session) -> None:
        """Counts a closed connection; a session that only it could use ends with it."""
        session.clients -= 1
        if not session.clients and session.name.startswith("connection:"):
            self._forget(session)

    def owe_head(self, session: Session, seq: Seq, why: Why, *, effective: bool = False) -> None:
        """The session requires the head as of any probe sent after ``seq``."""
        session.bound.after_head(seq, why, effective=effective)
        self._owed_head.add(session)

    def owe_broker(self, session: Session, broker: Broker, seq: Seq, *, acted: bool = False) -> None:
        """The session requires what ``broker`` had, or had ``acted`` upon, at ``seq``."""
        if acted:
            session.bound.after_acting(broker, seq)
        else:
            session.bound.after_broker(broker, seq)
        self._owed_broker.setdefault(broker.node_id, set()).add(session)
        if session.bound.head_promised:
            self._owed_head.add(session)

    def head_confirmed(self, head: Head) -> None:
        """Redeems the promises that the head redeems."""
        for session in list(self._owed_head):
            session.bound.redeem_head(head)
            if not session.bound.head_promised:
                self._owed_head.discard(session)

    def broker_probed(self, broker: Broker) -> None:
        """Redeems the promises on ``broker``; those on a former incarnation become promises on the head."""
        owed = self._owed_broker.get(broker.node_id, set())
        for session in list(owed):
            session.bound.give_up_broker(broker.node_id, broker.incarnation)
            session.bound.redeem_broker(broker)
            if session.bound.head_promised:
                self._owed_head.add(session)
            if broker.node_id not in session.bound.brokers and broker.node_id not in session.bound.acted:
                owed.discard(session)

    def broker_gone(self, node_id: NodeId) -> None:
        """Turns the promises on a broker that left into promises on the head: nobody can ask it any more."""
        for session in self._owed_broker.pop(node_id, set()):
            session.bound.give_up_broker(node_id, GONE)
            if session.bound.head_promised:
                self._owed_head.add(session)

    def reset(self, seq: Seq) -> None:
        """Another cluster, or another log: numbers of the former one mean nothing here."""
        self._owed_broker.clear()
        for session in self:
            former, session.bound = session.bound, Bound()
            acts = former.head_effective != NEVER or former.effective != UNKNOWN_OFFSET
            self.owe_head(session, seq, Why.NEW_SESSION, effective=acts)

    @property
    def owed_head(self) -> bool:
        """Whether any session waits for the head to become a number."""
        return bool(self._owed_head)

    def _forget(self, session: Session) -> None:
        if self._sessions.get(session.name) is not session:
            return  # It was evicted while a client still used it; another one may bear its name by now.
        del self._sessions[session.name]
        self._owed_head.discard(session)
        for owed in self._owed_broker.values():
            owed.discard(session)
