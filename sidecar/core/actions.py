"""Actions: the orders that the core gives to the shell, to be carried out in the order given."""

from dataclasses import dataclass

from sidecar.core.connection import ClientConnection
from sidecar.core.events import Address
from sidecar.core.exchange import Exchange
from sidecar.core.ids import Identity, NodeId, Seq
from sidecar.core.view import Channel


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request of ``exchange`` on ``channel``; as a pure read (no topic creation) if ``pure``."""

    exchange: Exchange
    channel: Channel
    pure: bool = False


@dataclass(frozen=True, slots=True)
class Deliver:
    """Answers of this connection may leave: `ClientConnection.take_ready`."""

    connection: ClientConnection


@dataclass(frozen=True, slots=True)
class Refuse:
    """Make the retriable error that this API can carry (`sidecar.core.timeouts`) and report `events.AnswerMade`."""

    exchange: Exchange
    reason: str


@dataclass(frozen=True, slots=True)
class CloseClient:
    """Close the client connection; ``cause`` from a closed set, for log and metrics.

    Attributes:
        at: the read that ends this way: the answers ahead of it leave first, if they come soon; None: close at once.
    """

    connection: ClientConnection
    cause: str
    at: Exchange | None = None


@dataclass(frozen=True, slots=True)
class ReopenHome:
    """Connect this client to its own broker again and report `events.HomeOpened`, or `events.HomeClosed`."""

    connection: ClientConnection


@dataclass(frozen=True, slots=True)
class OpenChannel:
    """Open a channel for routed reads to this broker and report `events.ChannelOpened`, or `events.ChannelClosed`.

    Attributes:
        identity: who must be logged in on it.
    """

    node_id: NodeId
    identity: Identity


@dataclass(frozen=True, slots=True)
class Watch:
    """Serve this broker: a port on every listener, and a probe connection that is opened again when it breaks."""

    address: Address


@dataclass(frozen=True, slots=True)
class Unwatch:
    """The broker left the cluster, or has another address: close every connection to the old one."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class ResetProbe:
    """This broker did not answer a probe in time: close its probe connection and open another.

    Close its channels for routed reads too and report `events.ChannelClosed`: what waits there is decided again.
    """

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask this broker for its position and report `events.ProbeAnswered` with the same ``asked``."""

    node_id: NodeId
    asked: Seq


@dataclass(frozen=True, slots=True)
class ProbeHead:
    """Ask for the head through this broker; report `HeadAnswered` or `HeadFailed` with the same ``asked``."""

    via: NodeId
    asked: Seq


@dataclass(frozen=True, slots=True)
class Rediscover:
    """Ask who the brokers are and which cluster it is, at once: one of them says that it is of another cluster."""


@dataclass(frozen=True, slots=True)
class Released:
    """For metrics and log: a hold ended. ``outcome``: proven, freshest, stale, error, close, client_left."""

    exchange: Exchange
    why: str
    outcome: str
    held_ms: float


@dataclass(frozen=True, slots=True)
class Decided:
    """For metrics: how a gated request was dealt with. ``decision``: forward, route, hold, write."""

    exchange: Exchange
    decision: str


@dataclass(frozen=True, slots=True)
class Noted:
    """For the log: something that whoever is paged wants to read."""

    level: str
    message: str


Action = (
    Send
    | Deliver
    | Refuse
    | CloseClient
    | ReopenHome
    | OpenChannel
    | Watch
    | Unwatch
    | ResetProbe
    | Probe
    | ProbeHead
    | Rediscover
    | Released
    | Decided
    | Noted
)
