"""The states of a replica, with Kafka's names, and what each remembers while it lasts.

What must survive a state (epoch, vote, log, high watermark) is in `backend.raft.node`; what must survive the process is
on disk. From where to where, and why:

    Unattached   Unattached    a newer epoch; it gave its vote
    Unattached   Prospective   the election timeout passed
    Unattached   Candidate     the leader that resigned named it first; it is the only voter
    Unattached   Follower      it learned who leads
    Prospective  Unattached    a newer epoch; it gave its vote; no majority would vote for it, and it knows no leader
    Prospective  Candidate     a majority would vote for it
    Prospective  Follower      it learned who leads; no majority would vote for it, and it still knows its leader
    Candidate    Unattached    a newer epoch
    Candidate    Prospective   the election timeout passed, or the pause after a lost election
    Candidate    Leader        a majority voted for it
    Candidate    Follower      it learned who leads
    Leader       Unattached    a newer epoch
    Leader       Follower      a newer epoch, and who leads in it
    Leader       Resigned      no majority has fetched for too long; an orderly stop
    Follower     Unattached    a newer epoch; its leader resigned; an observer's leader fell silent
    Follower     Prospective   the fetch timeout passed
    Follower     Follower      a newer epoch, and who leads in it
    Resigned     Unattached    a newer epoch; the election timeout passed
    Resigned     Follower      a newer epoch, and who leads in it

An observer is Unattached or Follower, no more. Differs from Kafka in one respect: whom a resigning leader names first
stands without asking for pre-votes, because there is no leader left to disturb (Raft thesis 3.10). Sources: QuorumState
of Kafka, KIP-595, KIP-996.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from backend.raft.calls import Calls
from backend.raft.interfaces import UNKNOWN
from backend.raft.reads import ReadRounds
from backend.raft.replication import HeldFetch, Progress
from backend.raft.snapshots import Download


@final
@dataclass(slots=True, kw_only=True)
class Unattached:
    """Knows an epoch and no leader in it.

    Attributes:
        election_deadline_ms: when a voter stands.
        ask_at_ms: when an observer asks the next voter who leads.
    """

    election_deadline_ms: int
    ask_at_ms: int = 0


@final
@dataclass(slots=True, kw_only=True)
class Prospective:
    """Asks whether it would be elected, in its present epoch; has forgotten nothing.

    Attributes:
        election_deadline_ms: when it gives up.
        calls: whom it has not heard.
        granted: who would vote for it, itself included.
        refused: who would not.
    """

    election_deadline_ms: int
    calls: Calls
    granted: set[int]
    refused: set[int] = field(default_factory=set)


@final
@dataclass(slots=True, kw_only=True)
class Candidate:
    """Stands in an epoch of its own.

    Attributes:
        election_deadline_ms: when it gives up; after a lost election, when the pause is over.
        calls: whom it has not heard.
        granted: who voted for it, itself included.
        refused: who did not.
        is_backing_off: the election is lost.
    """

    election_deadline_ms: int
    calls: Calls
    granted: set[int]
    refused: set[int] = field(default_factory=set)
    is_backing_off: bool = False


@final
@dataclass(slots=True, kw_only=True)
class Leader:
    """Leads its epoch.

    Attributes:
        epoch_start_offset: the first offset of its epoch.
        elected_ms: when it was elected.
        voters: the other voters.
        calls: whom it tells, and when again, that it leads.
        observers: everybody else who fetches.
        held: Fetches that wait for news, by who sent them.
        reads: reads that wait for the proof that it leads.
        high_watermark: its own, so -1 until a record of its epoch is committed.
    """

    epoch_start_offset: int
    elected_ms: int
    voters: dict[int, Progress]
    calls: Calls
    observers: dict[int, Progress] = field(default_factory=dict)
    held: dict[int, HeldFetch] = field(default_factory=dict)
    reads: ReadRounds = field(default_factory=ReadRounds)
    high_watermark: int = UNKNOWN


@final
@dataclass(slots=True, kw_only=True)
class Follower:
    """Follows the leader of its epoch.

    Attributes:
        fetch_deadline_ms: when it has done without an answer for too long.
        ask_at_ms: when it fetches again; while a Fetch is under way, when that counts as lost.
        hears_leader: whether the leader has answered since it follows.
        download: the snapshot that it is fetching.
        asks_around: the connection to the leader broke, so an observer asks another voter whether there is a new one.
    """

    leader_id: int
    fetch_deadline_ms: int
    ask_at_ms: int = 0
    hears_leader: bool = False
    download: Download | None = None
    asks_around: bool = False


@final
@dataclass(slots=True, kw_only=True)
class Resigned:
    """Led its epoch and does so no more.

    Attributes:
        election_deadline_ms: how long it waits for another to be elected.
        calls: who has not acknowledged that it resigned.
        preferred_successors: whom it would like, best first.
    """

    election_deadline_ms: int
    calls: Calls
    preferred_successors: tuple[int, ...]


State: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned

TRANSITIONS: Final[dict[type[State], frozenset[type[State]]]] = {
    Unattached: frozenset({Unattached, Prospective, Candidate, Follower}),
    Prospective: frozenset({Unattached, Candidate, Follower}),
    Candidate: frozenset({Unattached, Prospective, Leader, Follower}),
    Leader: frozenset({Unattached, Follower, Resigned}),
    Follower: frozenset({Unattached, Prospective, Follower}),
    Resigned: frozenset({Unattached, Follower}),
}
"""The same table; `backend.raft.transitions` goes nowhere else."""
