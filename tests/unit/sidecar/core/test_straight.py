"""Reads that go straight home, and events after which no probe is looked for: the same orders as the long way round."""

from collections.abc import Callable, Iterator
from copy import copy
from random import Random
from typing import Any, Final
from unittest.mock import patch

from codec.api_keys import ApiKey
from sidecar.core.apis import PLAIN
from sidecar.core.connection import ClientConnection
from sidecar.core.exchange import Exchange, Request
from sidecar.core.ids import NEVER, OWN
from sidecar.core.levels import Level, Override, Policy
from tests.unit.sidecar.core.conversation import Conversation, quorum

BROKERS: Final = 3
READS: Final = (
    *[ApiKey.METADATA] * 6,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
)
WRITES: Final = (ApiKey.CREATE_TOPICS, ApiKey.CREATE_ACLS)
POLICY: Final = Policy(
    apis={
        ApiKey.DESCRIBE_CLUSTER: Override(level=Level.LINEARIZABLE),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: Override(level=Level.EVENTUAL),
    }
)

SEEDS: Final = 120
STEPS: Final = 30

Step = tuple[Any, ...]


def script(random: Random) -> list[Step]:
    """What happens, at random, but so that reads often have nothing to wait for."""

    def client() -> int:
        return random.choice((0, 0, 0, 1, 2, 3))

    def node() -> int:
        return random.randint(1, BROKERS)

    def session() -> str:
        return random.choice(("service", "service", "other"))

    kinds: list[tuple[int, Callable[[], Step]]] = [
        (10, lambda: ("ask", client(), random.choice(READS), session(), random.random() < 0.2)),
        (12, lambda: ("answer", client(), random.random() < 0.7)),
        (1, lambda: ("ask", client(), random.choice(WRITES), session(), False)),
        (4, lambda: ("pass", client())),
        (8, lambda: ("show", node(), random.choice((0, 0, 0, 1)))),
        (3, lambda: ("head", random.choice((0, 0, 0, 1)))),
        (2, lambda: ("channel", node())),
        (1, lambda: ("restart", node())),
        (2, lambda: ("wait", random.choice((1.0, 300.0)))),
    ]
    chosen = random.choices(kinds, [weight for weight, _ in kinds], k=STEPS)
    return [make() for _, make in chosen]


class Run:
    """One of the two conversations; both are told the same."""

    def __init__(self, *, carries_state: bool) -> None:
        self.talk = Conversation(brokers=BROKERS, policy=POLICY, carries_state=carries_state)
        self.talk.up(*range(1, BROKERS + 1), at=10)
        self.clients = [self.talk.client(node_id) for node_id in (1, 1, 2)]
        # The last one is nobody whom other brokers would know.
        self.clients.append(self.talk.client(1, identity=None))
        for node_id in range(1, BROKERS + 1):
            self.talk.shows(node_id, 10)
        for client, session in zip(self.clients, ("service", "other"), strict=False):
            # A new session waits for the head: no read of it goes straight.
            self.talk.asks(client, ApiKey.METADATA, session=session)
        for _ in range(2):
            self.talk.head(quorum(10))
        for client in self.clients[:2]:
            assert self._answer(client, at_home=True)

    def tell(self, step: Step) -> list[str]:
        """One step; a broker whose probe took too long is back at once."""
        lines = self._tell(step)
        for node_id in range(1, BROKERS + 1):
            if f"reset probe of {node_id}" in lines:
                self.talk.probing.pop(node_id, None)
                self.talk.asking_head.pop(node_id, None)
                self.talk.up(node_id, at=10)
        return lines

    def _tell(self, step: Step) -> list[str]:
        match step:
            case ("ask", client, api_key, session, may_create):
                return self.talk.asks(
                    self.clients[client], api_key, session=session, may_create=may_create, api_version=12
                )
            case ("pass", client):
                seq = self.talk.core.next_seq()
                request = Request(api_key=ApiKey.HEARTBEAT, api_version=4, kind=PLAIN.kind, trace=PLAIN.trace)
                self.clients[client].pass_through(request, seq, self.talk.now_ms)
                return []
            case ("answer", client, at_home):
                return self._answer(self.clients[client], at_home=at_home)
            case ("show", node_id, more):
                shown = self.talk.core.cluster.view.brokers[node_id].visible
                lines = [] if node_id in self.talk.probing else self.talk.wait(1000)
                return lines + (
                    self.talk.probed(node_id, max(10, shown) + more) if node_id in self.talk.probing else []
                )
            case ("head", more):
                head = self.talk.core.cluster.view.head
                lines = [] if self.talk.asking_head else self.talk.wait(1000)
                answer = quorum((head.offset if head else 10) + more)
                return lines + (self.talk.headed(answer) if self.talk.asking_head else [])
            case ("channel", node_id):
                return [] if (node_id, OWN) in self.talk.core.cluster.channels else self.talk.channel(node_id)
            case ("restart", node_id):
                lines = self.talk.down(node_id)
                self.talk.up(node_id, at=10)
                return lines
            case ("wait", ms):
                return self.talk.wait(ms)
        raise AssertionError(step)

    def _answer(self, client: ClientConnection, *, at_home: bool) -> list[str]:
        first = client.next_at_home
        elsewhere = [read for read in client._reads_sent if read.channel is not client.home]
        if first is not None and first.kind is PLAIN.kind:
            client.home_answered()
            client.answered(first, b"answer")
            return self.talk.taken(client)
        if first is not None and (at_home or not elsewhere):
            return self.talk.answers(first)
        return self.talk.answers(elsewhere[0]) if elsewhere else []

    def state(self) -> Iterator[object]:
        """All that the orders to come depend on."""
        yield [self._fields(exchange) for exchange in self.talk.last]
        yield [(session.name, self._bound(session.bound)) for session in self.talk.core.sessions]
        yield {node_id: load.in_flight for node_id, load in self.talk.core.cluster.loads.items()}
        yield self.talk.core._seq, self.talk.core.cluster.view
        yield dict(self.talk.probing), dict(self.talk.asking_head)

    def _fields(self, exchange: Exchange) -> dict[str, object]:
        # The bound of a read is of no use once it was sent.
        told = {name: getattr(exchange, name) for name in Exchange.__slots__ if name not in ("connection", "request")}
        channel = told.pop("channel")
        bound = told.pop("bound")
        waits = exchange.sent == NEVER and bound is not None
        return told | {"channel": channel and channel.channel_id, "bound": self._bound(bound) if waits else None}

    def _bound(self, bound: Any) -> dict[str, object]:
        return {name: copy(getattr(bound, name)) for name in bound.__slots__}


def test_short_ways_change_nothing() -> None:
    went = 0

    def counted(*asked: Any) -> Any:
        nonlocal went
        home = straight(*asked)
        went += home is not None
        return home

    for seed in range(SEEDS):
        steps, carries_state = script(Random(seed)), seed % 3 == 0
        short = Run(carries_state=carries_state)
        straight = short.talk.core.gate._straight
        with patch.object(short.talk.core.gate, "_straight", counted):
            told = [(short.tell(step), list(short.state())) for step in steps]
        with patch("sidecar.core.sidecar._QUIET", ()):
            full = Run(carries_state=carries_state)
            with patch.object(full.talk.core.gate, "_straight", lambda *_: None):
                for number, (step, (lines, state)) in enumerate(zip(steps, told, strict=True)):
                    assert full.tell(step) == lines, f"seed {seed}, step {number}: {step}"
                    assert list(full.state()) == state, f"seed {seed}, step {number}: {step}"
    assert went > SEEDS // 3
