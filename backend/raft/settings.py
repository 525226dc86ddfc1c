"""What a replica is told before it starts: who votes, how long it waits, and what its disk holds.

Values only. Sits below everything of `backend.raft` but the batches; the driver makes both.
"""

from dataclasses import dataclass
from typing import final

from backend.raft.batches import EpochStart, SnapshotId
from backend.raft.effects import ElectionState


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """One node's view of the quorum; the voters never change (kraft.version 0).

    Attributes:
        node_id: this node; an observer when it is not among the voters.
        voters: ids of all voters, the same on every node.
        election_timeout_ms: least time that an election may take, and that a voter without a leader waits before one;
            up to as much again is added at random. Kafka's quorum.election.timeout.ms.
        fetch_timeout_ms: how long a follower does without an answer of its leader. Kafka's quorum.fetch.timeout.ms.
        request_timeout_ms: a request without a response counts as failed after this.
        retry_backoff_ms: pause after a request that failed.
        fetch_max_wait_ms: how long a leader may hold a Fetch when there is no news.
        fetch_max_bytes: batches in one response; the first comes however large it is.
        snapshot_max_bytes: piece of a snapshot in one response.
    """

    node_id: int
    voters: tuple[int, ...]
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
    snapshot_max_bytes: int = 1024 * 1024

    def __post_init__(self) -> None:
        if not self.voters or len(set(self.voters)) != len(self.voters):
            raise ValueError(f"voters {list(self.voters)}: at least one is needed, and each once")

    @property
    def is_voter(self) -> bool:
        """Whether this node votes; otherwise it only follows."""
        return self.node_id in self.voters

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    @property
    def other_voters(self) -> tuple[int, ...]:
        """All voters but this node."""
        return tuple(voter for voter in self.voters if voter != self.node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What storage found at start.

    Attributes:
        epochs: the epochs with records in the log, in order, and where each starts.
        latest_snapshot: the newest complete snapshot; the log reaches at least to its end.
    """

    election: ElectionState
    log_start_offset: int
    log_end_offset: int
    epochs: tuple[EpochStart, ...] = ()
    latest_snapshot: SnapshotId | None = None
