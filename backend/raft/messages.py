"""What replicas say to each other: the fields of Kafka's quorum RPCs that the quorum decides on, in Kafka's words.

The network turns them into the tables of `codec.messages` and back, adds cluster, topic and directory ids, and checks
them. One request of each kind has one response. Sources: KIP-595, KIP-630, KIP-996, KafkaRaftClient of Kafka.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final

from backend.raft.batches import EpochEnd, LogBatch, SnapshotId
from codec.error_codes import ErrorCode

NOBODY: Final = -1
"""A leader that is not known."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """A voter asks for a vote in `replica_epoch`, or, with `pre_vote`, whether it would get one (KIP-996).

    Attributes:
        replica_epoch: the epoch of the candidate; with `pre_vote` its present one, which nobody takes over.
        replica_id: who asks.
        last_offset_epoch: epoch of the last record of its log, 0 for an empty one.
        last_offset: the end of its log, exclusive.
    """

    replica_epoch: int
    replica_id: int
    last_offset_epoch: int
    last_offset: int
    pre_vote: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    """The answer to `VoteRequest`; leader and epoch are what the voter knows."""

    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int
    leader_epoch: int
    vote_granted: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest:
    """A leader makes itself known, or asks whether it still is one (ReadIndex)."""

    leader_id: int
    leader_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse:
    """No error: the voter is in the leader's epoch and follows it."""

    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int
    leader_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    """A leader resigns; whom it would like best comes first."""

    leader_id: int
    leader_epoch: int
    preferred_successors: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    """The answer to `EndQuorumEpochRequest`."""

    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int
    leader_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """A replica asks for the log from `fetch_offset` on: by that it acknowledges everything below.

    Attributes:
        replica_id: a voter's or an observer's id; -1 for a consumer, which acknowledges nothing.
        current_leader_epoch: the epoch in which it takes the receiver for the leader; -1 when it looks for one.
        fetch_offset: the end of its log.
        last_fetched_epoch: epoch of the last record of its log, 0 for an empty one.
        max_wait_ms: how long it is content to wait for news.
        high_watermark: what it knows to be committed, exclusive, -1 for nothing (KIP-1166); None when it does not say.
    """

    replica_id: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    high_watermark: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    """Batches, or where the follower's log parts from the leader's, or a snapshot to fetch first; or an error.

    Attributes:
        high_watermark: the leader's, exclusive; -1 while it is unknown.
        log_start_offset: the first offset of the leader's log.
        diverging_epoch: the follower cuts its log back to here or further; without batches.
        snapshot_id: the follower's offset is no longer in the log; without batches.
        batches: in order, without a gap, from `fetch_offset` on.
    """

    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int
    leader_epoch: int
    high_watermark: int = -1
    log_start_offset: int = 0
    diverging_epoch: EpochEnd | None = None
    snapshot_id: SnapshotId | None = None
    batches: tuple[LogBatch, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    """A replica asks for a piece of a snapshot; `position` and `max_bytes` in bytes."""

    replica_id: int
    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    """A piece of a snapshot of `size` bytes in all; complete once position and piece reach `size`."""

    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int
    leader_epoch: int
    snapshot_id: SnapshotId
    size: int = 0
    position: int = 0
    piece: bytes = b""


Request: TypeAlias = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest
Response: TypeAlias = (
    VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchResponse | FetchSnapshotResponse
)
