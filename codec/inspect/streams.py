"""TCP segments to the bytes of each direction, in order, once each.

Puts late segments in their place, drops what comes twice, and reports what the capture does not have. Knows no Kafka.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from codec.inspect.pcap import FIN, RST, SYN, Endpoint, Segment

PENDING_BYTES_MAX: Final = 64 << 20
"""How many bytes of one direction may wait for a segment that is missing, before it is taken for lost."""

_SEQUENCES: Final = 1 << 32


@final
@dataclass(slots=True, eq=False)
class Connection:
    """A TCP connection; `client` is who opened it, or guessed when the capture began later (`is_whole` is False)."""

    client: Endpoint
    broker: Endpoint
    is_whole: bool


class Opened(NamedTuple):
    """A connection appears in the capture."""

    connection: Connection


class Bytes(NamedTuple):
    """The next bytes of one direction.

    `packet` and `at_s` are of the segment that completed them; `other_waits` says whether the other direction has
    a hole now.
    """

    connection: Connection
    from_client: bool
    data: bytes
    packet: int
    at_s: float
    other_waits: bool


class Lost(NamedTuple):
    """Bytes of one direction are not in the capture; nothing more comes from it."""

    connection: Connection
    from_client: bool
    missing: int


class Ended(NamedTuple):
    """One direction ends: its sender closed it."""

    connection: Connection
    from_client: bool


Event = Opened | Bytes | Lost | Ended


@final
@dataclass(slots=True, eq=False)
class _Direction:
    """The bytes of one sender, by their position in the stream; sequence numbers wrap at 2**32, positions do not."""

    first: int | None = None
    taken: int = 0
    pending: list[tuple[int, int, bytes]] = field(default_factory=list)
    pending_bytes: int = 0
    end: int | None = None
    is_over: bool = False

    def position(self, sequence: int) -> int:
        """Where a sequence number stands: the position nearest to what was taken last."""
        assert self.first is not None
        ahead = (sequence - self.first - self.taken + _SEQUENCES // 2) % _SEQUENCES - _SEQUENCES // 2
        return self.taken + ahead

    def keep(self, position: int, packet: int, payload: bytes) -> None:
        """Keep a segment until its turn, if it has anything new."""
        if position + len(payload) > self.taken:
            self.pending_bytes += len(payload)
            heapq.heappush(self.pending, (position, packet, payload))

    def take(self) -> bytes:
        """All bytes whose turn has come."""
        out = bytearray()
        while self.pending and self.pending[0][0] <= self.taken:
            position, _, payload = heapq.heappop(self.pending)
            self.pending_bytes -= len(payload)
            fresh = payload[self.taken - position :]
            out += fresh
            self.taken += len(fresh)
        return bytes(out)


@final
@dataclass(slots=True, eq=False)
class _Tracked:
    connection: Connection
    directions: dict[Endpoint, _Direction]


def reassemble(segments: Iterable[Segment], ports: frozenset[int] = frozenset()) -> Iterator[Event]:
    """What happens on each connection, in the order in which the capture completes it.

    Args:
        segments: Of any number of connections.
        ports: Of brokers; connections that have none of them are passed over. Empty: all connections are taken.
    """
    tracked: dict[frozenset[Endpoint], _Tracked] = {}
    for segment in segments:
        if ports and ports.isdisjoint((segment.source.port, segment.target.port)):
            continue
        pair = frozenset((segment.source, segment.target))
        current = tracked.get(pair)
        if current is None or _opens_anew(current, segment):
            if current is not None:
                yield from _give_up(current)
            current = _track(segment, ports)
            tracked[pair] = current
            yield Opened(current.connection)
        yield from _advance(current, segment)
    for current in tracked.values():
        yield from _give_up(current)


def _opens_anew(current: _Tracked, segment: Segment) -> bool:
    """Whether the same two ports begin another connection: a SYN that is no repetition of the first."""
    direction = current.directions[segment.source]
    if not segment.flags & SYN or direction.first is None:
        return False
    return direction.is_over or direction.position(segment.sequence + 1) > 0


def _track(segment: Segment, ports: frozenset[int]) -> _Tracked:
    client, broker = segment.source, segment.target
    if segment.flags & SYN:
        # The second SYN of a handshake carries ACK (0x10): its sender is the broker.
        if segment.flags & 0x10:
            client, broker = broker, client
    elif client.port in ports or (broker.port not in ports and client.port < broker.port):
        # No handshake to tell by; a client's port is from the high, ephemeral range.
        client, broker = broker, client
    connection = Connection(client, broker, is_whole=bool(segment.flags & SYN))
    return _Tracked(connection, {client: _Direction(), broker: _Direction()})


def _advance(current: _Tracked, segment: Segment) -> Iterator[Event]:
    direction = current.directions[segment.source]
    if direction.is_over:
        return
    connection, from_client = current.connection, segment.source == current.connection.client
    sequence = (segment.sequence + bool(segment.flags & SYN)) % _SEQUENCES
    if direction.first is None:
        direction.first = sequence
    position = direction.position(sequence)
    direction.keep(position, segment.packet, segment.payload)
    if data := direction.take():
        other_waits = bool(current.directions[segment.target].pending)
        yield Bytes(connection, from_client, data, segment.packet, segment.at_s, other_waits)
    if segment.flags & FIN:
        direction.end = position + len(segment.payload) + segment.missing
    if direction.pending_bytes > PENDING_BYTES_MAX:
        yield from _lost(connection, from_client, direction)
    elif segment.flags & RST or (direction.end is not None and direction.end <= direction.taken):
        direction.is_over = True
        yield Ended(connection, from_client)


def _give_up(current: _Tracked) -> Iterator[Event]:
    """Nothing more comes: what still waits for a missing segment waits in vain."""
    for sender, direction in current.directions.items():
        if direction.pending and not direction.is_over:
            yield from _lost(current.connection, sender == current.connection.client, direction)


def _lost(connection: Connection, from_client: bool, direction: _Direction) -> Iterator[Event]:
    missing = direction.pending[0][0] - direction.taken
    direction.is_over = True
    direction.pending.clear()
    yield Lost(connection, from_client, missing)
