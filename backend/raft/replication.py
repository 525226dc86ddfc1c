"""What a leader knows of the others, and what it concludes from it.

    committed_end              a record is committed once a majority of voters has it and it, or one after it, is of
                               the leader's own epoch: what a majority has of an older epoch can still be overwritten
    acknowledge                only what a replica was found to share with the leader counts, and nothing is taken back
    is_news                    a Fetch is answered when log or high watermark are beyond what its sender knows
    check_quorum_deadline_ms   a leader that no majority asks any more resigns

Each is a mutation's target. Pure: the leader's answers are made in `backend.raft.leading`. Sources: Raft 5.4.2,
KIP-595, KIP-836 (times), KIP-1166 (high watermark in Fetch), KAFKA-15489 (check-quorum), LeaderState of Kafka.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from backend.raft.calls import NEVER_MS
from backend.raft.interfaces import UNKNOWN, ReplicaState

NEVER: Final = -1

OBSERVERS_MAX: Final = 1000
"""Observers that are remembered; others are served without a trace, and never held."""

OBSERVER_SESSION_MS: Final = 300_000
"""An observer that has not fetched for this long is forgotten, as in Kafka."""


@final
@dataclass(slots=True)
class Progress:
    """How far one replica is, in the leader's eyes.

    Attributes:
        log_end_offset: the end of its log as far as it agrees with the leader's; -1 before its first Fetch.
        last_contact_ms: when it last asked for anything, -1 for never.
        last_fetch_ms: when it last fetched from an offset that agrees.
        last_caught_up_ms: when it last had all that the leader had.
        leader_end_at_fetch: the leader's end at that Fetch.
    """

    replica_id: int
    log_end_offset: int = UNKNOWN
    last_contact_ms: int = NEVER
    last_fetch_ms: int = NEVER
    last_caught_up_ms: int = NEVER
    leader_end_at_fetch: int = UNKNOWN

    def acknowledge(self, fetch_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """It fetches from `fetch_offset`: it has everything below on disk. Late Fetches do not take anything back."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif self.leader_end_at_fetch != UNKNOWN and fetch_offset >= self.leader_end_at_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = max(self.log_end_offset, fetch_offset)
        self.last_fetch_ms = now_ms
        self.leader_end_at_fetch = leader_end_offset

    def state(self) -> ReplicaState:
        """As DescribeQuorum tells it."""
        return ReplicaState(
            replica_id=self.replica_id,
            log_end_offset=self.log_end_offset,
            last_fetch_timestamp_ms=self.last_fetch_ms,
            last_caught_up_timestamp_ms=self.last_caught_up_ms,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFetch:
    """A Fetch that waits for news.

    Attributes:
        known_high_watermark: what its sender knows to be committed; None when it does not say.
    """

    handle: int
    fetch_offset: int
    known_high_watermark: int | None
    deadline_ms: int


def committed_end(ends: Iterable[int], majority: int, epoch_start_offset: int) -> int:
    """The end of what is committed, exclusive, or `UNKNOWN`.

    Args:
        ends: log ends of all voters, the leader's among them; -1 for one that has not fetched.
        majority: how many voters decide.
        epoch_start_offset: the first offset of the leader's epoch.
    """
    end = sorted(ends, reverse=True)[majority - 1]
    return end if end > epoch_start_offset else UNKNOWN


def is_news(fetch_offset: int, known_high_watermark: int | None, log_end_offset: int, high_watermark: int) -> bool:
    """Whether the leader has something that the sender of a Fetch does not know."""
    if fetch_offset < log_end_offset:
        return True
    return known_high_watermark is not None and known_high_watermark < high_watermark


def check_quorum_deadline_ms(contacts_ms: Iterable[int], majority: int, fetch_timeout_ms: int) -> int:
    """When a leader resigns unless a majority, itself among it, has asked it by then.

    Args:
        contacts_ms: when each other voter last asked; the time of the election for one that has not.
        majority: how many voters decide.
        fetch_timeout_ms: a follower asks at least this often; half as much again is granted on top.
    """
    if majority == 1:
        return NEVER_MS
    return sorted(contacts_ms, reverse=True)[majority - 2] + fetch_timeout_ms * 3 // 2
