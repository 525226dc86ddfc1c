"""When a broker sees what was committed: the replay delay, a knob of every demo and test.

Holds what was committed until it is due, in order. Pure: the time and the random numbers enter as arguments. The
delay counts from the moment at which a batch came; a delay that is changed also counts for what already waits.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final, final

from backend.metadata.image import Image
from backend.metadata.records import Batch

DELAY_MS_MAX: Final = 3_600_000


@final
@dataclass(frozen=True, slots=True)
class Delay:
    """A delay between two bounds in ms, both included; one number when they are equal."""

    least_ms: int
    most_ms: int

    @classmethod
    def of(cls, value: "int | tuple[int, int] | Delay") -> "Delay":
        """A number of ms, or a pair of bounds.

        Raises:
            ValueError: A bound is negative or above `DELAY_MS_MAX`, or they are out of order.
        """
        if isinstance(value, Delay):
            return value
        least_ms, most_ms = (value, value) if isinstance(value, int) else value
        if not 0 <= least_ms <= most_ms <= DELAY_MS_MAX:
            raise ValueError(f"a delay lies between 0 and {DELAY_MS_MAX} ms, the lower bound first")
        return cls(least_ms, most_ms)

    def at(self, fraction: float) -> float:
        """The delay in ms that lies at `fraction` (0 to 1) of the way between the bounds."""
        return self.least_ms + fraction * (self.most_ms - self.least_ms)


NO_DELAY: Final = Delay(0, 0)


@final
class ReplayQueue:
    """Batches, and images from snapshots, that a broker has fetched and not yet published.

    Attributes:
        delay: how long each batch waits from its arrival.
        paused: while it is, nothing is due.
    """

    def __init__(self, delay: Delay) -> None:
        self.delay = delay
        self.paused = False
        self._waiting: deque[tuple[Batch | Image, float, float]] = deque()
        self._records = 0

    @property
    def records(self) -> int:
        """How many records wait; the caller stops fetching at its own limit."""
        return self._records

    def offer(self, item: Batch | Image, now_ms: float, fraction: float) -> None:
        """Take in what comes next in the log, with its place (0 to 1) between the bounds of a random delay."""
        self._waiting.append((item, now_ms, fraction))
        self._records += _records_in(item)

    def due_ms(self) -> float | None:
        """When the next batch is due, or None while none waits or all is paused."""
        if self.paused or not self._waiting:
            return None
        _, arrived_ms, fraction = self._waiting[0]
        return arrived_ms + self.delay.at(fraction)

    def take(self, now_ms: float) -> list[Batch | Image]:
        """All that is due, in order: what is late together is published as one image, as Kafka does."""
        taken = []
        while (due_ms := self.due_ms()) is not None and due_ms <= now_ms:
            item, _, _ = self._waiting.popleft()
            self._records -= _records_in(item)
            taken.append(item)
        return taken


def _records_in(item: Batch | Image) -> int:
    return len(item.records) if isinstance(item, Batch) else 1
