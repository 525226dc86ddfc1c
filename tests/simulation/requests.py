"""What model clients ask for, and what model brokers answer. Traits come from the product's own table of APIs."""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from codec.api_keys import ApiKey
from codec.headers import ConsistencyState
from codec.registry import first_flexible_version
from sidecar.core import apis
from sidecar.core.apis import Kind
from sidecar.core.exchange import Exchange, Request
from sidecar.core.states import Complaint
from tests.simulation.brokers import Process

if TYPE_CHECKING:
    from sidecar.core.view import Channel
    from tests.simulation.clients import Client


READS = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_LOG_DIRS})
WRITES = frozenset({ApiKey.CREATE_TOPICS, ApiKey.CREATE_ACLS})
"""Said again here, so that a mistake in the product's table is noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One request that a client is going to make.

    Attributes:
        may_create: a Metadata request that allows topic creation.
        pinned: it asks about its own broker.
        missing: the topics that it names do not exist.
        fails: a write that changes nothing.
        moved: a Produce answer that says that a partition has moved.
        claims: it asks for a token so far above what is committed when it arrives; None: for none.
        foreign: that token names another cluster.
    """

    api_key: ApiKey
    may_create: bool = False
    pinned: bool = False
    missing: bool = False
    fails: bool = False
    moved: bool = False
    claims: int | None = None
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a broker answered: the image that it showed and acted upon then, and the offset that a controller named.

    Attributes:
        state: in its header, if the brokers implement the proposal.
        complaint: why it refused to answer.
    """

    process: Process
    visible: int
    effective: int
    offset: int = -1
    creates: bool = False
    state: ConsistencyState | None = None
    complaint: Complaint | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a session has seen.

    Attributes:
        visible: the highest offset that it was shown, or whose commit was acknowledged to it.
        effective: the highest offset of a change of access that was acknowledged to it.
    """

    visible: int = -1
    effective: int = -1

    def merged(self, other: "Seen") -> "Seen":
        """Both."""
        return Seen(max(self.visible, other.visible), max(self.effective, other.effective))


class Note:
    """What the simulator knows of one exchange, whatever the core thinks.

    Attributes:
        number: its place among the requests of its connection.
        arrived_ms: when it arrived, and whether it came ``behind_write`` that was not answered then.
        committed: the committed offset when it arrived; ``generation``: of which log.
        state: waiting, sent, answered (by a broker, or by the sidecar).
        decision: the latest that the core reported.
        seen: what its session had seen when the core took its bound.
        kind: of the exchange when the core took its bound.
        claim: what the client asks for in its header.
        refused_by: the broker that complained last, and its incarnation as the core knew it.
    """

    __slots__ = (
        "arrived_ms",
        "behind_write",
        "channel",
        "claim",
        "client",
        "committed",
        "decision",
        "generation",
        "kind",
        "number",
        "refused_by",
        "reply",
        "seen",
        "state",
        "wish",
    )

    def __init__(self, client: "Client", wish: Wish, number: int, committed: int, generation: int) -> None:
        self.client = client
        self.wish = wish
        self.number = number
        self.arrived_ms = client.driver.clock.now_ms
        self.behind_write = any(n.writes and n.state != "answered" for n in client.expected)
        self.committed = committed
        self.generation = generation
        self.state: str = "waiting"
        self.decision = ""
        self.kind: Kind | None = None
        self.seen = Seen()
        self.channel: Channel | None = None
        self.refused_by: tuple[int, int] | None = None
        self.claim: ConsistencyState | None = None
        if wish.claims is not None:
            cluster_id = "another cluster" if wish.foreign else client.driver.world.cluster_id
            self.claim = ConsistencyState(cluster_id=cluster_id, consistency_token=max(0, committed + wish.claims))
        self.reply: Reply | None = None

    @property
    def writes(self) -> bool:
        """Whether it is a write, or may become one."""
        return self.wish.api_key in WRITES or self.wish.may_create

    def __str__(self) -> str:
        return f"{self.client.name}#{self.number} {self.wish.api_key.name}"


class NotedRequest(Request):
    """A request that carries the simulator's note."""

    __slots__ = ("note",)
    note: Note


def note_of(exchange: Exchange) -> Note:
    """The simulator's note on an exchange."""
    assert isinstance(exchange.request, NotedRequest)
    return exchange.request.note


def seen_in(exchange: Exchange, reply: Reply) -> Seen:
    """What an answer shows, or acknowledges, to its session."""
    api_key = note_of(exchange).wish.api_key
    if reply.complaint is not None:
        return Seen()
    if api_key is ApiKey.CREATE_ACLS:
        return Seen(reply.offset, reply.offset)
    if api_key in WRITES or api_key is ApiKey.DESCRIBE_QUORUM:
        return Seen(reply.offset)
    # What answers from the authorizer shows no more than what the broker acts upon.
    return Seen(reply.effective if exchange.request.effective else reply.visible)


def request_of(note: Note, session_name: str) -> NotedRequest:
    """The request as the product's own reader would describe it."""
    wish = note.wish
    traits = apis.TRAITS.get(wish.api_key, apis.PLAIN)
    request = NotedRequest(
        api_key=wish.api_key,
        api_version=first_flexible_version(wish.api_key) if note.client.flexible else 1,
        kind=traits.kind,
        trace=traits.trace,
        session_name=session_name,
        pinned=traits.pinned or wish.pinned,
        effective=traits.effective,
        may_create=wish.may_create,
        payload=b"" if traits.kind is Kind.PLAIN else b"request" * (1 + note.number % 3),
        state=note.claim,
    )
    request.note = note
    return request


_MIX = (
    (6, Wish(api_key=ApiKey.METADATA)),
    (2, Wish(api_key=ApiKey.METADATA, pinned=True)),
    (1, Wish(api_key=ApiKey.METADATA, may_create=True)),
    (2, Wish(api_key=ApiKey.METADATA, may_create=True, missing=True)),
    (2, Wish(api_key=ApiKey.DESCRIBE_ACLS)),
    (1, Wish(api_key=ApiKey.DESCRIBE_LOG_DIRS)),
    (4, Wish(api_key=ApiKey.CREATE_TOPICS)),
    (1, Wish(api_key=ApiKey.CREATE_TOPICS, fails=True)),
    (2, Wish(api_key=ApiKey.CREATE_ACLS)),
    (2, Wish(api_key=ApiKey.PRODUCE)),
    (1, Wish(api_key=ApiKey.PRODUCE, moved=True)),
    (1, Wish(api_key=ApiKey.API_VERSIONS)),
    (1, Wish(api_key=ApiKey.DESCRIBE_QUORUM)),
)
_WISHES = tuple(wish for _, wish in _MIX)


def taste(random: Random) -> tuple[int, ...]:
    """How often each kind of request comes in one run: some never, some much more often than in others.

    Runs that differ in what they leave out find more than runs that all do a little of everything.
    """
    return tuple(weight * random.choice((0, 1, 1, 5)) for weight, _ in _MIX[1:])


def draw(random: Random, count: int, tastes: tuple[int, ...]) -> list[Wish]:
    """What a client is going to ask for; plain reads of metadata always among it."""
    return random.choices(_WISHES, (_MIX[0][0], *tastes), k=count)
