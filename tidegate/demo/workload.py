"""The workload: changes something, and once that is acknowledged reads it back through every node at once.

Each worker makes every change twice, direct and through the sidecar at the same time, so both ways see the same load at
the same moments. Counts into one `Tally` a way. Knows addresses only: it cannot tell a sidecar from a broker.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final, final

from tidegate.demo.changes import Change, Request, Seen, changes_of_cycle, topic_created
from tidegate.demo.tally import Tally
from tidegate.demo.wire import Connection, Unanswered

WORKERS: Final = 4
ROUND_S: Final = 0.2
"""A worker begins its next change so long after the last, or as soon as that is read back."""
SETTLE_RETRY_S: Final = 0.05
FAILURES_LOGGED: Final = 5
"""On each way in; the rest is only counted."""

log = logging.getLogger("tidegate.demo")


class SetupFailed(Exception):
    """The workload cannot begin; the text says what was refused."""


@final
class Lane:
    """One worker's connections on one way in: one to each node."""

    def __init__(self, nodes: Sequence[tuple[str, int]], tally: Tally) -> None:
        self._connections = [Connection(host, port) for host, port in nodes]
        self._writer = itertools.cycle(self._connections)
        self._tally = tally

    async def set_up(self, topic: str) -> None:
        """Create the topic whose configuration is changed, and wait until every node shows it.

        Raises:
            SetupFailed: It cannot be created.
        """
        change = topic_created(topic)
        try:
            answer = await _ask(self._connections[0], change.write)
            if any(change.write_errors(answer)):
                raise SetupFailed(f"CreateTopics for {topic} was refused: {answer}")
            for connection in self._connections:
                while change.judge(await _ask(connection, change.read)) is not Seen.FRESH:  # noqa: ASYNC110 - it polls
                    await asyncio.sleep(SETTLE_RETRY_S)
        except Unanswered as error:
            raise SetupFailed(str(error)) from error

    async def play(self, change: Change) -> None:
        """Make a change, then read it back through all nodes at once."""
        try:
            answer = await _ask(next(self._writer), change.write)
        except Unanswered as error:
            self._failed(str(error))
            return
        if errors := [code for code in change.write_errors(answer) if code]:
            self._failed(f"{change.write.api_key.name} was refused with error {errors[0]}")
            return
        await asyncio.gather(*(self._read(connection, change) for connection in self._connections))

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections:
            connection.close()

    async def _read(self, connection: Connection, change: Change) -> None:
        sent_s = time.perf_counter()
        try:
            answer = await _ask(connection, change.read)
        except Unanswered as error:
            self._failed(str(error))
            return
        latency_ms = 1000 * (time.perf_counter() - sent_s)
        seen = change.judge(answer)
        if seen is Seen.FAILED:
            self._failed(f"{change.read.api_key.name} was answered with an error")
        else:
            self._tally.count(seen, latency_ms)

    def _failed(self, what: str) -> None:
        self._tally.failed += 1
        if self._tally.failed <= FAILURES_LOGGED:
            log.warning("%s", what)


async def run(ways: Mapping[str, tuple[Sequence[tuple[str, int]], Tally]]) -> None:
    """Work until cancelled.

    Args:
        ways: for each way in its name, the addresses of its nodes and where its reads are counted.

    Raises:
        SetupFailed: The workload cannot begin.
    """
    workers = [
        asyncio.create_task(
            _work(
                {f"{way}-{worker}": Lane(*place) for way, place in ways.items()},
                # Workers in step would measure how long they wait for each other.
                delay_s=ROUND_S * worker / WORKERS,
            )
        )
        for worker in range(WORKERS)
    ]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _work(lanes: Mapping[str, Lane], delay_s: float) -> None:
    try:
        await asyncio.sleep(delay_s)
        await asyncio.gather(*(lane.set_up(prefix) for prefix, lane in lanes.items()))
        for cycle in itertools.count():
            for changes in zip(*(changes_of_cycle(prefix, cycle) for prefix in lanes), strict=True):
                plays = (lane.play(change) for lane, change in zip(lanes.values(), changes, strict=True))
                await asyncio.gather(asyncio.sleep(ROUND_S), *plays)
    finally:
        for lane in lanes.values():
            lane.close()


async def _ask(connection: Connection, request: Request) -> dict[str, object]:
    return await connection.ask(request.api_key, request.api_version, request.body)
