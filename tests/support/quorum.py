"""A quorum of one voter, in memory, for tests of what stands on top of a log."""

import asyncio
from types import TracebackType
from typing import Final, Self

from backend.net.driver import Driver
from backend.net.metadata_log import MetadataLog
from backend.net.peers import Network
from backend.net.replica_host import ReplicaHost
from backend.raft.settings import QuorumSettings
from backend.storage.memory import MemoryStorage

VOTER: Final = 3001
SEGMENT_BYTES: Final = 1000
"""So short that a log is cut back soon."""


class SoloQuorum:
    """The voter, and observers of it.

    Attributes:
        log: the voter's.
        network: where it and its observers are.
    """

    log: MetadataLog

    def __init__(self, cluster_id: str = "cluster-a") -> None:
        self.network = Network(cluster_id, {VOTER: ("127.0.0.1", 0)})
        self._voter = self._host(VOTER)
        self._observers: list[MetadataLog] = []
        self._faults: list[BaseException] = []

    @property
    def driver(self) -> Driver:
        """The voter's."""
        return self._voter.driver

    async def observer(self, node_id: int) -> MetadataLog:
        """The log of a new observer."""
        log = await self._host(node_id).start(self._failed)
        self._observers.append(log)
        return log

    async def __aenter__(self) -> Self:
        self.log = await self._voter.start(self._failed)
        async with asyncio.timeout(10):
            await self.log.find_leader()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for log in (*self._observers, self.log):
            await log.close()
        assert self._faults == []

    def _host(self, node_id: int) -> ReplicaHost:
        settings = QuorumSettings(node_id=node_id, voters=(VOTER,), election_timeout_ms=20)
        return ReplicaHost(settings, self.network, _storage, blocks=False, hasty=False)

    def _failed(self, what: str, error: BaseException) -> None:
        self._faults.append(error)


def _storage() -> MemoryStorage:
    return MemoryStorage(segment_bytes=SEGMENT_BYTES)
