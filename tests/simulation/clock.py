"""Virtual time: what is planned happens in its order, at once, and never by itself. Knows nothing of Kafka."""

import heapq
from collections.abc import Callable
from typing import Any


class Clock:
    """A clock that jumps from one planned call to the next.

    Attributes:
        now_ms: the time; starts above 0, so that 0 can mean "never".
    """

    def __init__(self) -> None:
        self.now_ms = 1000.0
        self._plan: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._planned = 0

    def at(self, when_ms: float, call: Callable[..., None], *args: Any) -> None:
        """Plans a call; one that is late happens now. Calls of the same moment keep the order of their planning."""
        self._planned += 1
        heapq.heappush(self._plan, (when_ms, self._planned, call, args))

    def after(self, delay_ms: float, call: Callable[..., None], *args: Any) -> None:
        """Plans a call ``delay_ms`` from now."""
        self.at(self.now_ms + delay_ms, call, *args)

    def run(self, until_ms: float) -> None:
        """Lets all happen that is planned up to a moment, and stops there."""
        while self._plan and self._plan[0][0] <= until_ms:
            when_ms, _, call, args = heapq.heappop(self._plan)
            self.now_ms = max(self.now_ms, when_ms)
            call(*args)
        self.now_ms = max(self.now_ms, until_ms)
