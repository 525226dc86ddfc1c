"""Ending without hurting anybody (proxying.md 6.1): first wait for clients to leave, then for the answers in flight.

Both waits are bounded, and end at once when ``hurry`` is set. Who decides that it is time to end is `sidecar.app`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from sidecar.net.driver import Driver

log = logging.getLogger("tidegate.drain")

ANSWERS_TIMEOUT_S: Final = 5.0
"""How long answers in flight are waited for; above the usual `fetch.max.wait.ms`."""
CLOSE_TIMEOUT_S: Final = 1.0
"""How long closed connections may take to be gone."""
_LOOK_S: Final = 0.02


async def wait_for_clients(driver: Driver, timeout_ms: int, hurry: asyncio.Event) -> None:
    """Serves on until all clients have closed their connections, at most for ``timeout_ms``."""
    counters = driver.counters
    if not counters.client_connections:
        return
    log.info("draining: %d client connections are open, waiting up to %d ms", counters.client_connections, timeout_ms)
    if not await _until(lambda: not counters.client_connections, timeout_ms / 1000, hurry):
        log.warning("%d client connections are still open and are closed now", counters.client_connections)


async def finish(driver: Driver, hurry: asyncio.Event) -> None:
    """Takes no more requests, delivers the answers in flight, and closes all connections of clients.

    The listeners must be closed before.
    """
    for client in driver.clients:
        client.drain()
    await _until(lambda: not driver.counters.client_connections, ANSWERS_TIMEOUT_S, hurry)
    for client in driver.clients:
        client.close("shutdown")


async def wait_for_connections(driver: Driver) -> None:
    """Lets the connections that were closed be gone, so that the loop ends without leftovers."""
    counters = driver.counters
    await _until(
        lambda: not counters.client_connections and not any(counters.broker_connections.values()),
        CLOSE_TIMEOUT_S,
        asyncio.Event(),
    )


async def _until(done: Callable[[], bool], timeout_s: float, hurry: asyncio.Event) -> bool:
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not done():
        left_s = end - loop.time()
        if left_s <= 0 or hurry.is_set():
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_LOOK_S, left_s)):
                await hurry.wait()
    return True
