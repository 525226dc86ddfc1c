"""The weather of one seed: sizes, delays, load and faults, all drawn from the seed alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final


class Kind(Enum):
    """What a seed is mostly about: the seed modulo their number, so that any range of seeds sees them all."""

    CALM = "calm"
    NETWORK = "network"
    PARTITIONS = "partitions"
    CRASHES = "crashes"
    PAUSES = "pauses"
    CLOCKS = "clocks"
    DISKS = "disks"
    EVERYTHING = "everything"


KINDS = tuple(Kind)


class Fault(Enum):
    """What befalls a node or the network; `world.World` has a method for each."""

    RESIGN = "resign"
    CRASH = "crash"
    CRASH_LEADER = "crash leader"
    CRASH_ALL = "crash all"
    CUT = "cut"
    CUT_ONE_WAY = "cut one way"
    ISOLATE = "isolate"
    ISOLATE_LEADER = "isolate leader"
    SPLIT = "split"
    PAUSE = "pause"
    PAUSE_LEADER = "pause leader"
    CLOCK = "clock"
    SLOW_DISK = "slow disk"
    STORM = "storm"


F = Fault
FAULTS: Final[Mapping[Kind, Mapping[Fault, int]]] = {
    Kind.CALM: {F.RESIGN: 2, F.CRASH_LEADER: 1},
    Kind.NETWORK: {F.STORM: 4, F.CUT: 2, F.CUT_ONE_WAY: 2, F.RESIGN: 1, F.CRASH_LEADER: 1},
    Kind.PARTITIONS: {F.CUT: 2, F.CUT_ONE_WAY: 3, F.ISOLATE: 3, F.ISOLATE_LEADER: 4, F.SPLIT: 3, F.CRASH: 1},
    Kind.CRASHES: {F.CRASH: 5, F.CRASH_LEADER: 4, F.CRASH_ALL: 1, F.ISOLATE: 2, F.ISOLATE_LEADER: 1},
    Kind.PAUSES: {F.PAUSE: 4, F.PAUSE_LEADER: 4, F.ISOLATE: 1, F.CRASH: 1},
    Kind.CLOCKS: {F.CLOCK: 6, F.ISOLATE: 1, F.RESIGN: 1, F.PAUSE: 1, F.CRASH_LEADER: 1},
    Kind.DISKS: {F.SLOW_DISK: 4, F.CRASH: 4, F.CRASH_LEADER: 3, F.CRASH_ALL: 1, F.ISOLATE_LEADER: 1},
    Kind.EVERYTHING: dict.fromkeys(Fault, 1),
}
"""How likely each is, one against the others."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What is drawn before anything happens.

    Attributes:
        delay_ms: of one way through the network, lowest and highest.
        loss: share of messages that vanish; `duplicates`: that come twice; `stragglers`: that come seconds late.
        stalls: share of messages into a cut that are seconds late instead of lost, as when TCP sends them again.
        sync_ms: of a disk, lowest and highest.
        fault_ms: between two faults, lowest and highest; `length_ms`: how long one lasts.
        rates: of the nodes' clocks, lowest and highest.
        product_disks: the disks are those of the product in memory, compared with the model.
        uneven: some nodes are configured to be three times as patient with the others.
        vote_crashes: share of votes right after which the voter crashes, and is back within moments.
        snapshot_records: records applied since the last snapshot before a node may make another.
        segment_batches: batches in a segment: only whole ones are deleted.
        write_ms: between two writes on average; `read_ms` likewise.
        burst: share of writes that come several at once.
        fail_fast: share of lost requests that the sender learns of at once, as of a broken connection.
    """

    seed: int
    kind: Kind
    voters: int
    observers: int
    delay_ms: Span
    loss: float
    duplicates: float
    stragglers: float
    stalls: float
    sync_ms: Span
    fault_ms: Span
    length_ms: Span
    rates: Span
    snapshot_records: int
    segment_batches: int
    fetch_max_bytes: int
    snapshot_max_bytes: int
    election_timeout_ms: int
    fetch_timeout_ms: int
    product_disks: bool
    uneven: bool
    vote_crashes: float
    retry_backoff_ms: int
    write_ms: float
    read_ms: float
    burst: float
    fail_fast: float


def weather_of(seed: int) -> Weather:
    """Draws the weather of a seed."""
    random = Random(f"weather {seed}")
    kind = KINDS[seed % len(KINDS)]
    rough = kind in (Kind.NETWORK, Kind.EVERYTHING)
    return Weather(
        seed=seed,
        kind=kind,
        voters=random.choice((3, 3, 5)),
        observers=random.choice((0, 1, 1, 2)),
        delay_ms=random.choice(((1, 5), (1, 40), (5, 150))) if rough else random.choice(((0.5, 3), (1, 20))),
        loss=random.choice((0.0, 0.02, 0.1)) if rough else random.choice((0.0, 0.0, 0.005)),
        duplicates=random.choice((0.0, 0.05)) if rough else 0.0,
        stragglers=random.choice((0.0, 0.02, 0.05)) if rough or kind is Kind.PARTITIONS else 0.0,
        stalls=random.choice((0.0, 0.5)) if rough or kind is Kind.PARTITIONS else 0.0,
        sync_ms=random.choice(((1, 30), (20, 200))) if kind in (Kind.DISKS, Kind.CRASHES) else (0.2, 5),
        fault_ms=random.choice(((300, 1500), (500, 3000), (1500, 5000))),
        length_ms=random.choice(((100, 1500), (300, 4000), (2000, 8000))),
        rates=(0.8, 1.25) if kind in (Kind.CLOCKS, Kind.EVERYTHING) else (0.999, 1.001),
        snapshot_records=random.choice((15, 40, 120, 1_000_000)),
        segment_batches=random.choice((1, 4, 10)),
        fetch_max_bytes=random.choice((300, 2000, 100_000)),
        snapshot_max_bytes=random.choice((100, 400, 2000)),
        election_timeout_ms=random.choice((500, 1000, 1000)),
        fetch_timeout_ms=random.choice((1000, 2000, 2000)),
        product_disks=random.random() < 0.15,
        uneven=random.random() < 0.5,
        vote_crashes=random.choice((0.0, 0.1, 0.3)) if kind in (Kind.CRASHES, Kind.DISKS, Kind.EVERYTHING) else 0.0,
        retry_backoff_ms=random.choice((20, 100, 100)),
        write_ms=random.choice((140.0, 220.0)),
        read_ms=random.choice((120.0, 200.0)),
        burst=random.choice((0.1, 0.4)),
        fail_fast=random.choice((0.0, 0.5, 1.0)),
    )
