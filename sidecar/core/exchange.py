"""A request of a client and its answer: what the core notes of the two, from the first byte to the last.

Values that `sidecar.core.connection` puts in order and `sidecar.core.gate` sends; they decide nothing themselves.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from codec.headers import ConsistencyState
from sidecar.core.apis import PLAIN, Kind, Trace
from sidecar.core.bounds import Bound
from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, Offset, Seq
from sidecar.core.states import Complaint
from sidecar.core.view import Channel

if TYPE_CHECKING:
    from sidecar.core.connection import ClientConnection

PLAIN_REQUESTS_MAX: Final = 1024
"""How many are kept: all that Kafka has, and few of those that a hostile client could invent."""


class Request:
    """What the guarantee needs to know of a request; made by `sidecar.core.requests` from its bytes.

    Attributes:
        session_name: see `sidecar.core.sessions.session_name`.
        pinned: only the client's own broker may answer it.
        effective: depth ``auto`` demands that the broker acts on what it shows.
        may_create: a Metadata request that creates the topics it does not find; sent as a pure read first.
        payload: the frame without its size; empty for a plain request, whose bytes have already gone on.
        state: what the client itself asks for in its header, if it implements the proposal.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "correlation_id",
        "effective",
        "kind",
        "may_create",
        "payload",
        "pinned",
        "session_name",
        "state",
        "trace",
    )

    def __init__(
        self,
        *,
        api_key: int,
        api_version: int,
        correlation_id: int = 0,
        kind: Kind,
        trace: Trace,
        session_name: str = "service",
        pinned: bool = False,
        effective: bool = False,
        may_create: bool = False,
        payload: bytes = b"",
        state: ConsistencyState | None = None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.kind = kind
        self.trace = trace
        self.session_name = session_name
        self.pinned = pinned
        self.effective = effective
        self.may_create = may_create
        self.payload = payload
        self.state = state


@lru_cache(maxsize=PLAIN_REQUESTS_MAX)
def plain_request(api_key: int, api_version: int) -> Request:
    """What all plain requests of this API and version share: nothing else of them is looked at."""
    return Request(api_key=api_key, api_version=api_version, kind=PLAIN.kind, trace=PLAIN.trace)


class Exchange:
    """A request and its answer.

    Attributes:
        correlation_id: of the request; plain requests share their `Request`, which has none.
        kind: of the request; a read that turned out to create topics becomes `Kind.CREATE`.
        bound: what the read requires, captured when it became eligible; None before.
        channel: where it was sent; None while it waits.
        incarnation: of the broker that answers what was sent there, as far as was known then; -1: unknown.
        process: the incarnation of the broker that is sure to have answered, should there be an answer; -1: not sure.
        answer: the bytes for the client, once there are any.
        elsewhere_ms: how long it was held, and how long brokers took to answer it; 0 for a plain one that passes.
        lined_up_ms: since when the answer waits for an earlier one, on the clock; 0 if it never had to.
        arrived: when it came.
        arrived_ms, eligible_ms, sent_ms: when it came, might first have gone, and went, on the clock: for deadlines and
            metrics; 0 before.
        prevented: a broker known to be behind would have answered it, had load alone decided.
        sent: when it went; `NEVER` before.
        stamp: what its header says to the broker in our name; None: it leaves as it came.
        token: the offset in the header of its answer, if that can be trusted; -1: none.
        complaint: why a broker refused it before, because of a stamp of ours.
    """

    __slots__ = (
        "answer",
        "arrived",
        "arrived_ms",
        "bound",
        "channel",
        "complaint",
        "connection",
        "correlation_id",
        "eligible_ms",
        "elsewhere_ms",
        "incarnation",
        "kind",
        "lined_up_ms",
        "prevented",
        "process",
        "request",
        "sent",
        "sent_ms",
        "stamp",
        "token",
    )

    def __init__(self, connection: "ClientConnection", request: Request, arrived: Seq, now_ms: float) -> None:
        self.connection = connection
        self.request = request
        self.correlation_id = request.correlation_id
        self.kind = request.kind
        self.arrived = arrived
        self.arrived_ms = now_ms
        self.eligible_ms = 0.0
        self.sent_ms = 0.0
        self.elsewhere_ms = 0.0
        self.lined_up_ms = 0.0
        self.bound: Bound | None = None
        self.channel: Channel | None = None
        self.incarnation = -1
        self.process = -1
        self.answer: bytes | None = None
        self.prevented = False
        self.sent = NEVER
        self.stamp: ConsistencyState | None = None
        self.token: Offset = UNKNOWN_OFFSET
        self.complaint: Complaint | None = None
