"""What the tests of the quorum share: a replica with a clock of its own, and the messages that others send."""

from collections.abc import Sequence
from typing import Final, TypeVar, final

from backend.raft.batches import EpochEnd, EpochStart, LogBatch, SnapshotId
from backend.raft.effects import (
    Append,
    Effects,
    ElectionState,
    Outgoing,
    Persist,
    ReadConfirmed,
    ReadRefused,
    Reply,
)
from backend.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from backend.raft.replica import QuorumSettings, Recovered, Replica
from codec.batches import encode_batch, read_batch_header
from codec.error_codes import ErrorCode
from codec.records import LogRecord

NODE: Final = 1
"""The replica under test; the other voters are 2, 3 and so on, observers are 100 and more."""

NOTHING: Final = Effects()

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Response)


def settings(voters: int = 3, node_id: int = NODE, request_timeout_ms: int = 2000) -> QuorumSettings:
    """Voters 1 to `voters`, with Kafka's time-outs."""
    return QuorumSettings(node_id=node_id, voters=tuple(range(1, voters + 1)), request_timeout_ms=request_timeout_ms)


def recovered(
    *,
    epoch: int = 0,
    leader: int = -1,
    voted: int = -1,
    log: Sequence[int] = (),
    snapshot: SnapshotId | None = None,
    start: int = 0,
) -> Recovered:
    """A disk; `log` has the epoch of each record from `start` on."""
    starts = [
        EpochStart(epoch=log[index], start_offset=start + index)
        for index in range(len(log))
        if index == 0 or log[index] != log[index - 1]
    ]
    return Recovered(
        election=ElectionState(leader_epoch=epoch, leader_id=leader, voted_id=voted),
        log_start_offset=start,
        log_end_offset=start + len(log),
        epochs=tuple(starts),
        latest_snapshot=snapshot,
    )


@final
class Script:
    """A replica, the time, and what came of the last input.

    Args:
        disk: what the replica finds when it starts, at time 0; empty by default.
        voters: how many there are.
        node_id: which one it is; an observer when it is none of them.
        jitter: what the replica draws whenever it draws.
        request_timeout_ms: when a request of its counts as lost.
    """

    def __init__(
        self,
        disk: Recovered | None = None,
        *,
        voters: int = 3,
        node_id: int = NODE,
        jitter: float = 0.5,
        request_timeout_ms: int = 2000,
    ) -> None:
        self.now_ms = 0
        self.replica = Replica(
            settings(voters, node_id, request_timeout_ms),
            disk or recovered(),
            jitter=lambda: jitter,
            now_ms=self.now_ms,
        )
        self.effects = self.replica.start(self.now_ms)
        self.sent: dict[int, Outgoing] = {}
        self.handle = 0
        self._note()

    @property
    def state(self) -> tuple[str, int, int]:
        """State, epoch and leader."""
        return self.replica.state, self.replica.leader_epoch, self.replica.leader_id

    def at(self, now_ms: int) -> Effects:
        """Time passes, the alarm rings as often as it was set for before; all that came of it is joined."""
        effects = NOTHING
        while self.replica.deadline_ms < now_ms:
            self.now_ms = max(self.now_ms, self.replica.deadline_ms)
            effects = effects.then(self.replica.tick(self.now_ms))
        self.now_ms = now_ms
        return self._take(effects.then(self.replica.tick(now_ms)))

    def to_deadline(self) -> Effects:
        """Time passes until the alarm rings, once."""
        self.now_ms = self.replica.deadline_ms
        return self._take(self.replica.tick(self.now_ms))

    def receive(self, request: Request) -> Effects:
        """A request comes in; its handle is one more than the last."""
        self.handle += 1
        return self._take(self.replica.receive(self.handle, request, self.now_ms))

    def asked(self, request: Request, kind: type[ResponseT]) -> ResponseT:
        """A request comes in, and is answered at once."""
        self.receive(request)
        replies = [reply for reply in self.effects.replies if reply.handle == self.handle]
        assert len(replies) == 1
        response = replies[0].response
        assert isinstance(response, kind)
        return response

    def respond(self, outgoing: Outgoing, response: Response) -> Effects:
        """Somebody answers."""
        return self._take(self.replica.respond(outgoing.correlation_id, response, self.now_ms))

    def fail(self, outgoing: Outgoing) -> Effects:
        """Nobody answers."""
        return self._take(self.replica.failed(outgoing.correlation_id, self.now_ms))

    def propose(self, *counts: int) -> int:
        """Append batches of so many records; returns the last offset."""
        offset, effects = self.replica.propose([(batch(count), count) for count in counts], self.now_ms)
        self._take(effects)
        return offset

    def read_index(self, handle: int) -> Effects:
        """A read comes in."""
        return self._take(self.replica.read_index(handle, self.now_ms))

    def snapshot(self, end_offset: int, epoch: int) -> Effects:
        """The replica's own snapshot is written."""
        return self._take(self.replica.snapshot_written(SnapshotId(end_offset=end_offset, epoch=epoch), self.now_ms))

    def resign(self) -> Effects:
        """An orderly stop."""
        return self._take(self.replica.resign(self.now_ms))

    def requests(self, kind: type[RequestT]) -> list[tuple[int, RequestT]]:
        """Whom the last input made it ask, and what."""
        return [
            (outgoing.to, outgoing.request) for outgoing in self.effects.requests if isinstance(outgoing.request, kind)
        ]

    def asked_to_begin(self) -> list[tuple[int, BeginQuorumEpochRequest]]:
        """Whom the last input made it tell that it leads."""
        return self.requests(BeginQuorumEpochRequest)

    def persisted(self) -> tuple[Persist, ...]:
        """What the last input put on disk."""
        return self.effects.persist

    def reads(self) -> tuple[ReadConfirmed | ReadRefused, ...]:
        """What the last input told reads."""
        return self.effects.reads

    def to(self, peer: int) -> Outgoing:
        """The latest request to a peer."""
        return self.sent[peer]

    def elected(self, *granting: int) -> "Script":
        """Let it be elected, with the votes of these."""
        while self.replica.state in ("Unattached", "Follower", "Resigned"):
            self.to_deadline()
        if self.replica.state == "Prospective":
            self._grant(granting)
        self._grant(granting)
        assert self.replica.state == "Leader"
        return self

    def acknowledge(self, peer: int, offset: int | None = None, high_watermark: int | None = None) -> Effects:
        """A voter that agrees fetches from an offset, by default the end, and does not wait."""
        end_offset = self.replica.log_end_offset if offset is None else offset
        return self.receive(
            fetch(peer, self.replica.leader_epoch, end_offset, self.replica.leader_epoch, high_watermark, wait_ms=0)
        )

    def _grant(self, granting: Sequence[int]) -> None:
        epoch = self.replica.leader_epoch
        for peer in granting:
            self.respond(self.to(peer), VoteResponse(leader_id=-1, leader_epoch=epoch, vote_granted=True))

    def _take(self, effects: Effects) -> Effects:
        self.effects = effects
        self._note()
        return effects

    def _note(self) -> None:
        for outgoing in self.effects.requests:
            self.sent[outgoing.to] = outgoing


def batch(count: int = 1) -> bytes:
    """A record batch of so many records."""
    records = [LogRecord(key=None, value=b"record") for _ in range(count)]
    return encode_batch(records, base_offset=0, partition_leader_epoch=-1, timestamp_ms=0)


def log_batch(base_offset: int, epoch: int, count: int = 1) -> LogBatch:
    """A batch at its place."""
    encoded = encode_batch(
        [LogRecord(key=None, value=b"record") for _ in range(count)],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        timestamp_ms=0,
    )
    return LogBatch(base_offset=base_offset, last_offset=base_offset + count - 1, leader_epoch=epoch, encoded=encoded)


def appended(effects: Effects) -> list[tuple[int, int, int]]:
    """What was appended: base and last offset and epoch of each batch, after a look at the bytes."""
    found = []
    for persist in effects.persist:
        for one in persist.batches if isinstance(persist, Append) else ():
            header = read_batch_header(one.encoded)
            assert (header.base_offset, header.last_offset) == (one.base_offset, one.last_offset)
            assert header.partition_leader_epoch == one.leader_epoch
            found.append((one.base_offset, one.last_offset, one.leader_epoch))
    return found


def appended_bytes(effects: Effects) -> list[bytes]:
    """The batches themselves."""
    return [one.encoded for persist in effects.persist if isinstance(persist, Append) for one in persist.batches]


def vote(candidate: int, epoch: int, *, last_epoch: int = 0, end: int = 0, pre_vote: bool = False) -> VoteRequest:
    """Somebody asks for a vote, or with `pre_vote` whether it would get one."""
    return VoteRequest(
        replica_epoch=epoch,
        replica_id=candidate,
        last_offset_epoch=last_epoch,
        last_offset=end,
        pre_vote=pre_vote,
    )


def voted(granted: bool, epoch: int, leader: int = -1, error: ErrorCode = ErrorCode.NONE) -> VoteResponse:
    """The answer to it."""
    return VoteResponse(error_code=error, leader_id=leader, leader_epoch=epoch, vote_granted=granted)


def begin(leader: int, epoch: int) -> BeginQuorumEpochRequest:
    """A leader makes itself known."""
    return BeginQuorumEpochRequest(leader_id=leader, leader_epoch=epoch)


def begun(leader: int, epoch: int, error: ErrorCode = ErrorCode.NONE) -> BeginQuorumEpochResponse:
    """The answer to it."""
    return BeginQuorumEpochResponse(error_code=error, leader_id=leader, leader_epoch=epoch)


def end(leader: int, epoch: int, *successors: int) -> EndQuorumEpochRequest:
    """A leader resigns."""
    return EndQuorumEpochRequest(leader_id=leader, leader_epoch=epoch, preferred_successors=successors)


def fetch(
    replica: int,
    epoch: int,
    offset: int,
    last_epoch: int,
    high_watermark: int | None = -1,
    *,
    wait_ms: int = 500,
) -> FetchRequest:
    """A replica fetches."""
    return FetchRequest(
        replica_id=replica,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        max_wait_ms=wait_ms,
        high_watermark=high_watermark,
    )


def fetched(
    leader: int,
    epoch: int,
    *batches: LogBatch,
    high_watermark: int = -1,
    diverging: tuple[int, int] | None = None,
    snapshot: SnapshotId | None = None,
    error: ErrorCode = ErrorCode.NONE,
) -> FetchResponse:
    """The answer to it; `diverging` is an epoch and its end."""
    return FetchResponse(
        error_code=error,
        leader_id=leader,
        leader_epoch=epoch,
        high_watermark=high_watermark,
        diverging_epoch=EpochEnd(epoch=diverging[0], end_offset=diverging[1]) if diverging else None,
        snapshot_id=snapshot,
        batches=batches,
    )


def fetch_snapshot(
    replica: int, epoch: int, snapshot: SnapshotId, position: int = 0, *, max_bytes: int = 4096
) -> FetchSnapshotRequest:
    """A replica asks for a piece of a snapshot."""
    return FetchSnapshotRequest(
        replica_id=replica, current_leader_epoch=epoch, snapshot_id=snapshot, position=position, max_bytes=max_bytes
    )


def piece(
    leader: int,
    epoch: int,
    snapshot: SnapshotId,
    position: int,
    data: bytes,
    size: int,
    error: ErrorCode = ErrorCode.NONE,
) -> FetchSnapshotResponse:
    """The answer to it."""
    return FetchSnapshotResponse(
        error_code=error,
        leader_id=leader,
        leader_epoch=epoch,
        snapshot_id=snapshot,
        size=size,
        position=position,
        piece=data,
    )


def reply_to(effects: Effects, handle: int) -> Reply:
    """The one reply to a request."""
    (reply,) = (reply for reply in effects.replies if reply.handle == handle)
    return reply
