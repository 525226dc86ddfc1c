"""One node's replica, running: its storage, the driver that runs it, its ways to the others, and the log that it gives.

Made by `backend.app` for every node of this process; controllers and brokers are put on top.
"""

import asyncio
from collections.abc import Callable
from typing import final

from backend.net.disk import Disk
from backend.net.driver import Driver
from backend.net.metadata_log import MetadataLog
from backend.net.peers import Network, Peers
from backend.raft.settings import QuorumSettings
from backend.raft.storage import ReplicaStorage


@final
class ReplicaHost:
    """A replica that can be started, stopped, and started again.

    Args:
        settings: its place in the quorum.
        network: what the nodes of this process share.
        open_storage: opens its storage, in a thread if calls of it `block`.
        hasty: see `Driver.open`.

    Attributes:
        peers: how it reaches the others.
    """

    def __init__(
        self,
        settings: QuorumSettings,
        network: Network,
        open_storage: Callable[[], ReplicaStorage],
        *,
        blocks: bool,
        hasty: bool,
    ) -> None:
        self.node_id = settings.node_id
        self.peers = Peers(settings.node_id, network)
        self._settings = settings
        self._network = network
        self._open_storage = open_storage
        self._blocks = blocks
        self._hasty = hasty
        self._running: tuple[Driver, asyncio.Task[None]] | None = None

    @property
    def driver(self) -> Driver:
        """The driver; only while it runs."""
        assert self._running is not None, "the replica is stopped"
        return self._running[0]

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self._running is not None

    async def start(self, on_failure: Callable[[str, BaseException], None]) -> MetadataLog:
        """Open the storage and run; returns the log, which stops the replica when it is closed.

        Raises:
            CorruptLog: The storage is damaged.
        """
        storage = await asyncio.to_thread(self._open_storage) if self._blocks else self._open_storage()
        disk = Disk(storage, blocks=self._blocks)
        driver = await Driver.open(self._settings, disk, self.peers, hasty=self._hasty)
        task = asyncio.get_running_loop().create_task(driver.run(), name=f"node {self.node_id}: replica")
        self._running = driver, task
        self._network.drivers[self.node_id] = driver

        def ended(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                on_failure(f"node {self.node_id}: replica", error)

        task.add_done_callback(ended)
        return MetadataLog(driver, self.peers, self._network.cluster_id, self.stop)

    async def stop(self) -> None:
        """End it; what others asked it is not answered any more."""
        if self._running is None:
            return
        (driver, task), self._running = self._running, None
        self._network.drivers.pop(self.node_id, None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        driver.end()
        await self.peers.close()
        await driver.disk.close()
