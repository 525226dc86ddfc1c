"""What brokers ask of the active controller, and what it says; whoever it is, in this process or another. Pure."""

from dataclasses import dataclass
from typing import Any, Protocol, final

from backend.metadata.records import BrokerEndpoint, BrokerFeature, Uuid
from backend.metadata.writes import WriteRequest
from backend.raft.interfaces import QuorumState


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


class NotRegistered(Exception):
    """No broker is registered with that id."""


class StaleBrokerEpoch(Exception):
    """Another process has registered with that id since."""


class ActiveController(Protocol):
    """What a broker asks of whoever leads, in this process or another; each call may raise `NotLeader`."""

    async def write(self, request: WriteRequest) -> Written:
        """Decide, commit, answer."""
        ...

    async def register(self, registration: Registration) -> int:
        """Register a broker process, fenced; returns its epoch, the offset that it must reach first."""
        ...

    async def heartbeat(self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> bool:
        """Keep a broker's session alive; unfences it once its image has its registration, fences it if it leaves.

        Returns:
            Whether it is fenced.

        Raises:
            NotRegistered: It is not registered.
            StaleBrokerEpoch: Another process has taken its place.
        """
        ...

    async def describe(self) -> QuorumState:
        """The quorum as the leader sees it, with a high watermark that was confirmed after the call."""
        ...
