"""What a replica is in every state: its epoch and vote, its log, what is committed, and what it has asked.

The handlers of the states (`elections`, `leading`, `following`) change it and leave what is to be done in it;
`Replica` takes that out as `Effects`. Knows no rule of the protocol but these:

    save_election            epoch and vote are on disk before they are told: they go out as an effect to persist
    raise_high_watermark     what is committed never becomes less
    truncate                 what is committed is never cut
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, final

from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.effects import (
    Append,
    DeleteBefore,
    Effects,
    ElectionState,
    InstallSnapshot,
    LeaderAndEpoch,
    LogRead,
    Outgoing,
    Persist,
    ReadConfirmed,
    ReadRefused,
    Reply,
    SaveElection,
    SavePiece,
    SnapshotRead,
    Truncate,
)
from backend.raft.interfaces import UNKNOWN
from backend.raft.log_index import LogIndex
from backend.raft.messages import NOBODY, Request, Response
from backend.raft.settings import QuorumSettings, Recovered
from backend.raft.snapshots import Snapshots
from backend.raft.states import Resigned, State, Unattached

NOTHING: Final = Effects()

REQUESTS_IN_FLIGHT_MAX: Final = 10
"""Requests of one leader to one voter that may be without a response."""


class CommittedLost(Exception):
    """Somebody wants records cut off that are committed: two quorums, or a disk that lost what it had promised."""


@final
@dataclass(slots=True)
class InFlight:
    """A request that has no response yet.

    Attributes:
        round_number: of the ReadIndex round that asked it, 0 for none.
    """

    to: int
    request: Request
    deadline_ms: int
    round_number: int


@final
class Node:
    """One replica without its rules.

    Args:
        settings: who votes, and all time limits.
        recovered: what the disk holds.
        jitter: a number in [0, 1) for each call, so that time-outs differ.
    """

    __slots__ = (
        "_announced",
        "_correlation_id",
        "_high_watermark_moved",
        "_jitter",
        "_load_snapshot",
        "_persist",
        "_reads",
        "_replies",
        "_requests",
        "election",
        "high_watermark",
        "in_flight",
        "log",
        "settings",
        "snapshots",
        "state",
        "turn",
    )

    def __init__(
        self, settings: QuorumSettings, recovered: Recovered, jitter: Callable[[], float], now_ms: int
    ) -> None:
        self.settings = settings
        self.log = LogIndex(
            start_offset=recovered.log_start_offset,
            end_offset=recovered.log_end_offset,
            epochs=recovered.epochs,
            snapshot=recovered.latest_snapshot,
        )
        self.election = recovered.election
        self.snapshots = Snapshots(recovered.latest_snapshot)
        self.high_watermark = UNKNOWN
        self.in_flight: dict[int, InFlight] = {}
        self._jitter = jitter
        # Of the voter that an observer asks next.
        self.turn = int(jitter() * len(settings.voters))
        self.state: State = Unattached(election_deadline_ms=now_ms + self.election_timeout_ms())
        self._correlation_id = 0
        self._announced = LeaderAndEpoch(leader_id=NOBODY, leader_epoch=UNKNOWN)
        self._persist: list[Persist] = []
        self._requests: list[Outgoing] = []
        self._replies: list[Reply] = []
        self._reads: list[ReadConfirmed | ReadRefused] = []
        self._load_snapshot: SnapshotId | None = None
        self._high_watermark_moved = False

    # What it is.

    @property
    def epoch(self) -> int:
        """The latest epoch that it has seen."""
        return self.election.leader_epoch

    @property
    def known_leader_id(self) -> int:
        """Who leads as far as it knows, for whoever asks; a leader that resigned names nobody."""
        return NOBODY if isinstance(self.state, Resigned) else self.election.leader_id

    def election_timeout_ms(self) -> int:
        """A random time-out for an election, from the setting up to twice as much."""
        return self.settings.election_timeout_ms + int(self._jitter() * self.settings.election_timeout_ms)

    def jitter(self) -> float:
        """A number in [0, 1)."""
        return self._jitter()

    # What it keeps on disk.

    def save_election(self, election: ElectionState) -> None:
        """Take over epoch, leader and vote."""
        assert election.leader_epoch >= self.epoch, "epochs never go back"
        if election != self.election:
            self.election = election
            self._persist.append(SaveElection(election))

    def append(self, batches: tuple[LogBatch, ...]) -> None:
        """Append batches that follow on the end of the log."""
        for batch in batches:
            assert batch.base_offset == self.log.end_offset, "a log has no gap"
            self.log.append(batch.leader_epoch, batch.last_offset)
        self._persist.append(Append(batches))

    def truncate(self, end_offset: int) -> None:
        """Cut the log.

        Raises:
            CommittedLost: What is committed would be lost.
        """
        if end_offset < max(self.high_watermark, self.log.start_offset):
            raise CommittedLost(f"cut back to {end_offset}, but all below {self.high_watermark} is committed")
        self.log.truncate(end_offset)
        self._persist.append(Truncate(end_offset))

    def save_piece(self, snapshot_id: SnapshotId, position: int, piece: bytes) -> None:
        """Keep a piece of a snapshot that is being fetched."""
        self._persist.append(SavePiece(snapshot_id, position, piece))

    def install(self, snapshot_id: SnapshotId) -> None:
        """Take a snapshot that was fetched in place of the log, and let the state machine begin anew from it."""
        self._persist.append(InstallSnapshot(snapshot_id))
        self.log.begin_anew(snapshot_id)
        self.snapshots.installed(snapshot_id)
        self.load(snapshot_id)

    def load(self, snapshot_id: SnapshotId) -> None:
        """Let the state machine begin anew from a snapshot; all that it holds is committed."""
        self._load_snapshot = snapshot_id
        self.raise_high_watermark(snapshot_id.end_offset)

    def trim(self, written: SnapshotId) -> None:
        """A snapshot of our own is on disk: let the log go behind the one before it."""
        behind = self.snapshots.trim_point(written)
        if behind is not None:
            self.log.trim(behind)
            self._persist.append(DeleteBefore(behind))

    def raise_high_watermark(self, end_offset: int) -> None:
        """All below is committed, and in the log or a snapshot here."""
        if end_offset > self.high_watermark:
            self.high_watermark = end_offset
            self._high_watermark_moved = True

    # What it says.

    def send(self, to: int, request: Request, now_ms: int, round_number: int = 0) -> None:
        """Send a request; its response comes to the state that sent it, or to none."""
        self._correlation_id += 1
        deadline_ms = now_ms + self.settings.request_timeout_ms
        self.in_flight[self._correlation_id] = InFlight(to, request, deadline_ms, round_number)
        self._requests.append(Outgoing(correlation_id=self._correlation_id, to=to, request=request))

    def may_ask(self, to: int) -> bool:
        """Whether a peer has few enough requests without a response to get another."""
        return sum(1 for sent in self.in_flight.values() if sent.to == to) < REQUESTS_IN_FLIGHT_MAX

    def forget_requests(self) -> None:
        """Take no response to anything that was sent so far."""
        self.in_flight.clear()

    def overdue(self, now_ms: int) -> Iterator[int]:
        """Correlation ids of requests whose time is up; all have the same time, so the oldest come first."""
        while self.in_flight:
            correlation_id, oldest = next(iter(self.in_flight.items()))
            if oldest.deadline_ms > now_ms:
                return
            yield correlation_id

    def reply(self, handle: int, response: Response, read: LogRead | SnapshotRead | None = None) -> None:
        """Answer a request."""
        self._replies.append(Reply(handle=handle, response=response, read=read))

    def confirm_read(self, handle: int, high_watermark: int) -> None:
        """Tell a read what is committed."""
        self._reads.append(ReadConfirmed(handle=handle, high_watermark=high_watermark, leader_epoch=self.epoch))

    def refuse_read(self, handle: int) -> None:
        """Tell a read that this node cannot."""
        self._reads.append(ReadRefused(handle=handle, leader_id=self.known_leader_id, leader_epoch=self.epoch))

    def take_effects(self) -> Effects:
        """All that came together since the last call, in the order of `Effects`."""
        election, announced = self.election, self._announced
        leader_id = self.known_leader_id
        leader = None
        if leader_id != announced.leader_id or election.leader_epoch != announced.leader_epoch:
            leader = self._announced = LeaderAndEpoch(leader_id=leader_id, leader_epoch=election.leader_epoch)
        if not (
            self._persist
            or self._requests
            or self._replies
            or self._reads
            or leader
            or self._high_watermark_moved
            or self._load_snapshot
        ):
            return NOTHING
        effects = Effects(
            persist=tuple(self._persist),
            requests=tuple(self._requests),
            replies=tuple(self._replies),
            high_watermark=self.high_watermark if self._high_watermark_moved else None,
            load_snapshot=self._load_snapshot,
            leader=leader,
            reads=tuple(self._reads),
        )
        self._persist.clear()
        self._requests.clear()
        self._replies.clear()
        self._reads.clear()
        self._load_snapshot = None
        self._high_watermark_moved = False
        return effects
