"""An embedded cluster for clients that block: it runs on an event loop in a thread of its own.

    with BackendThread(embedded()) as cluster:
        cluster.turn(lambda backend: setattr(backend.broker(3), "replay_delay_ms", 200))
        ... clients at cluster.bootstrap ...

Tests that live on an event loop use `backend.app.Backend` itself.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeVar

from backend.app import Backend, ClusterSettings
from tests.support.address import Address
from tests.support.ways import Way

TIMEOUT_S: Final = 30.0

T = TypeVar("T")


class BackendThread:
    """Serves when the constructor returns.

    Attributes:
        bootstrap: `bootstrap.servers`.
        nodes: node id to address.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        """Start a cluster."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="backend", daemon=True)
        self._thread.start()
        self._backend = self.turn(lambda _: Backend(settings))
        self.wait(self._backend.start)
        self.bootstrap = self._backend.bootstrap_servers
        self.nodes = {node_id: Address(*broker.address) for node_id, broker in self._backend.brokers.items()}

    def turn(self, change: Callable[[Backend], T]) -> T:
        """Do something to the cluster on its own loop, for instance turn a knob."""

        async def changed() -> T:
            return change(getattr(self, "_backend", None))  # type: ignore[arg-type]

        return asyncio.run_coroutine_threadsafe(changed(), self._loop).result(TIMEOUT_S)

    def wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """Have the loop do something, and wait for it."""

        async def done() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(TIMEOUT_S)

    def lag(self, node_id: int, replay_delay_ms: int) -> None:
        """Let a broker lag."""
        self.turn(lambda backend: setattr(backend.broker(node_id), "replay_delay_ms", replay_delay_ms))

    def settle(self) -> None:
        """Return when every broker shows and acts upon all that was committed before the call."""
        self.wait(self._settle)

    def way(self, name: str = "direct") -> Way:
        """Straight to this cluster."""
        return Way(name=name, bootstrap=self.bootstrap, nodes=self.nodes, settle=self.settle, settle_access=self.settle)

    def close(self) -> None:
        """End it."""
        self.wait(self._backend.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _settle(self) -> None:
        head = self._backend.head_offset
        await asyncio.gather(
            *(broker.publication.reach_effect(head) for broker in self._backend.brokers.values() if broker.is_serving)
        )
