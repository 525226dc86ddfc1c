"""Model brokers: processes whose image follows the log late, in two steps, and who die and come back with less."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.clock import Clock
from tests.simulation.metadata_log import MetadataLog

if TYPE_CHECKING:
    from tests.simulation.links import Link

Span = tuple[float, float]


class Process:
    """One incarnation of a broker. Its image is computed when it is looked at, from the plan that the log's feed made.

    Attributes:
        alive: it answers.
        links: the connections that it accepted.
    """

    def __init__(self, node_id: int, clock: Clock, offset: int) -> None:
        self.node_id = node_id
        self.alive = True
        self.links: list[Link] = []
        self._clock = clock
        self._visible = offset
        self._effective = offset
        self._showing: deque[tuple[float, int]] = deque()
        self._applying: deque[tuple[float, int]] = deque()
        self._fetched_ms = 0.0
        self._free_ms = 0.0

    @property
    def visible(self) -> int:
        """The offset of the image: what ApiVersions reports and reads show."""
        while self._showing and self._showing[0][0] <= self._clock.now_ms:
            self._visible = self._showing.popleft()[1]
        return self._visible

    @property
    def effective(self) -> int:
        """What the broker acts upon: configs, quotas, ACLs and credentials follow the image."""
        while self._applying and self._applying[0][0] <= self._clock.now_ms:
            self._effective = self._applying.popleft()[1]
        return self._effective

    def feed(self, offset: int, arrives_ms: float, apply_ms: float) -> None:
        """A record comes from the controllers; the loader takes one batch after the other."""
        self._fetched_ms = max(self._fetched_ms, arrives_ms)
        starts_ms = max(self._fetched_ms, self._free_ms)
        self._free_ms = starts_ms + apply_ms
        self._showing.append((starts_ms, offset))
        self._applying.append((self._free_ms, offset))

    def catch_up(self, offset: int, in_ms: float) -> None:
        """Everything up to ``offset`` is there soon, whatever was planned."""
        self._effective = self.visible
        self._showing.clear()
        self._applying.clear()
        self._fetched_ms = self._free_ms = 0.0
        if offset > self._visible:
            self.feed(offset, self._clock.now_ms + in_ms, 1.0)


class Node:
    """One node id of the cluster: at most one process at a time, at one address.

    Attributes:
        process: None while it is down.
        address: counts how often the node moved.
    """

    def __init__(self, node_id: int, clock: Clock, random: Random, log: MetadataLog, *, lag: Span, apply: Span) -> None:
        self.node_id = node_id
        self.address = 0
        self.process: Process | None = Process(node_id, clock, log.committed)
        self._clock = clock
        self._random = random
        self._log = log
        self._lag = lag
        self._apply = apply
        self._steady_ms = random.uniform(*lag) if random.random() < 0.5 else None
        self._paused_until_ms = 0.0

    def committed(self, offset: int) -> None:
        """The log committed a record."""
        if self.process is not None:
            lag_ms = self._random.uniform(*self._lag) if self._steady_ms is None else self._steady_ms
            arrives_ms = max(self._clock.now_ms + lag_ms, self._paused_until_ms)
            self.process.feed(offset, arrives_ms, self._random.uniform(*self._apply))

    def pause(self, duration_ms: float) -> None:
        """The feed from the controllers stands still for a while."""
        self._paused_until_ms = self._clock.now_ms + duration_ms

    def die(self, ends: Callable[["Link"], None]) -> None:
        """The process is killed; what it had answered may still be on its way."""
        if self.process is not None:
            process, self.process = self.process, None
            process.alive = False
            for link in process.links:
                ends(link)

    def start(self, offset: int, replay_ms: float) -> None:
        """A new process starts from an image at ``offset`` and replays the rest."""
        if self.process is None:
            self.process = Process(self.node_id, self._clock, offset)
            if offset < self._log.committed:
                apply_ms = self._random.uniform(*self._apply)
                self.process.feed(self._log.committed, self._clock.now_ms + replay_ms, apply_ms)

    def heal(self) -> None:
        """From now on it follows closely."""
        self._lag, self._apply, self._steady_ms, self._paused_until_ms = (0, 2), (0, 1), None, 0.0
        if self.process is None:
            self.start(self._log.committed, 0.0)
        else:
            self.process.catch_up(self._log.committed, 1.0)
