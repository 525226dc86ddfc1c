"""One controller: follows the log, and while its replica leads, decides on writes and keeps brokers registered.

    follow the log ──> leads, and has applied its own epoch's first record ──> active: decide, propose, answer
         ^                                                                                │
         └──────────────── deposed: all that is not committed is forgotten ───────────────┘

A decision is made by `backend.metadata` on the image of everything decided before, committed or not. It is tried on
that image before it is proposed, so that a record that does not fit is never committed. Decisions do not wait for each
other's commit, answers do: that is how many writes share one fsync. Sits between the brokers, which forward writes to
it, and the quorum's `Leader`.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from backend.metadata import registrations
from backend.metadata.controller import decide
from backend.metadata.image import Image
from backend.metadata.records import (
    Batch,
    BrokerFeature,
    FeatureLevelRecord,
    NoOpRecord,
    Record,
    Uuid,
)
from backend.metadata.writes import WriteContext, WriteRequest
from backend.net.active_controller import NotRegistered, Registration, StaleBrokerEpoch, Written
from backend.net.security import OPEN, Security
from backend.net.snapshots import Snapshots
from backend.raft.interfaces import Leader, NotLeader, QuorumState

log = logging.getLogger("tidegate.controller")

SESSION_TIMEOUT_MS: Final = 9000
"""Kafka's `broker.session.timeout.ms`: a broker that is silent for so long is fenced."""
SESSION_LOOKS: Final = 20
"""How often sessions are looked at within that time."""
FETCH_RECORDS_MAX: Final = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDefaults:
    """What topics get that leave it to the controller."""

    num_partitions: int = 1
    replication_factor: int = 1

    @property
    def static_configs(self) -> dict[str, str]:
        """The same as configuration of a node."""
        return {
            "num.partitions": str(self.num_partitions),
            "default.replication.factor": str(self.replication_factor),
            "auto.create.topics.enable": "false",
        }


@final
class Controller:
    """One controller over a `Leader`. `run` it in a task; the rest answers while it is active.

    Args:
        leader: its replica's log.
        features: their levels begin the log of a new cluster, as `kafka-storage format` leaves them.
    """

    def __init__(
        self,
        leader: Leader[Record, Image],
        cluster_id: str,
        defaults: TopicDefaults,
        features: Sequence[BrokerFeature],
        *,
        noop_interval_ms: int,
        security: Security = OPEN,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        self._leader = leader
        self._defaults = defaults
        self._features = features
        self._noop_interval_ms = noop_interval_ms
        self._security = security
        self._session_timeout_ms = session_timeout_ms
        self._committed = Image.empty(cluster_id)
        self._snapshots = Snapshots(leader)
        self._active: _Active | None = None
        self._activated = asyncio.Event()

    @property
    def image(self) -> Image:
        """Everything decided while it is active, else everything committed that it has applied."""
        return self._committed if self._active is None else self._active.image

    @property
    def is_active(self) -> bool:
        """Whether it decides."""
        return self._active is not None

    async def activated(self) -> None:
        """Returns when it is active."""
        await self._activated.wait()

    async def run(self) -> None:
        """Follow the log and take office whenever the replica leads; for ever."""
        try:
            while True:
                await self._follow()
                await self._reign()
        finally:
            await self._snapshots.close()

    async def write(self, request: WriteRequest) -> Written:
        """See `ActiveController`. A write that changes nothing is answered when what precedes it is committed."""
        active = self._in_office()
        context = WriteContext(
            now_ms=time.time_ns() // 1_000_000,
            new_uuid=new_uuid,
            num_partitions=self._defaults.num_partitions,
            replication_factor=self._defaults.replication_factor,
            controller_id=self._leader.leader_id,
            static_configs=self._defaults.static_configs,
            authorizer=self._security.authorizer,
            tokens=self._security.tokens,
        )
        outcome = decide(request, active.image, context)
        offset = await self._commit(active, outcome.records)
        return Written(response=outcome.response, offset=offset)

    async def append(self, records: Sequence[Record]) -> int:
        """Commit records that were decided elsewhere; returns the offset of the last.

        Raises:
            ReplayError: They do not fit; nothing is written.
            NotLeader: This controller is not active, or ceased to be.
        """
        return await self._commit(self._in_office(), records)

    async def register(self, registration: Registration) -> int:
        """See `ActiveController`."""
        active = self._in_office()
        records = registrations.register(
            active.image,
            broker_id=registration.broker_id,
            incarnation_id=registration.incarnation_id,
            end_points=registration.end_points,
            log_dir=registration.log_dir,
            features=registration.features,
        )
        committed = self._commit(active, records)
        epoch = active.image.cluster.brokers[registration.broker_id].broker_epoch
        active.heard[registration.broker_id] = _now_s()
        await committed
        return epoch

    async def heartbeat(self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> bool:
        """See `ActiveController`."""
        active = self._in_office()
        broker = active.image.cluster.brokers.get(broker_id)
        if broker is None:
            raise NotRegistered
        if broker.broker_epoch != broker_epoch:
            raise StaleBrokerEpoch
        if leaving:
            active.heard.pop(broker_id, None)
            records = registrations.fence(active.image, broker_id)
        else:
            active.heard[broker_id] = _now_s()
            records = registrations.unfence(active.image, broker_id) if image_offset >= broker_epoch else []
        if records:
            await self._commit(active, records)
        return active.image.cluster.brokers[broker_id].fenced

    async def describe(self) -> QuorumState:
        """See `ActiveController`."""
        return await self._leader.describe()

    # Following

    async def _follow(self) -> None:
        """Apply what is committed, until this node leads and has applied a record of its own epoch."""
        leader = self._leader
        while not (leader.leads and self._committed.highest_epoch == leader.leader_epoch):
            fetched = await leader.fetch(self._committed.highest_offset + 1, FETCH_RECORDS_MAX)
            if fetched.snapshot is not None:
                self._committed = fetched.snapshot.content
                self._snapshots.loaded(self._committed)
            for batch in fetched.batches:
                if batch.base_offset <= self._committed.highest_offset:
                    # Confirmed as a decision of this node's own while it was fetched.
                    continue
                self._committed = self._committed.apply(
                    Batch(base_offset=batch.base_offset, leader_epoch=batch.leader_epoch, records=batch.records)
                )
            self._snapshots.applied(self._committed)

    # Office

    async def _reign(self) -> None:
        """Decide until the replica is deposed; then only what is known to be committed remains."""
        epoch = self._leader.leader_epoch
        active = self._active = _Active(leader_epoch=epoch, image=self._committed)
        # Who was there when the last leader went has as long again to speak up.
        active.heard = {broker.broker_id: _now_s() for broker in self._committed.cluster.alive()}
        log.info("controller of epoch %d is active at offset %d", epoch, self._committed.highest_offset)
        try:
            if not active.image.features:
                await self._commit(active, self._first_records())
            self._activated.set()
            duties = [asyncio.ensure_future(self._watch_sessions(active))]
            if self._noop_interval_ms:
                duties.append(asyncio.ensure_future(self._write_noops(active)))
            deposed = asyncio.ensure_future(self._leader.deposed(epoch))
            try:
                done, _ = await asyncio.wait([deposed, *duties], return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in (deposed, *duties):
                    task.cancel()
                await asyncio.gather(deposed, *duties, return_exceptions=True)
        except NotLeader:
            pass
        finally:
            self._active = None
            self._activated.clear()
        log.info("controller of epoch %d has resigned at offset %d", epoch, self._committed.highest_offset)

    def _first_records(self) -> list[Record]:
        levels = [FeatureLevelRecord(name=f.name, feature_level=f.max_supported_version) for f in self._features]
        return [*levels, NoOpRecord()]

    async def _write_noops(self, active: "_Active") -> None:
        while True:
            await asyncio.sleep(self._noop_interval_ms / 1000)
            await self._commit(active, [NoOpRecord()])

    async def _watch_sessions(self, active: "_Active") -> None:
        timeout_s = self._session_timeout_ms / 1000
        while True:
            await asyncio.sleep(timeout_s / SESSION_LOOKS)
            now_s = _now_s()
            for broker_id in [known for known, heard_s in active.heard.items() if now_s - heard_s > timeout_s]:
                del active.heard[broker_id]
                log.warning("broker %d sent no heartbeat for %d ms: fenced", broker_id, self._session_timeout_ms)
                await self._commit(active, registrations.fence(active.image, broker_id))

    def _in_office(self) -> "_Active":
        if self._active is None or not self._activated.is_set():
            raise NotLeader
        return self._active

    def _commit(self, active: "_Active", records: Sequence[Record]) -> Awaitable[int]:
        """Decide on records, if there are any: they are in the image when this returns, committed when it is awaited.

        Awaited, it gives the offset of the last thing decided.
        """
        if records:
            batch = Batch(
                base_offset=active.image.highest_offset + 1,
                leader_epoch=active.leader_epoch,
                records=tuple(records),
            )
            image = active.image.apply(batch)
            done = self._leader.propose(batch.records, leader_epoch=batch.leader_epoch, base_offset=batch.base_offset)
            active.image = image
            active.last = asyncio.ensure_future(self._confirmed(done, image))
            active.last.add_done_callback(_retrieved)
        return _offset(active.last, active.image.highest_offset)

    async def _confirmed(self, done: Awaitable[None], image: Image) -> None:
        await done
        if image.highest_offset > self._committed.highest_offset:
            self._committed = image
            self._snapshots.applied(image)


@final
@dataclass(slots=True, kw_only=True)
class _Active:
    """What an active controller has and loses with its office.

    Attributes:
        image: everything decided.
        last: done when the latest decision is committed; None before the first.
        heard: when each broker with a session was last heard, in seconds of the loop.
    """

    leader_epoch: int
    image: Image
    last: "asyncio.Future[None] | None" = None
    heard: dict[int, float] = field(default_factory=dict)


async def _offset(last: "asyncio.Future[None] | None", offset: int) -> int:
    if last is not None:
        # Others wait for the same decision.
        await asyncio.shield(last)
    return offset


def _retrieved(last: "asyncio.Future[None]") -> None:
    """Nobody may wait for the commit of a NoOp; that it failed is known by other ways."""
    if not last.cancelled():
        last.exception()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def new_uuid() -> Uuid:
    """A random id; Kafka keeps those that begin with zeros for itself, and a random one never does."""
    return uuid.uuid4().bytes
