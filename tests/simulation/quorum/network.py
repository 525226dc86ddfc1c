"""Messages between processes: late, lost, doubled, overtaken, and cut off in one direction or both.

What is lost is lost in silence, or the sender learns at once, as of a broken connection. Knows nothing of what the
messages say.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.clock import Clock
from tests.simulation.quorum.weather import Span

LATE_MS: Final = (300.0, 4000.0)
"""Delay of a straggler."""


class Network:
    """See the module.

    Attributes:
        cuts: pairs of nodes of which the first does not reach the second; counted, for faults overlap.
        detours: delay from one node to another, in ms, where it is another than everywhere.
        storms: heavy loss while above 0.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        delay_ms: Span,
        loss: float = 0.0,
        duplicates: float = 0.0,
        stragglers: float = 0.0,
        stalls: float = 0.0,
    ) -> None:
        self._clock = clock
        self._random = random
        self._low, high = delay_ms
        self._width = high - self._low
        self._loss = loss
        self._duplicates = duplicates
        self._stragglers = stragglers
        self._stalls = stalls
        self.cuts: dict[tuple[int, int], int] = {}
        self.detours: dict[tuple[int, int], float] = {}
        self.storms = 0

    def send(self, source: int, target: int, call: Callable[..., None], *args: Any) -> bool:
        """Plans the call for when the message is there, or says that it never will be."""
        random = self._random.random
        if self.cuts and self.cuts.get((source, target)):
            if random() >= self._stalls:
                return False
            self._clock.after(self._random.uniform(*LATE_MS), call, *args)
            return True
        if self._loss or self.storms:
            loss = self._loss + 0.3 if self.storms else self._loss
            if random() < loss:
                return False
        detour_ms = self.detours.get((source, target)) if self.detours else None
        self._clock.after(self._delay_ms() if detour_ms is None else detour_ms, call, *args)
        if self._duplicates and random() < self._duplicates:
            self._clock.after(self._delay_ms(), call, *args)
        return True

    def cut(self, source: int, target: int) -> None:
        """From now on, nothing gets through in this direction."""
        self.cuts[source, target] = self.cuts.get((source, target), 0) + 1

    def join(self, source: int, target: int) -> None:
        """Takes back one `cut`."""
        self.cuts[source, target] -= 1

    def heal(self) -> None:
        """From now on everything gets through, and quickly."""
        self.cuts.clear()
        self._loss = self._duplicates = self._stragglers = self._stalls = 0.0
        self.storms = 0
        self._low, self._width = 0.5, 2.5

    def _delay_ms(self) -> float:
        random = self._random.random
        if self._stragglers and random() < self._stragglers:
            return self._random.uniform(*LATE_MS)
        return self._low + self._width * random()
