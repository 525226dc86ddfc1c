"""The ledger: what each session is owed, as its answers come in, and what its reads therefore require.

Joins the sessions with what is known of the cluster. An answer is entered before anybody of its session can read again;
a read takes its bound once, when it may first go.
"""

from sidecar.core.apis import Kind, Trace
from sidecar.core.bounds import Bound, Why
from sidecar.core.cluster import Cluster
from sidecar.core.connection import ClientConnection
from sidecar.core.exchange import Exchange, Request
from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, Seq
from sidecar.core.levels import Policy, required
from sidecar.core.sessions import Session, Sessions


class Ledger:
    """See the module."""

    def __init__(self, policy: Policy, cluster: Cluster, sessions: Sessions) -> None:
        self._policy = policy
        self._cluster = cluster
        self._sessions = sessions

    def obey(self, policy: Policy) -> None:
        """Reads that take their bound from now on require what this demands."""
        self._policy = policy

    def join(self, connection: ClientConnection, request: Request, seq: Seq, now_ms: float) -> Session:
        """The session of a request; its connection belongs to it from now on."""
        session = self._sessions.of(request.session_name, seq, now_ms)
        if connection.session is not session:
            if connection.session is not None:
                self._sessions.client_left(connection.session)
            connection.session = session
            session.clients += 1
        return session

    def capture(self, exchange: Exchange, seq: Seq, now_ms: float) -> Bound:
        """The bound of a read, taken when it becomes eligible and never raised: a busy service would starve it."""
        if exchange.bound is None:
            exchange.eligible_ms = exchange.eligible_ms or now_ms
            request = exchange.request
            session = self.join(exchange.connection, request, seq, now_ms)
            level = self._policy.level_of(request.api_key)
            exchange.bound = (
                Bound() if self._cluster.promises_nothing else required(level, session.bound, exchange.arrived)
            )
            self._claim(exchange, exchange.bound)
        return exchange.bound

    def _claim(self, exchange: Exchange, bound: Bound) -> None:
        """What the client itself asks for; its session is none the worse for a token that nobody can meet."""
        state, cluster = exchange.request.state, self._cluster
        if state is None or cluster.promises_nothing:
            return
        if cluster.is_foreign(state):
            # Real Kafka would not look at it either; brokers that do refuse it themselves.
            bound.unreachable = self.refuses_tokens(exchange)
            bound.claimed_at = exchange.arrived if bound.unreachable else NEVER
        elif state.consistency_token >= 0:
            bound.claim(state.consistency_token, exchange.arrived, cluster.view.head)

    def refuses_tokens(self, exchange: Exchange) -> bool:
        """Whether the client's own broker answers a token out of reach with the error that the proposal has for it."""
        broker = self._cluster.view.brokers.get(exchange.connection.node_id)
        return broker is not None and broker.carries_state

    def enter(self, exchange: Exchange, seq: Seq, now_ms: float, *, leader_changed: bool) -> None:
        """Enters what an answer promises to its session (consistency.md section 4)."""
        request = exchange.request
        trace = request.trace
        if exchange.kind is Kind.CREATE:
            trace = Trace.HEAD
        elif leader_changed:
            trace = Trace.BROKER
        channel = exchange.channel or exchange.connection.home
        if trace is Trace.NONE or channel is None:
            return
        session = self.join(exchange.connection, request, seq, now_ms)
        acted = exchange.kind is Kind.READ and request.effective
        if trace is Trace.BROKER and exchange.kind is Kind.READ and exchange.token != UNKNOWN_OFFSET and not acted:
            # Read after the answer was built: a number, whatever becomes of the broker.
            session.bound.at_least(exchange.token)
        elif trace is Trace.BROKER:
            broker = self._cluster.view.brokers.get(channel.node_id)
            incarnation = channel.incarnation if exchange.channel is None else exchange.incarnation
            if broker is None or broker.incarnation != incarnation:
                # The process that answered may be gone: only the head is sure to include what it had.
                self._sessions.owe_head(session, seq, Why.LOST_BROKER)
            elif broker.positions:
                self._sessions.owe_broker(session, broker, seq, acted=acted)
        elif not self._cluster.promises_nothing:
            effective = trace is Trace.HEAD_EFFECTIVE
            # Besides the promise: another implementation may name only what the broker itself shows.
            session.bound.at_least(exchange.token, effective=effective)
            self._sessions.owe_head(session, seq, Why.OWN_WRITE, effective=effective)
            self._cluster.prefer(channel.node_id)
