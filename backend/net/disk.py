"""A replica's storage as the event loop sees it: one call after the other, in a thread where calls may block.

Storage is used by one thread at a time. A log in files gets a thread of its own, so that an fsync holds up nobody but
those who wait for it; one in memory is called in place, which costs nothing and keeps an embedded cluster quick.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, final

from backend.raft.storage import ReplicaStorage

T = TypeVar("T")


@final
class Disk:
    """One storage.

    Args:
        storage: open.
        blocks: whether its calls may take long.
    """

    def __init__(self, storage: ReplicaStorage, *, blocks: bool) -> None:
        self._storage = storage
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-log") if blocks else None

    async def run(self, work: Callable[[ReplicaStorage], T]) -> T:
        """Do something with the storage, after all that was asked for before."""
        if self._thread is None:
            return work(self._storage)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._storage)

    async def compute(self, work: Callable[[], T]) -> T:
        """Do something long that needs no storage, without holding up the loop if there is a thread for such things."""
        return work() if self._thread is None else await asyncio.to_thread(work)

    async def close(self) -> None:
        """Release the storage, after all that was asked for before."""
        await self.run(lambda storage: storage.close())
        if self._thread is not None:
            self._thread.shutdown()
