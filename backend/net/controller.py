"""The active controller: decides on writes one at a time, has them committed, and keeps brokers registered.

A decision is made by `backend.metadata` on the image of everything committed before. It is tried on that image before
it is proposed, so that a record that does not fit is never committed. Sits between the brokers, which forward writes
to it, and the quorum's `Leader`.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from backend.metadata import registrations
from backend.metadata.controller import decide
from backend.metadata.image import Image
from backend.metadata.records import (
    Batch,
    BrokerEndpoint,
    BrokerFeature,
    FeatureLevelRecord,
    NoOpRecord,
    Record,
    Uuid,
)
from backend.metadata.writes import WriteContext, WriteRequest
from backend.net.security import OPEN, Security
from backend.raft.interfaces import Leader, QuorumState, Snapshot

log = logging.getLogger("tidegate.controller")

SESSION_TIMEOUT_MS: Final = 9000
"""Kafka's `broker.session.timeout.ms`: a broker that is silent for so long is fenced."""
SESSION_LOOKS: Final = 20
"""How often sessions are looked at within that time."""
SNAPSHOT_RECORDS: Final = 10_000
"""Records after which the log is cut back to a snapshot."""


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
@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A write that is committed, or refused after all that went before it is committed.

    Attributes:
        response: the body of the answer.
        offset: the leader's commit offset, which covers the write.
    """

    response: dict[str, Any]
    offset: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a broker says when its process starts."""

    broker_id: int
    incarnation_id: Uuid
    end_points: tuple[BrokerEndpoint, ...]
    log_dir: Uuid
    features: tuple[BrokerFeature, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """What the controller says to a heartbeat: whether the broker is fenced, in the image at `offset`."""

    is_fenced: bool
    offset: int


class ActiveController(Protocol):
    """What a broker asks of whoever leads, in this process or another."""

    async def write(self, request: WriteRequest) -> Written:
        """Decide, commit, answer."""
        ...

    async def register(self, registration: Registration) -> int:
        """Register a broker process, fenced; returns its epoch, the offset that it must reach first."""
        ...

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool
    ) -> HeartbeatAnswer:
        """Keep a broker's session alive; unfences it once its image has its registration, fences it if it leaves."""
        ...

    def describe(self) -> QuorumState:
        """The quorum as the leader sees it."""
        ...


@final
class Controller:
    """The active controller over a `Leader`.

    Attributes:
        image: everything committed.
    """

    def __init__(
        self,
        leader: Leader[Record, Image],
        cluster_id: str,
        defaults: TopicDefaults,
        *,
        noop_interval_ms: int,
        security: Security = OPEN,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        self.image = Image.empty(cluster_id)
        self._leader = leader
        self._defaults = defaults
        self._noop_interval_ms = noop_interval_ms
        self._security = security
        self._session_timeout_ms = session_timeout_ms
        self._writing = asyncio.Lock()
        self._heard: dict[int, float] = {}
        self._snapshot_offset = 0

    async def open(self, features: Sequence[BrokerFeature]) -> None:
        """Begin the log: the finalized level of every feature, as `kafka-storage format` leaves it."""
        levels = [FeatureLevelRecord(name=f.name, feature_level=f.max_supported_version) for f in features]
        async with self._writing:
            await self._commit([*levels, NoOpRecord()])

    async def run(self) -> None:
        """Write NoOp records, fence brokers that fell silent; for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_sessions())
            if self._noop_interval_ms:
                group.create_task(self._write_noops())

    async def write(self, request: WriteRequest) -> Written:
        """See `ActiveController`. A write that changes nothing is answered when what precedes it is committed."""
        async with self._writing:
            context = WriteContext(
                now_ms=time.time_ns() // 1_000_000,
                new_uuid=new_uuid,
                num_partitions=self._defaults.num_partitions,
                replication_factor=self._defaults.replication_factor,
                static_configs=self._defaults.static_configs,
                authorizer=self._security.authorizer,
                tokens=self._security.tokens,
                controller_id=self._leader.describe().leader_id,
            )
            outcome = decide(request, self.image, context)
            if outcome.records:
                await self._commit(outcome.records)
            return Written(response=outcome.response, offset=self.image.highest_offset)

    async def register(self, registration: Registration) -> int:
        """See `ActiveController`."""
        async with self._writing:
            await self._commit(
                registrations.register(
                    self.image,
                    broker_id=registration.broker_id,
                    incarnation_id=registration.incarnation_id,
                    end_points=registration.end_points,
                    log_dir=registration.log_dir,
                    features=registration.features,
                )
            )
            self._heard[registration.broker_id] = asyncio.get_running_loop().time()
            return self.image.cluster.brokers[registration.broker_id].broker_epoch

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool
    ) -> HeartbeatAnswer:
        """See `ActiveController`; a process that another has replaced changes nothing."""
        async with self._writing:
            broker = self.image.cluster.brokers.get(broker_id)
            if broker is None or broker.broker_epoch != broker_epoch:
                return HeartbeatAnswer(is_fenced=True, offset=self.image.highest_offset)
            if leaving:
                self._heard.pop(broker_id, None)
                await self._commit(registrations.fence(self.image, broker_id))
            else:
                self._heard[broker_id] = asyncio.get_running_loop().time()
                if image_offset >= broker_epoch:
                    await self._commit(registrations.unfence(self.image, broker_id))
            is_fenced = self.image.cluster.brokers[broker_id].fenced
            return HeartbeatAnswer(is_fenced=is_fenced, offset=self.image.highest_offset)

    def describe(self) -> QuorumState:
        """See `ActiveController`."""
        return self._leader.describe()

    async def _write_noops(self) -> None:
        while True:
            await asyncio.sleep(self._noop_interval_ms / 1000)
            async with self._writing:
                await self._commit([NoOpRecord()])

    async def _watch_sessions(self) -> None:
        loop = asyncio.get_running_loop()
        timeout_s = self._session_timeout_ms / 1000
        while True:
            await asyncio.sleep(timeout_s / SESSION_LOOKS)
            async with self._writing:
                now_s = loop.time()
                for broker_id in [known for known, heard_s in self._heard.items() if now_s - heard_s > timeout_s]:
                    del self._heard[broker_id]
                    log.warning("broker %d sent no heartbeat for %d ms: fenced", broker_id, self._session_timeout_ms)
                    await self._commit(registrations.fence(self.image, broker_id))

    async def _commit(self, records: Sequence[Record]) -> None:
        """Commit records, if there are any, and take them into the image; the caller holds the lock."""
        if not records:
            return
        leader = self._leader
        batch = Batch(base_offset=leader.high_watermark, leader_epoch=leader.leader_epoch, records=tuple(records))
        image = self.image.apply(batch)
        offset = await leader.propose(batch.records)
        assert offset == image.highest_offset, "nobody else writes to this log"
        self.image = image
        if offset - self._snapshot_offset >= SNAPSHOT_RECORDS:
            self._snapshot_offset = offset
            leader.compact(Snapshot(end_offset=offset + 1, leader_epoch=leader.leader_epoch, content=image))


def new_uuid() -> Uuid:
    """A random id; Kafka keeps those that begin with zeros for itself, and a random one never does."""
    return uuid.uuid4().bytes
