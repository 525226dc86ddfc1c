"""Connections to model brokers: in order both ways, one request at a time, until one side ends them."""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tests.simulation.brokers import Node, Process, Span
from tests.simulation.clock import Clock

Then = Callable[[Any], None]
Work = Callable[[Process, Then], None]
"""What a process does for one request; calls back with the answer, now or later."""


class Network:
    """Delays, drawn for every message."""

    def __init__(self, clock: Clock, random: Random, *, delay_ms: Span, notice_ms: Span, back_ms: Span) -> None:
        self.clock = clock
        self._random = random
        self._delay_ms = delay_ms
        self._notice_ms = notice_ms
        self._back_ms = back_ms

    def delay_ms(self) -> float:
        """One way."""
        return self._random.uniform(*self._delay_ms)

    def notice_ms(self) -> float:
        """Until the other end is known to be gone."""
        return self._random.uniform(*self._notice_ms)

    def is_slow(self) -> bool:
        """Whether answers on a new connection take longer, as long as it lives."""
        return self._random.random() < 0.4

    def back_ms(self, *, slow: bool) -> float:
        """The way back of an answer."""
        return self.delay_ms() + (self._random.uniform(*self._back_ms) if slow else 0.0)

    def heal(self) -> None:
        """From now on it is quick."""
        self._back_ms = (0, 0)
        self._delay_ms = self._notice_ms = (0.5, 2)


class Link:
    """One connection of the sidecar to one process of a node.

    Attributes:
        address: where it goes; nobody answers if the node has moved.
        process: the one that accepted it.
        opened: it was reported as open.
        closed: by us: nothing is reported any more.
        shown: the image of the process when it accepted.
    """

    def __init__(
        self,
        network: Network,
        node: Node,
        address: int,
        *,
        on_open: Callable[["Link"], None],
        on_end: Callable[["Link"], None],
    ) -> None:
        self.process: Process | None = None
        self.opened = False
        self.closed = False
        self.shown = -1
        self._network = network
        self._clock = network.clock
        self._node = node
        self._address = address
        self._on_open = on_open
        self._on_end = on_end
        self._queue: deque[tuple[Work, Then]] = deque()
        self._busy = False
        self._broken = False
        self._reset = False
        self._out_ms = 0.0
        self._in_ms = 0.0
        self._slow = network.is_slow()
        self._clock.after(network.delay_ms(), self._accept)

    @property
    def carries(self) -> bool:
        """Whether something is on its way."""
        return self._busy or max(self._out_ms, self._in_ms) > self._clock.now_ms

    def send(self, work: Work, then: Then) -> None:
        """Sends a request; ``then`` gets the answer, unless the connection ends before."""
        self._out_ms = max(self._out_ms, self._clock.now_ms + self._network.delay_ms())
        self._clock.at(self._out_ms, self._arrive, work, then)

    def close(self) -> None:
        """We end it."""
        self.closed = self._broken = True

    def end(self, *, reset: bool, notice_ms: float | None = None) -> None:
        """The broker, or the network, ends it; with ``reset`` the answers that are on their way are lost."""
        if self._broken:
            return
        self._broken = True
        self._reset = reset
        notice_ms = self._network.notice_ms() if notice_ms is None else notice_ms
        self._in_ms = max(self._in_ms, self._clock.now_ms + notice_ms)
        self._clock.at(self._in_ms, self._notice)

    def _accept(self) -> None:
        if self._broken:
            return
        process = self._node.process if self._node.address == self._address else None
        if process is None:
            self.end(reset=True)
            return
        self.process = process
        self.shown = process.visible
        process.links.append(self)
        self._in_ms = self._clock.now_ms + self._network.delay_ms()
        self._clock.at(self._in_ms, self._opened)

    def _opened(self) -> None:
        if not self.closed and not self._reset:
            self.opened = True
            self._on_open(self)

    def _notice(self) -> None:
        if not self.closed:
            self._on_end(self)

    def _arrive(self, work: Work, then: Then) -> None:
        if not self._broken:
            self._queue.append((work, then))
            self._next()

    def _next(self) -> None:
        while self._queue and not self._busy and not self._broken and self.process is not None:
            work, then = self._queue.popleft()
            self._busy = True
            work(self.process, partial(self._answer, then))

    def _answer(self, then: Then, answer: Any) -> None:
        if self._broken:
            return
        self._busy = False
        self._in_ms = max(self._in_ms, self._clock.now_ms + self._network.back_ms(slow=self._slow))
        self._clock.at(self._in_ms, self._deliver, answer, then)
        self._next()

    def _deliver(self, answer: Any, then: Then) -> None:
        if not self.closed and not self._reset:
            then(answer)
