"""The single leader's log as a quorum inside one process: adds waiting and a clock to `backend.raft.single`.

Controllers and brokers see `backend.raft.interfaces` only; the real quorum takes this module's place.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Generic, final

from backend.raft.interfaces import Fetched, Head, QuorumState, R, S, Snapshot
from backend.raft.single import SingleLeaderLog


@final
class LocalQuorum(Generic[R, S]):
    """The leader's side (`Leader`), and where observers come from."""

    def __init__(self, leader_id: int, voter_ids: Sequence[int]) -> None:
        self._log: SingleLeaderLog[R, S] = SingleLeaderLog(leader_id, voter_ids)
        self._grown = asyncio.Event()

    @property
    def high_watermark(self) -> int:
        """See `Leader`."""
        return self._log.high_watermark

    @property
    def leader_epoch(self) -> int:
        """See `Leader`."""
        return self._log.leader_epoch

    async def propose(self, records: Sequence[R]) -> int:
        """See `Leader`."""
        batch = self._log.append(records)
        # Whoever waits keeps the old event; whoever comes next waits for the next batch.
        self._grown.set()
        self._grown = asyncio.Event()
        return batch.last_offset

    def describe(self) -> QuorumState:
        """See `Leader`."""
        return self._log.describe(_now_ms())

    def compact(self, snapshot: Snapshot[S]) -> None:
        """See `Leader`."""
        self._log.compact(snapshot)

    def observer(self, replica_id: int) -> "LocalObserver[R, S]":
        """A new observer of this log; it shows in `describe` from its first fetch until it is closed."""
        return LocalObserver(self, replica_id)

    async def _fetch(self, replica_id: int, from_offset: int, records_max: int) -> Fetched[R, S]:
        while True:
            self._log.fetched(replica_id, from_offset, _now_ms())
            fetched = self._log.read(from_offset, records_max)
            if fetched.batches or fetched.snapshot is not None:
                return fetched
            await self._grown.wait()

    @property
    def _head(self) -> Head:
        return self._log.head

    def _left(self, replica_id: int) -> None:
        self._log.left(replica_id)


@final
class LocalObserver(Generic[R, S]):
    """One observer (`Observer`) of a `LocalQuorum`."""

    def __init__(self, quorum: LocalQuorum[R, S], replica_id: int) -> None:
        self._quorum = quorum
        self._replica_id = replica_id

    @property
    def high_watermark(self) -> int:
        """See `Observer`."""
        return self._quorum.high_watermark

    @property
    def leader_epoch(self) -> int:
        """See `Observer`."""
        return self._quorum.leader_epoch

    async def fetch(self, from_offset: int, records_max: int) -> Fetched[R, S]:
        """See `Observer`."""
        return await self._quorum._fetch(self._replica_id, from_offset, records_max)

    async def confirmed_head(self) -> Head:
        """See `Observer`; the leader is in this process, so its word is the proof, and it comes at once."""
        return self._quorum._head

    def close(self) -> None:
        """See `Observer`."""
        self._quorum._left(self._replica_id)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
