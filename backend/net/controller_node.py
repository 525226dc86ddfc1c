"""One controller as a node: its replica, the controller on top of it, and a listener if others are to reach it."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, final

from backend.net.apis import Identity
from backend.net.broker import Attachment
from backend.net.controller import Controller, TopicDefaults
from backend.net.controller_apis import ControllerApis, ControllerConversation
from backend.net.controller_channel import ControllerChannel
from backend.net.listener import Listener
from backend.net.metadata_log import MetadataLog
from backend.net.offers import FEATURES
from backend.net.peers import Network
from backend.net.replica_host import ReplicaHost
from backend.net.security import Security

RESIGN_TIMEOUT_S: Final = 1.0
"""How long a leader that stops waits for its successor to have been told."""


@final
class ControllerNode:
    """See the module. `open` binds the port, `start` runs it, `stop` ends it.

    Args:
        address: where it listens; None for a controller that only nodes of its own process reach.
        security: of the brokers: whose access rules it enforces on what they forward.
    """

    def __init__(
        self,
        identity: Identity,
        host: ReplicaHost,
        network: Network,
        defaults: TopicDefaults,
        *,
        address: tuple[str, int] | None,
        security: Security,
        noop_interval_ms: int,
    ) -> None:
        self.node_id = identity.node_id
        self._identity = identity
        self._host = host
        self._network = network
        self._defaults = defaults
        self._address = address
        self._security = security
        self._noop_interval_ms = noop_interval_ms
        self._listener: Listener | None = None
        self._log: MetadataLog | None = None
        self._controller: Controller | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def controller(self) -> Controller:
        """The controller; only once it is started."""
        assert self._controller is not None, "the node is not started"
        return self._controller

    @property
    def epoch(self) -> int:
        """The latest epoch of the quorum that it has seen; only while it runs."""
        return self._host.driver.leader.leader_epoch

    @property
    def is_active(self) -> bool:
        """Whether it decides."""
        return self._controller is not None and self._controller.is_active

    def open(self) -> None:
        """Bind the port, if it has one.

        Raises:
            PortTaken: The port cannot be had.
        """
        if self._address is not None:
            self._listener = Listener(*self._address)

    async def start(self, on_failure: Callable[[str, BaseException], None]) -> None:
        """Open what is on disk, and take part in the quorum.

        Raises:
            StorageError: The node's directory cannot be used.
        """
        self._log = await self._host.start(on_failure)
        controller = self._controller = Controller(
            self._log,
            self._identity.cluster_id,
            self._defaults,
            FEATURES,
            noop_interval_ms=self._noop_interval_ms,
            security=self._security,
        )
        self._network.active[self.node_id] = controller
        if self._listener is not None:
            apis = ControllerApis(self._identity, self._host.driver, controller, self._security)
            await self._listener.serve(lambda peer: ControllerConversation(apis, peer))
        self._task = asyncio.get_running_loop().create_task(controller.run(), name=f"node {self.node_id}: controller")

        def ended(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                on_failure(f"node {self.node_id}: controller", error)

        self._task.add_done_callback(ended)

    async def attach(self) -> Attachment:
        """What the broker of the same node hangs on."""
        assert self._log is not None, "controllers start before brokers"
        # The controller of the node shortens the log; the node ends the replica.
        return Attachment(
            log=MetadataLog(self._host.driver, self._host.peers, self._identity.cluster_id),
            controller=ControllerChannel(self._log, self._host.peers),
            snapshots=None,
        )

    async def stop(self, *, resign: bool) -> None:
        """End it; with `resign`, a leader tells the others first, so that they need not wait for its silence."""
        if resign and self._log is not None and self._log.leads:
            epoch = self._log.leader_epoch
            self._host.driver.resign()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RESIGN_TIMEOUT_S):
                    await self._log.deposed(epoch)
                    await self._host.peers.idle()
        self._network.active.pop(self.node_id, None)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._listener is not None:
            await self._listener.close()
        await self._host.stop()
