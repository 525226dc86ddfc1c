"""The head of the metadata log: which answers about it may be believed (consistency.md sections 3, 4 and 8).

A deposed leader goes on answering DescribeQuorum with a high watermark that lies below acknowledged writes. An answer
therefore counts only with a lease: a majority of the voters fetched from that leader a moment ago, by the leader's own
clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from sidecar.core.ids import UNKNOWN_OFFSET, Seq
from sidecar.core.view import Broker, Head

LEASE_MS: Final = 1000
"""Half of ``controller.quorum.fetch.timeout.ms`` (2000 by default)."""


METADATA_LOG: Final[Mapping[str, Any]] = {
    "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
}
"""The body of a DescribeQuorum question: the one partition that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A voter as the leader sees it; timestamps in ms of the leader's clock, -1 when unknown."""

    replica_id: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumAnswer:
    """What DescribeQuorum said of ``__cluster_metadata``.

    Attributes:
        high_watermark: exclusive; -1 while a new leader has not committed in its epoch.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Voter, ...]

    @classmethod
    def from_response(cls, response: Mapping[str, Any]) -> "QuorumAnswer | None":
        """Reads a decoded DescribeQuorum answer; None when it names no partition or carries an error in one."""
        for topic in response["topics"]:
            for partition in topic["partitions"]:
                if partition["error_code"]:
                    return None
                return cls(
                    leader_id=partition["leader_id"],
                    leader_epoch=partition["leader_epoch"],
                    high_watermark=partition["high_watermark"],
                    voters=tuple(
                        Voter(
                            replica_id=voter["replica_id"],
                            last_fetch_ms=voter.get("last_fetch_timestamp", -1),
                            last_caught_up_ms=voter.get("last_caught_up_timestamp", -1),
                        )
                        for voter in partition["current_voters"]
                    ),
                )
        return None


class Verdict(Enum):
    """Why an answer about the head counts, or does not."""

    CONFIRMED = "confirmed"
    UNKNOWN = "the leader has not committed in its epoch yet"
    NO_LEASE = "no majority of the voters has fetched from the answering leader lately"
    DEPOSED = "a leader of a later epoch is known"
    REGRESSED = "the head is lower at a higher epoch: this is another log"


def lease_holds(answer: QuorumAnswer) -> bool:
    """Whether a majority of the voters, the leader included, fetched within `LEASE_MS` of the leader's own time.

    The leader shows its current time as its own ``LastCaughtUpTimestamp``. With pre-vote (Kafka 4.x) no other leader
    can have been elected meanwhile, under bounded clock rates; on 3.9 the check narrows the window.
    """
    now = next((v.last_caught_up_ms for v in answer.voters if v.replica_id == answer.leader_id), -1)
    if now < 0:
        return False
    fresh = sum(
        1
        for voter in answer.voters
        if voter.replica_id == answer.leader_id or (voter.last_fetch_ms >= 0 and now - voter.last_fetch_ms <= LEASE_MS)
    )
    return 2 * fresh > len(answer.voters)


def judge(known: Head | None, answer: QuorumAnswer) -> Verdict:
    """Whether ``answer`` may become the head, given what is known. A lower epoch is never accepted."""
    if known is not None and answer.leader_epoch < known.leader_epoch:
        return Verdict.DEPOSED
    if answer.high_watermark < 0:
        return Verdict.UNKNOWN
    if not lease_holds(answer):
        return Verdict.NO_LEASE
    later = known is not None and 0 <= known.leader_epoch < answer.leader_epoch
    if known is not None and later and answer.high_watermark - 1 < known.offset:
        return Verdict.REGRESSED
    return Verdict.CONFIRMED


def advanced(known: Head | None, answer: QuorumAnswer, asked: Seq) -> Head:
    """The head after a confirmed answer; answers may overtake each other, so neither offset nor moment goes back."""
    offset = answer.high_watermark - 1
    if known is None:
        return Head(offset=offset, leader_epoch=answer.leader_epoch, asked=asked)
    return Head(offset=max(offset, known.offset), leader_epoch=answer.leader_epoch, asked=max(asked, known.asked))


def broker_max(brokers: Iterable[Broker], known: Head | None) -> Head | None:
    """Where the head cannot be asked: the highest position among all live brokers, a lower bound of the head.

    It holds as of the oldest of the probes it is made of. None while a live broker was not probed, or none lives.
    """
    live = [broker for broker in brokers if broker.up]
    if not live or any(broker.visible == UNKNOWN_OFFSET for broker in live):
        return None
    offset = max(broker.visible for broker in live)
    asked = min(broker.proven for broker in live)
    if known is not None:
        offset, asked = max(offset, known.offset), max(asked, known.asked)
    return Head(offset=offset, leader_epoch=-1, asked=asked)
