"""A conversation with the core: say what happens, read what it orders, one line an action.

Keeps the sequence numbers that questions were asked with, so that answers can be given by name.
"""

from codec.api_keys import ApiKey
from codec.headers import ConsistencyState
from sidecar.core import apis
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
    ResetProbe,
    Send,
    Unwatch,
    Watch,
)
from sidecar.core.apis import Kind
from sidecar.core.cluster import HeadSource
from sidecar.core.connection import ClientConnection
from sidecar.core.events import (
    Address,
    AnswerMade,
    AnswerReceived,
    ChannelClosed,
    ChannelOpened,
    ClientClosed,
    ClusterDescribed,
    Event,
    HeadAnswered,
    HeadFailed,
    HomeClosed,
    HomeOpened,
    ProbeAnswered,
    ProbeClosed,
    ProbeOpened,
    RequestReceived,
    Tick,
)
from sidecar.core.exchange import Exchange, Request
from sidecar.core.gate import GateSettings
from sidecar.core.head import QuorumAnswer, Voter
from sidecar.core.ids import OWN, Identity, NodeId, Seq
from sidecar.core.levels import Policy
from sidecar.core.probing import Pace
from sidecar.core.sidecar import Sidecar
from sidecar.core.states import Complaint

CLUSTER = "the-cluster"
PACE = Pace(idle_interval_ms=1000, min_interval_ms=2, timeout_ms=5000)


def address(node_id: int, *, port: int = 9092) -> Address:
    """Where a broker is."""
    return Address(NodeId(node_id), f"broker-{node_id}", port)


def quorum(offset: int, *, epoch: int = 5, fetched_ms_ago: int = 100) -> QuorumAnswer:
    """What the leader of ``epoch`` says when ``offset`` is the last that is committed."""
    now_ms = 1_000_000
    others = [
        Voter(replica_id=n, last_fetch_ms=now_ms - fetched_ms_ago, last_caught_up_ms=now_ms - fetched_ms_ago)
        for n in (102, 103)
    ]
    leader = Voter(replica_id=101, last_fetch_ms=-1, last_caught_up_ms=now_ms)
    return QuorumAnswer(leader_id=101, leader_epoch=epoch, high_watermark=offset + 1, voters=(leader, *others))


class Conversation:
    """One sidecar, and what is said to it. Brokers 1 to ``brokers`` are known from the start.

    Attributes:
        carries_state: the brokers implement the proposal.
    """

    def __init__(
        self,
        *,
        brokers: int = 2,
        settings: GateSettings | None = None,
        policy: Policy | None = None,
        source: HeadSource = HeadSource.DESCRIBE_QUORUM,
        sessions_max: int = 100,
        carries_state: bool = False,
    ) -> None:
        self.carries_state = carries_state
        self.now_ms = 1000.0
        settings = settings or GateSettings(policy=policy or Policy())
        self.core = Sidecar(settings, source=source, pace=PACE, sessions_max=sessions_max)
        self.probing: dict[int, Seq] = {}
        self.asking_head: dict[int, Seq] = {}
        self.last: list[Exchange] = []
        self._channels = 0
        self.described(*range(1, brokers + 1))
        self(Tick())

    def __call__(self, event: Event) -> list[str]:
        """Says what happens; returns what the core orders, without the questions it asks of brokers."""
        lines = []
        for action in self.core.handle(event, self.now_ms):
            if isinstance(action, Probe):
                self.probing[action.node_id] = action.asked
            elif isinstance(action, ProbeHead):
                self.asking_head[action.via] = action.asked
            elif not isinstance(action, (Decided, Noted)):
                lines.append(_words(action))
        return lines

    # The cluster

    def described(self, *node_ids: int, cluster_id: str = CLUSTER) -> list[str]:
        """Discovery found these brokers."""
        return self(ClusterDescribed(cluster_id, NodeId(-1), tuple(address(node_id) for node_id in node_ids)))

    def up(self, *node_ids: int, at: int | None) -> None:
        """The probe connections of these brokers open, and their first probes are answered."""
        for node_id in node_ids:
            self(ProbeOpened(NodeId(node_id)))
            self.probed(node_id, at)

    def shows(self, node_id: int, offset: int | None) -> list[str]:
        """A broker answers a probe that is sent now; one that is under way was sent before, and tells nothing new."""
        lines = []
        if node_id in self.probing:
            known = self.core.cluster.view.brokers[NodeId(node_id)].visible
            lines += self.probed(node_id, offset if known < 0 else known)
        for pause_ms in (3, 1000):
            if node_id not in self.probing:
                lines += self.wait(pause_ms)
        return lines + self.probed(node_id, offset)

    def probed(self, node_id: int, offset: int | None) -> list[str]:
        """A broker answers the probe that is under way there."""
        asked = self.probing.pop(node_id)
        return self(ProbeAnswered(NodeId(node_id), asked, offset, carries_state=self.carries_state))

    def down(self, node_id: int) -> list[str]:
        """Its probe connection ends."""
        self.probing.pop(node_id, None)
        self.asking_head.pop(node_id, None)
        return self(ProbeClosed(NodeId(node_id), "closed"))

    def head(self, answer: QuorumAnswer) -> list[str]:
        """The question that is under way is answered like this, and so is the next, if there is one at once."""
        if not self.asking_head:
            self.wait(1000)
        lines = self.headed(answer) + self.wait(3)
        return lines + (self.headed(answer) if self.asking_head else [])

    def headed(self, answer: QuorumAnswer) -> list[str]:
        """The question about the head that is under way is answered."""
        via = next(iter(self.asking_head))
        return self(HeadAnswered(NodeId(via), self.asking_head.pop(via), answer))

    def refuses_head(self) -> list[str]:
        """DescribeQuorum is refused."""
        via = next(iter(self.asking_head))
        return self(HeadFailed(NodeId(via), self.asking_head.pop(via), refused=True))

    def wait(self, ms: float) -> list[str]:
        """Time passes, all at once."""
        self.now_ms += ms
        return self(Tick())

    def channel(self, node_id: int, *, shown: int = -1, identity: Identity = OWN) -> list[str]:
        """A channel for routed reads opens."""
        self._channels += 1
        return self(ChannelOpened(NodeId(node_id), 1000 + self._channels, shown, identity))

    def no_channels(self) -> None:
        """None of the channels that were ordered can be opened."""
        for node_id, identity in list(self.core.gate._opening):
            self(ChannelClosed(node_id, None, identity))

    def channel_breaks(self, node_id: int, identity: Identity = OWN) -> list[str]:
        """It closes."""
        channel = self.core.cluster.channels[NodeId(node_id), identity]
        return self(ChannelClosed(NodeId(node_id), channel.channel_id, identity))

    # Clients

    def client(
        self, node_id: int | None = 1, *, connected: bool = True, identity: Identity | None = OWN
    ) -> ClientConnection:
        """A client comes in by the port of a broker, and its connection there is open."""
        connection = self.core.open_client(None if node_id is None else NodeId(node_id), identity)
        assert connection is not None
        if connected:
            self.connects(connection)
        return connection

    def connects(self, client: ClientConnection) -> list[str]:
        """The connection to the client's own broker opens."""
        self._channels += 1
        return self(HomeOpened(client, self._channels))

    def home_breaks(self, client: ClientConnection) -> list[str]:
        """The broker ends it."""
        return self(HomeClosed(client))

    def leaves(self, client: ClientConnection) -> list[str]:
        """The client goes."""
        return self(ClientClosed(client))

    def asks(
        self,
        client: ClientConnection,
        api_key: ApiKey,
        *,
        session: str = "service",
        may_create: bool = False,
        payload: bytes = b"request",
        api_version: int = 1,
        state: ConsistencyState | None = None,
    ) -> list[str]:
        """A gated read or a write comes; its exchange is then the last of `last`."""
        traits = apis.TRAITS[api_key]
        request = Request(
            api_key=api_key,
            api_version=api_version,
            kind=traits.kind,
            trace=traits.trace,
            session_name=session,
            pinned=traits.pinned,
            effective=traits.effective,
            may_create=may_create,
            payload=payload,
            state=state,
        )
        lines = self(RequestReceived(client, request))
        self.last.append(client._exchanges[-1])
        return lines

    def answers(
        self, exchange: Exchange, *, creates: bool = False, token: int | None = None, cluster_id: str | None = CLUSTER
    ) -> list[str]:
        """The broker answers what was sent, with this token in the header."""
        if exchange.channel is exchange.connection.home:
            assert exchange.connection.home_answered() is exchange
        state = None if token is None else ConsistencyState(cluster_id=cluster_id, consistency_token=token)
        lines = self(AnswerReceived(exchange, b"answer", creates=creates, state=state))
        self.taken(exchange.connection)
        return lines

    def complains(self, exchange: Exchange, complaint: Complaint) -> list[str]:
        """The broker refuses what was sent because of the stamp."""
        if exchange.channel is exchange.connection.home:
            assert exchange.connection.home_answered() is exchange
        return self(AnswerReceived(exchange, b"", complaint=complaint))

    def makes(self, exchange: Exchange) -> list[str]:
        """The shell made the answer that it was told to."""
        lines = self(AnswerMade(exchange, b"sorry"))
        self.taken(exchange.connection)
        return lines

    def taken(self, client: ClientConnection) -> list[str]:
        """The answers that leave now."""
        return [_name(exchange) for exchange in client.take_ready()]


def _name(exchange: Exchange) -> str:
    name = apis.api_name(exchange.request.api_key)
    return f"create by {name}" if exchange.kind is Kind.CREATE else name


def _words(action: Action) -> str:
    match action:
        case Send(exchange, channel, pure):
            where = "home" if channel is exchange.connection.home else f"broker {channel.node_id}"
            return f"send {_name(exchange)} to {where}{', creating nothing' if pure else ''}"
        case Deliver():
            return "deliver"
        case Rediscover():
            return "rediscover"
        case Refuse(exchange, reason):
            return f"refuse {_name(exchange)}: {reason}"
        case CloseClient(_, cause):
            return f"close client: {cause}"
        case OpenChannel(node_id, identity):
            return f"open channel to {node_id}{'' if identity == OWN else f' as {identity}'}"
        case Watch(broker):
            return f"watch {broker.node_id}"
        case Unwatch(node_id):
            return f"unwatch {node_id}"
        case ResetProbe(node_id):
            return f"reset probe of {node_id}"
        case Released(exchange, why, outcome):
            return f"release {_name(exchange)}: {outcome} ({why})"
        case _:
            raise AssertionError(f"no words for {action}")
