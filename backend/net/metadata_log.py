"""The committed metadata log as controllers and brokers see it: records and images in place of bytes.

    Controller, Broker ── Leader, Observer ──> MetadataLog ──> Driver ──> Replica
                                                   │ reads            │ persists
                                                   └────> Disk <──────┘

Readers pull: each has its own offset, and what it has not asked for yet lies on disk. Implements
`backend.raft.interfaces.Leader` for `Record` and `Image`.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol, final

from backend.metadata.image import Image
from backend.metadata.records import Record
from backend.net.driver import Driver, ReplicaStopped
from backend.net.log_batches import decoded, encoded, snapshot_image, snapshot_pieces
from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.interfaces import (
    CommittedBatch,
    Fetched,
    Head,
    HeadUnconfirmed,
    NotLeader,
    QuorumState,
    Snapshot,
)
from backend.raft.storage import ReplicaStorage
from codec.batches import read_batch_header

HEAD_TIMEOUT_MS: Final = 3000
"""How long a head is asked for: an election at default time limits fits in."""
HEAD_BACKOFF_MS: Final = 20
READ_BYTES_MAX: Final = 1024 * 1024
SNAPSHOT_READ_BYTES: Final = 4 * 1024 * 1024


class HeadSource(Protocol):
    """Who can ask another node for the head."""

    def head(self, leader_id: int) -> Awaitable[Head]:
        """The head that a majority has confirmed to that node after this call.

        Raises:
            NotLeader: It does not lead, or cannot be asked.
        """
        ...


@final
class MetadataLog:
    """One replica's log.

    Args:
        driver: the replica, running or about to.
        heads: how other nodes are asked for the head.
        cluster_id: of images that are loaded.
        on_close: what ends the replica; None where others use it too.
    """

    def __init__(
        self,
        driver: Driver,
        heads: HeadSource,
        cluster_id: str,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._driver = driver
        self._heads = heads
        self._cluster_id = cluster_id
        self._on_close = on_close

    @property
    def high_watermark(self) -> int:
        """See `Observer`."""
        return self._driver.high_watermark

    @property
    def leader_id(self) -> int:
        """See `Observer`."""
        return self._driver.leader.leader_id

    @property
    def leader_epoch(self) -> int:
        """See `Observer`."""
        return self._driver.leader.leader_epoch

    @property
    def leads(self) -> bool:
        """See `Leader`."""
        return self._driver.leads

    async def find_leader(self) -> int:
        """See `Observer`."""
        while self.leader_id < 0:
            await self._driver.news()
        return self.leader_id

    async def deposed(self, leader_epoch: int) -> None:
        """See `Leader`."""
        with contextlib.suppress(ReplicaStopped):
            while self.leads and self.leader_epoch == leader_epoch:
                await self._driver.news()

    async def fetch(self, from_offset: int, records_max: int) -> Fetched[Record, Image]:
        """See `Observer`."""
        while True:
            end_offset = self.high_watermark
            if from_offset < end_offset:
                found = await self._read(from_offset, end_offset)
                if isinstance(found, SnapshotId):
                    snapshot = await self._load(found)
                    if snapshot is not None:
                        return Fetched(snapshot=snapshot)
                    continue
                return Fetched(batches=_decoded(found, records_max))
            await self._driver.news()

    async def confirmed_head(self) -> Head:
        """See `Observer`."""
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_MS / 1000):
                while True:
                    leader_id = await self.find_leader()
                    try:
                        return await (self._driver.read_index() if self.leads else self._heads.head(leader_id))
                    except NotLeader:
                        await asyncio.sleep(HEAD_BACKOFF_MS / 1000)
        except (TimeoutError, ReplicaStopped) as error:
            raise HeadUnconfirmed(f"no leader has confirmed a head within {HEAD_TIMEOUT_MS} ms") from error

    def propose(self, records: Sequence[Record], *, leader_epoch: int, base_offset: int) -> Awaitable[None]:
        """See `Leader`."""
        if not records:
            raise ValueError("a batch has at least one record")
        batch = encoded(records, _now_ms())
        return self._driver.propose(batch, len(records), leader_epoch=leader_epoch, base_offset=base_offset)

    async def describe(self) -> QuorumState:
        """See `Leader`."""
        try:
            head = await self._driver.read_index()
        except ReplicaStopped as error:
            raise NotLeader from error
        state = self._driver.describe()
        if not self.leads or state.leader_epoch != head.leader_epoch:
            raise NotLeader
        return state

    async def compact(self, snapshot: Snapshot[Image]) -> int:
        """See `Observer`."""
        if snapshot.end_offset > self.high_watermark:
            raise ValueError(f"a snapshot to {snapshot.end_offset}, committed is up to {self.high_watermark}")
        snapshot_id = SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.leader_epoch)
        disk = self._driver.disk
        pieces = await disk.compute(lambda: list(snapshot_pieces(snapshot.content, snapshot_id, _now_ms())))
        await disk.run(lambda storage: _write_snapshot(storage, snapshot_id, pieces))
        self._driver.snapshot_written(snapshot_id)
        return sum(read_batch_header(piece).records_count for piece in pieces)

    async def close(self) -> None:
        """See `Observer`."""
        if self._on_close is not None:
            await self._on_close()

    async def _read(self, from_offset: int, end_offset: int) -> tuple[LogBatch, ...] | SnapshotId:
        return await self._driver.disk.run(lambda storage: _read(storage, from_offset, end_offset))

    async def _load(self, snapshot_id: SnapshotId) -> Snapshot[Image] | None:
        """The snapshot, or None when a newer one has taken its place meanwhile."""
        disk = self._driver.disk
        pieces: list[bytes] = []
        position = 0
        while True:
            piece = await disk.run(partial(_piece, snapshot_id, position))
            if piece is None:
                return None
            if not piece:
                break
            pieces.append(piece)
            position += len(piece)
        image = await disk.compute(lambda: snapshot_image(self._cluster_id, snapshot_id, pieces))
        return Snapshot(end_offset=snapshot_id.end_offset, leader_epoch=snapshot_id.epoch, content=image)


def _read(storage: ReplicaStorage, from_offset: int, end_offset: int) -> tuple[LogBatch, ...] | SnapshotId:
    """Batches, or the snapshot to begin with where the log does not reach back so far."""
    if from_offset < storage.log_start_offset:
        snapshot_id = storage.latest_snapshot
        assert snapshot_id is not None, "a log begins at 0, or behind a snapshot"
        return snapshot_id
    return tuple(storage.read(from_offset, end_offset, READ_BYTES_MAX))


def _piece(snapshot_id: SnapshotId, position: int, storage: ReplicaStorage) -> bytes | None:
    size = storage.snapshot_size(snapshot_id)
    if size is None:
        return None
    return storage.read_snapshot(snapshot_id, position, SNAPSHOT_READ_BYTES) if position < size else b""


def _write_snapshot(storage: ReplicaStorage, snapshot_id: SnapshotId, pieces: Sequence[bytes]) -> None:
    latest = storage.latest_snapshot
    if latest is not None and latest >= snapshot_id:
        return
    storage.write_snapshot(snapshot_id, pieces)
    storage.sync()


def _decoded(batches: Sequence[LogBatch], records_max: int) -> tuple[CommittedBatch[Record], ...]:
    found = []
    count = 0
    for batch in batches:
        found.append(decoded(batch))
        count += len(found[-1].records)
        if count >= records_max:
            break
    return tuple(found)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
