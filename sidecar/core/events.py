"""Events: the facts that the shell reports to the core. `sidecar.core.sidecar` takes them one at a time."""

from collections.abc import Mapping
from dataclasses import dataclass

from codec.headers import ConsistencyState
from sidecar.core.connection import ClientConnection
from sidecar.core.exchange import Exchange, Request
from sidecar.core.head import QuorumAnswer
from sidecar.core.ids import OWN, Identity, NodeId, Offset, Seq
from sidecar.core.states import Complaint
from sidecar.core.view import Channel


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker says that it listens."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None = None


# Clients


@dataclass(frozen=True, slots=True)
class ClientClosed:
    """The client, or the shell, ended the connection."""

    connection: ClientConnection


@dataclass(frozen=True, slots=True)
class HomeOpened:
    """The connection to the client's own broker is open."""

    connection: ClientConnection
    channel_id: int


@dataclass(frozen=True, slots=True)
class HomeClosed:
    """The broker ended it, or it could not be opened; or the shell replaces it.

    Attributes:
        served: it had lasted for a while, or brought an answer: another one may do as well.
        half_read: part of a request has come from the client, and was kept or sent.
        ours: the shell ended it, while it left nothing behind: the broker has lost nothing either.
    """

    connection: ClientConnection
    served: bool = False
    half_read: bool = False
    ours: bool = False


@dataclass(frozen=True, slots=True)
class IdentityChanged:
    """A broker has accepted a client's login, or another one has begun (None until it is accepted)."""

    connection: ClientConnection
    identity: Identity | None


@dataclass(frozen=True, slots=True)
class IdentityGone:
    """No client has this identity any more, or a broker refuses it. The shell closes its channels and reports no more.

    Clients that still have it stay with their own brokers from now on.
    """

    identity: Identity


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A gated read or a metadata write came from a client. Plain requests never get here."""

    connection: ClientConnection
    request: Request


@dataclass(frozen=True, slots=True)
class AnswerReceived:
    """A broker answered what `actions.Send` sent, or a plain request with a trace.

    Attributes:
        payload: the answer as the client shall get it: its own correlation id, our addresses.
        creates: the pure read found topics missing that the client's request would create.
        leader_changed: an answer about partitions says that one has moved.
        state: what its header carried, if the broker implements the proposal.
        complaint: the broker refused what we had asked for in the header; the client shall not see that.
    """

    exchange: Exchange
    payload: bytes
    creates: bool = False
    leader_changed: bool = False
    state: ConsistencyState | None = None
    complaint: Complaint | None = None


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """The answer to a plain request says that a partition has moved; most of it has gone to the client already.

    Its last bytes leave after this event.
    """

    exchange: Exchange
    state: ConsistencyState | None = None


@dataclass(frozen=True, slots=True)
class ChannelThrottled:
    """The answer to a routed read says that its broker reads no more from this channel for so long (KIP-219)."""

    channel: Channel
    throttle_ms: int


@dataclass(frozen=True, slots=True)
class AnswerMade:
    """The shell made the answer that `actions.Refuse` asked for."""

    exchange: Exchange
    payload: bytes


# Our own connections


@dataclass(frozen=True, slots=True)
class ChannelOpened:
    """A channel for routed reads is open; ``shown``: the position in its own ApiVersions answer, -1 if none."""

    node_id: NodeId
    channel_id: int
    shown: Offset
    identity: Identity = OWN


@dataclass(frozen=True, slots=True)
class ChannelClosed:
    """A channel for routed reads closed, or could not be opened (``channel_id`` None).

    Attributes:
        ours: the shell ended it: its broker has lost nothing.
    """

    node_id: NodeId
    channel_id: int | None
    identity: Identity = OWN
    ours: bool = False


@dataclass(frozen=True, slots=True)
class ProbeOpened:
    """The probe connection of a broker is open and negotiated."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class ProbeClosed:
    """The probe connection of a broker closed; ``cause`` from a closed set, for metrics."""

    node_id: NodeId
    cause: str


@dataclass(frozen=True, slots=True)
class ProbeAnswered:
    """A broker reported its position.

    Attributes:
        offset: None: it has no such field.
        versions: what it offers, API key to (lowest, highest); None: as before.
        carries_state: on this connection its answers carry a ConsistencyState.
    """

    node_id: NodeId
    asked: Seq
    offset: Offset | None
    versions: Mapping[int, tuple[int, int]] | None = None
    carries_state: bool = False


@dataclass(frozen=True, slots=True)
class HeadAnswered:
    """A broker relayed DescribeQuorum."""

    via: NodeId
    asked: Seq
    answer: QuorumAnswer


@dataclass(frozen=True, slots=True)
class HeadFailed:
    """DescribeQuorum was not answered; ``refused``: no privilege (error 31), or no broker offers it."""

    via: NodeId
    asked: Seq
    refused: bool


@dataclass(frozen=True, slots=True)
class ClusterDescribed:
    """Discovery found these brokers. Nodes that are missing here and down have left the cluster."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class BrokersSeen:
    """An answer on its way to a client names brokers that discovery has not met yet."""

    brokers: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; sent when `Sidecar.wakeup_ms` says so."""


Event = (
    ClientClosed
    | HomeOpened
    | HomeClosed
    | IdentityChanged
    | IdentityGone
    | RequestReceived
    | AnswerReceived
    | LeaderChanged
    | AnswerMade
    | ChannelThrottled
    | ChannelOpened
    | ChannelClosed
    | ProbeOpened
    | ProbeClosed
    | ProbeAnswered
    | HeadAnswered
    | HeadFailed
    | ClusterDescribed
    | BrokersSeen
    | Tick
)
