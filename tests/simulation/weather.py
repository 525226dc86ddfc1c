"""The weather of one seed: sizes, delays, limits and faults, all drawn from the seed alone."""

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from sidecar.core.gate import OnTimeout
from sidecar.core.levels import Level


class Kind(Enum):
    """What a seed is mostly about: the seed modulo their number, so that any range of seeds sees them all."""

    CALM = "calm"
    LAG = "lag"
    RESTARTS = "restarts"
    ELECTIONS = "elections"
    NETWORK = "network"
    PRESSURE = "pressure"
    MEMBERSHIP = "membership"
    DEGRADED = "degraded"


KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What is drawn before anything happens.

    Attributes:
        delay_ms: of one way through the network, lowest and highest.
        notice_ms: until the sidecar learns that the other side ended a connection, lowest and highest.
        back_ms: what answers on some connections take longer, lowest and highest.
        lag_ms: from commit to a broker's image, lowest and highest; each broker has its own.
        apply_ms: from visible to effective.
        noop_ms: between NoOp records; None: disabled.
        head_delay_ms: additional delay of DescribeQuorum at most: it goes on to a controller.
        refused: DescribeQuorum is refused: never, always, or until the middle of the run.
        carries_state: the brokers implement the proposal.
        fussy: they compare a token with what they act upon, so that they refuse what they show.
        principals: how many the clients are; 0: brokers do not tell them from the sidecar.
        carried: how often a client's login is one that the sidecar can repeat elsewhere.
        login_refused: how often a broker refuses to let the sidecar in as one of its clients.
        relogins: how often a client logs in again on its connection.
        own_token: what they say in the answer to a write is their own position only, not the offset of the write.
    """

    seed: int
    kind: Kind
    brokers: int
    level: Level
    scope: str
    on_timeout: OnTimeout
    wait_timeout_ms: int
    effective_grace_ms: int
    held_requests_max: int
    in_flight_max: int
    waiting_bytes_max: int
    sessions_max: int
    session_idle_ms: int
    idle_interval_ms: int
    min_interval_ms: int
    probe_timeout_ms: int
    broker_max: bool
    refused: str
    clients: int
    requests: int
    burst: float
    duration_ms: float
    delay_ms: tuple[float, float]
    notice_ms: tuple[float, float]
    back_ms: tuple[float, float]
    lag_ms: tuple[float, float]
    apply_ms: tuple[float, float]
    noop_ms: float | None
    head_delay_ms: float
    faults: int
    carries_state: bool
    own_token: bool
    fussy: bool
    principals: int
    carried: float
    login_refused: float
    relogins: float

    @property
    def fresh(self) -> bool:
        """Whether the full guarantee is promised: the head can be asked for."""
        return not self.broker_max and self.refused == "never"


def weather_of(seed: int) -> Weather:
    """Draws the weather of a seed."""
    random = Random(f"weather {seed}")
    kind = KINDS[seed % len(KINDS)]
    slow = kind is Kind.ELECTIONS
    degraded = kind is Kind.DEGRADED
    broker_max = degraded and random.random() < 0.4
    tight = kind is Kind.PRESSURE
    return Weather(
        seed=seed,
        kind=kind,
        brokers=random.choice((1, 2, 3, 3, 3)),
        level=random.choices((Level.SESSION, Level.LINEARIZABLE, Level.EVENTUAL), (6, 3, 1))[0],
        scope=random.choice(("service", "client_id", "client_id", "connection")),
        **_logins(random.random() < 0.75, Random(f"logins {seed}")),
        on_timeout=random.choice(tuple(OnTimeout)),
        wait_timeout_ms=random.choice((150, 400, 3000)),
        effective_grace_ms=random.choice((120, 2000)),
        held_requests_max=2 if tight and random.random() < 0.4 else 100,
        in_flight_max=random.choice((2, 4)) if tight else 20,
        waiting_bytes_max=30 if tight else 1000,
        sessions_max=random.choice((1, 2, 3)) if tight else 50,
        session_idle_ms=random.choice((100, 60_000)),
        idle_interval_ms=random.choice((300, 1000)),
        min_interval_ms=random.choice((15, 30)) if slow else random.choice((2, 8, 20)),
        probe_timeout_ms=random.choice((1000, 5000)) if slow else random.choice((150, 500, 1000)),
        broker_max=broker_max,
        refused=random.choice(("always", "until")) if degraded and not broker_max else "never",
        clients=random.choice((1, 2, 3)),
        requests=random.randint(8, 20),
        burst=random.choice((0.3, 0.6, 0.8)),
        duration_ms=random.uniform(3500, 5500) if slow else random.uniform(150, 500),
        delay_ms=(5, 30) if slow else random.choice(((0.5, 3), (1, 12))),
        notice_ms=random.choice(((0, 5), (20, 120))),
        back_ms=(20, 150) if kind in (Kind.RESTARTS, Kind.NETWORK) else (0, 0),
        lag_ms=_lag_of(kind, random),
        apply_ms=random.choice(((0, 2), (1, 40), (20, 100))),
        noop_ms=random.choice((500.0, 500.0, None)) if slow else random.choice((80.0, 80.0, 80.0, 200.0, None)),
        head_delay_ms=_head_delay_of(kind, random),
        faults=0 if kind in (Kind.CALM, Kind.LAG) else random.randint(1, 4),
        carries_state=random.random() < 0.3,
        own_token=random.random() < 0.5,
        fussy=random.random() < 0.25,
    )


def _logins(carried: bool, random: Random) -> dict[str, Any]:
    """Who the clients are to the brokers."""
    if carried and random.random() < 0.5:
        return {"principals": 0, "carried": 1.0, "login_refused": 0.0, "relogins": 0.0}
    return {
        "principals": random.choice((1, 2, 3)),
        "carried": random.choice((1.0, 0.7)) if carried else 0.0,
        "login_refused": random.choice((0.0, 0.0, 0.3)),
        "relogins": random.choice((0.0, 0.1, 0.3)),
    }


def _lag_of(kind: Kind, random: Random) -> tuple[float, float]:
    if kind is Kind.CALM:
        return 0, 3
    if kind is Kind.LAG:
        return random.choice(((0, 60), (0, 250), (100, 400)))
    return random.choice(((0, 5), (0, 60), (0, 120)))


def _head_delay_of(kind: Kind, random: Random) -> float:
    if kind in (Kind.NETWORK, Kind.ELECTIONS):
        return random.choice((5.0, 300.0, 2500.0))
    return random.choice((2.0, 10.0))
