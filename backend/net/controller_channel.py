"""A broker's way to whoever leads: finds the leader, asks it, and asks again while nobody does.

A call that fails because there is no leader, or a new one, is tried again until its time is over, as Kafka's brokers do
with what they forward. A write whose answer was lost may then be found to be done already.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar, final

from backend.metadata.image import Image
from backend.metadata.records import Record
from backend.metadata.writes import WriteRequest
from backend.net.active_controller import ActiveController, Registration, Written
from backend.raft.interfaces import NotLeader, Observer, QuorumState

T = TypeVar("T")

BACKOFF_S: Final = 0.02
WRITE_TIMEOUT_MS: Final = 30_000
"""At most, and for requests that do not say how long they may take; Kafka's request.timeout.ms."""
CALL_TIMEOUT_MS: Final = 10_000
"""For what brokers ask for themselves."""


class NoController(Exception):
    """No controller has answered in time; whether a write was done is not known."""


class Controllers(Protocol):
    """The controllers of the cluster."""

    def controller(self, node_id: int) -> ActiveController:
        """One of them, by its id.

        Raises:
            NotLeader: It cannot be reached.
        """
        ...


@final
class ControllerChannel:
    """An `ActiveController` for one broker; each call raises `NoController` when its time is over.

    Args:
        log: the broker's replica, which knows who leads.
        controllers: how they are reached.
    """

    def __init__(self, log: Observer[Record, Image], controllers: Controllers) -> None:
        self._log = log
        self._controllers = controllers

    async def write(self, request: WriteRequest) -> Written:
        """See `ActiveController`; within the time that the request gives, if it does."""
        given_ms = request.body.get("timeout_ms", 0)
        timeout_ms = min(given_ms, WRITE_TIMEOUT_MS) if given_ms > 0 else WRITE_TIMEOUT_MS
        return await self._ask(lambda controller: controller.write(request), timeout_ms)

    async def register(self, registration: Registration) -> int:
        """See `ActiveController`."""
        return await self._ask(lambda controller: controller.register(registration), CALL_TIMEOUT_MS)

    async def heartbeat(self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> bool:
        """See `ActiveController`."""
        return await self._ask(
            lambda controller: controller.heartbeat(broker_id, broker_epoch, image_offset, leaving=leaving),
            CALL_TIMEOUT_MS,
        )

    async def describe(self) -> QuorumState:
        """See `ActiveController`."""
        return await self._ask(lambda controller: controller.describe(), CALL_TIMEOUT_MS)

    async def _ask(self, call: Callable[[ActiveController], Awaitable[T]], timeout_ms: int) -> T:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    leader_id = await self._log.find_leader()
                    try:
                        return await call(self._controllers.controller(leader_id))
                    except NotLeader:
                        await asyncio.sleep(BACKOFF_S)
        except TimeoutError as error:
            raise NoController(f"no controller has answered within {timeout_ms} ms") from error
