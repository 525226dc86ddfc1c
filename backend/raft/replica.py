"""One replica of the metadata quorum, as a state machine: inputs in, `Effects` out, nothing else.

    replica = Replica(settings, recovered, jitter=random, now_ms=now)
    effects = replica.start(now)                    carry them out as `backend.raft.effects` says, then
    effects = replica.receive(handle, request, now)         somebody asks
    effects = replica.respond(correlation_id, response, now) somebody answered
    effects = replica.failed(correlation_id, now)           nobody will answer
    effects = replica.tick(now)                             `deadline_ms` has come
    offset, effects = replica.propose(batches, now)         a leader appends
    effects = replica.read_index(handle, now)               a read wants to know what is committed

Every input goes the same way: the handler of the state changes the node, then `_settle` lets the state that came of it
do what it owes (send, fetch, resign, stand), then the effects are taken out. The rules are in the modules of the
states: `voting` and `elections`, `leading` with `replication` and `reads`, `following` with `log_index` and
`snapshots`; what leads from one to another is in `transitions`. Here is no rule but these:

    respond   an answer counts only in the state that asked
    clock     time does not go back for a replica, whatever the machine's clock does

Times are milliseconds of any clock that does not jump; `describe` and the time stamps of control records show them, so
the driver counts from 1970. Sources: KIP-595, KIP-630, KIP-996; the shape follows etcd's raft.
"""

from collections.abc import Callable, Sequence
from typing import assert_never, final

from backend.raft import elections, following, leading, transitions
from backend.raft.batches import SnapshotId
from backend.raft.calls import NEVER_MS
from backend.raft.effects import Effects
from backend.raft.interfaces import NotLeader, QuorumState, ReplicaState
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
from backend.raft.node import CommittedLost, InFlight, Node
from backend.raft.settings import QuorumSettings, Recovered
from backend.raft.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from codec.error_codes import ErrorCode

__all__ = ["CommittedLost", "NotLeader", "QuorumSettings", "Recovered", "Replica"]


@final
class Replica:
    """A voter or an observer.

    Args:
        settings: who votes, and all time limits.
        recovered: what the disk holds.
        jitter: a number in [0, 1) for each call, so that the time-outs of two nodes differ.
        now_ms: the time.

    Raises:
        ValueError: `recovered` contradicts itself.
    """

    def __init__(
        self, settings: QuorumSettings, recovered: Recovered, *, jitter: Callable[[], float], now_ms: int
    ) -> None:
        self._node = Node(settings, recovered, jitter, now_ms)
        self._now_ms = now_ms

    @property
    def state(self) -> str:
        """The name of the state, as Kafka writes it."""
        return type(self._node.state).__name__

    @property
    def leader_epoch(self) -> int:
        """The latest epoch seen."""
        return self._node.epoch

    @property
    def leader_id(self) -> int:
        """Its leader, -1 while none is known."""
        return self._node.known_leader_id

    @property
    def high_watermark(self) -> int:
        """The end of what this replica knows to be committed, exclusive; -1 for nothing. It never goes back."""
        return self._node.high_watermark

    @property
    def log_end_offset(self) -> int:
        """The end of the log, exclusive."""
        return self._node.log.end_offset

    @property
    def log_start_offset(self) -> int:
        """The first offset of the log."""
        return self._node.log.start_offset

    @property
    def deadline_ms(self) -> int:
        """When `tick` is to be called next, unless another input comes before; far in the future for never."""
        node = self._node
        in_flight_ms = next(iter(node.in_flight.values())).deadline_ms if node.in_flight else NEVER_MS
        match node.state:
            case Follower() as state:
                deadline_ms = min(state.fetch_deadline_ms, state.ask_at_ms)
            case Leader() as state:
                deadline_ms = leading.deadline_ms(node, state)
            case Unattached() as state:
                deadline_ms = state.election_deadline_ms if node.settings.is_voter else state.ask_at_ms
            case Candidate(is_backing_off=True) as state:
                deadline_ms = state.election_deadline_ms
            case Prospective() | Candidate() | Resigned() as state:
                deadline_ms = min(state.election_deadline_ms, state.calls.deadline_ms)
            case _ as unreachable:
                assert_never(unreachable)
        return min(deadline_ms, in_flight_ms)

    def start(self, now_ms: int) -> Effects:
        """Begin: the first input, once."""
        now_ms = self._clock(now_ms)
        transitions.recover(self._node, now_ms)
        return self._settle(now_ms)

    def tick(self, now_ms: int) -> Effects:
        """Time has passed."""
        now_ms = self._clock(now_ms)
        for correlation_id in self._node.overdue(now_ms):
            self._failed(correlation_id, now_ms)
        return self._settle(now_ms)

    def receive(self, handle: int, request: Request, now_ms: int) -> Effects:
        """Somebody asks; exactly one `Reply` with the handle follows, from this input or a later one."""
        now_ms = self._clock(now_ms)
        node = self._node
        match request:
            case FetchRequest():
                self._answer_fetch(handle, request, now_ms)
            case BeginQuorumEpochRequest():
                following.answer_begin(node, handle, request, now_ms)
            case VoteRequest():
                elections.answer_vote(node, handle, request, now_ms)
            case FetchSnapshotRequest():
                self._answer_fetch_snapshot(handle, request, now_ms)
            case EndQuorumEpochRequest():
                elections.on_end_quorum_epoch(node, handle, request, now_ms)
            case _ as unreachable:
                assert_never(unreachable)
        return self._settle(now_ms)

    def respond(self, correlation_id: int, response: Response, now_ms: int) -> Effects:
        """The response to a request of this replica; one that it no longer waits for changes nothing.

        Raises:
            CommittedLost: The leader has another log where this one is committed.
        """
        now_ms = self._clock(now_ms)
        node = self._node
        sent = node.in_flight.pop(correlation_id, None)
        if sent is not None:
            asked_by = node.state
            transitions.learn(node, response.leader_epoch, response.leader_id, now_ms)
            if node.state is asked_by:
                self._on_response(sent, response, now_ms)
        return self._settle(now_ms)

    def failed(self, correlation_id: int, now_ms: int) -> Effects:
        """A request of this replica gets no response: the connection broke, or could not be made."""
        now_ms = self._clock(now_ms)
        self._failed(correlation_id, now_ms)
        return self._settle(now_ms)

    def propose(self, encoded: Sequence[tuple[bytes, int]], now_ms: int) -> tuple[int, Effects]:
        """Append record batches to the log of a leader.

        Args:
            encoded: batches with base offset 0, each with its number of records; at least one, none empty.
            now_ms: the time.

        Returns:
            The offset of the last record. It is committed once the high watermark is above it while the epoch is the
            same; in another epoch it may be or not.

        Raises:
            NotLeader: Nothing was appended.
            ValueError: There is nothing to append.
        """
        now_ms = self._clock(now_ms)
        leader = self._node.state
        if not isinstance(leader, Leader):
            raise NotLeader(f"node {self._node.settings.node_id} does not lead epoch {self._node.epoch}")
        if not encoded or any(count < 1 for _, count in encoded):
            raise ValueError("a batch has at least one record")
        last_offset = leading.propose(self._node, leader, encoded)
        return last_offset, self._settle(now_ms)

    def read_index(self, handle: int, now_ms: int) -> Effects:
        """Find out what is committed; `ReadConfirmed` or `ReadRefused` follows, from this input or a later one."""
        now_ms = self._clock(now_ms)
        leader = self._node.state
        if isinstance(leader, Leader):
            leading.read_index(self._node, leader, handle)
        else:
            self._node.refuse_read(handle)
        return self._settle(now_ms)

    def snapshot_written(self, snapshot_id: SnapshotId, now_ms: int) -> Effects:
        """A snapshot of this node's own state machine is on disk: serve it, and let the log go behind the one before.

        Raises:
            ValueError: It holds what is not committed, or names another epoch than the log.
        """
        now_ms = self._clock(now_ms)
        node = self._node
        if snapshot_id.end_offset > node.high_watermark:
            raise ValueError(
                f"a snapshot to {snapshot_id.end_offset}, but only all below {node.high_watermark} is committed"
            )
        latest = node.snapshots.latest
        if latest is None or snapshot_id.end_offset > latest.end_offset:
            epoch = node.log.epoch_of(snapshot_id.end_offset - 1)
            if epoch != snapshot_id.epoch:
                raise ValueError(
                    f"a snapshot to {snapshot_id.end_offset} of epoch {snapshot_id.epoch}; the log says {epoch}"
                )
            node.trim(snapshot_id)
        return self._settle(now_ms)

    def resign(self, now_ms: int) -> Effects:
        """Lead no more, in an orderly way; nothing happens on a node that does not lead."""
        now_ms = self._clock(now_ms)
        if isinstance(self._node.state, Leader):
            leading.resign(self._node, self._node.state, now_ms)
        return self._settle(now_ms)

    def describe(self, now_ms: int) -> QuorumState:
        """The quorum as this node knows it; only a leader knows more than itself."""
        now_ms = self._clock(now_ms)
        node = self._node
        own = ReplicaState(
            replica_id=node.settings.node_id,
            log_end_offset=node.log.end_offset,
            last_fetch_timestamp_ms=now_ms,
            last_caught_up_timestamp_ms=now_ms,
        )
        state = node.state
        if isinstance(state, Leader):
            return leading.describe(node, state, own, now_ms)
        return QuorumState(
            leader_id=node.known_leader_id,
            leader_epoch=node.epoch,
            high_watermark=node.high_watermark,
            voters=(own,) if node.settings.is_voter else (),
            observers=() if node.settings.is_voter else (own,),
        )

    def _answer_fetch(self, handle: int, request: FetchRequest, now_ms: int) -> None:
        node = self._node
        error_code = leading.refusal(node, request.current_leader_epoch)
        if isinstance(node.state, Leader) and error_code == ErrorCode.NONE:
            leading.on_fetch(node, node.state, handle, request, now_ms)
        else:
            node.reply(
                handle,
                FetchResponse(error_code=error_code, leader_id=node.known_leader_id, leader_epoch=node.epoch),
            )

    def _answer_fetch_snapshot(self, handle: int, request: FetchSnapshotRequest, now_ms: int) -> None:
        node = self._node
        error_code = leading.refusal(node, request.current_leader_epoch)
        if isinstance(node.state, Leader) and error_code == ErrorCode.NONE:
            leading.on_fetch_snapshot(node, node.state, handle, request, now_ms)
        else:
            node.reply(
                handle,
                FetchSnapshotResponse(
                    error_code=error_code,
                    leader_id=node.known_leader_id,
                    leader_epoch=node.epoch,
                    snapshot_id=request.snapshot_id,
                ),
            )

    def _on_response(self, sent: InFlight, response: Response, now_ms: int) -> None:
        node = self._node
        match node.state, response:
            case Follower() as state, FetchResponse():
                following.on_fetch_response(node, state, response, now_ms)
            case Follower() as state, FetchSnapshotResponse():
                following.on_fetch_snapshot_response(node, state, response, now_ms)
            case Leader() as state, BeginQuorumEpochResponse():
                leading.on_begin_response(node, state, sent, response)
            case (Prospective() | Candidate()) as state, VoteResponse():
                elections.on_vote_response(state, sent, response)
            case Resigned() as state, _:
                state.calls.done(sent.to)
            case Unattached() as state, _:
                following.on_failed(node, state, now_ms)
            case _:
                # A response of another kind than was asked for: as good as none.
                self._on_failed(sent, now_ms)

    def _failed(self, correlation_id: int, now_ms: int) -> None:
        sent = self._node.in_flight.pop(correlation_id, None)
        if sent is not None:
            self._on_failed(sent, now_ms)

    def _on_failed(self, sent: InFlight, now_ms: int) -> None:
        node = self._node
        match node.state:
            case Follower() | Unattached() as state:
                following.on_failed(node, state, now_ms)
            case Leader() as state:
                leading.on_failed(node, state, sent, now_ms)
            case Prospective() | Candidate() | Resigned() as state:
                state.calls.put_off(sent.to, now_ms + node.settings.retry_backoff_ms)
            case _ as unreachable:
                assert_never(unreachable)

    def _settle(self, now_ms: int) -> Effects:
        """Let the state do what it owes, and the state that comes of it, until none comes any more."""
        node = self._node
        while True:
            before = node.state
            match before:
                case Follower():
                    following.act(node, before, now_ms)
                case Leader():
                    leading.act(node, before, now_ms)
                case Unattached() if not node.settings.is_voter:
                    following.seek(node, before, now_ms)
                case Unattached() | Prospective() | Candidate():
                    elections.act(node, before, now_ms)
                case Resigned():
                    elections.act_resigned(node, before, now_ms)
                case _ as unreachable:
                    assert_never(unreachable)
            if node.state is before:
                return node.take_effects()

    def _clock(self, now_ms: int) -> int:
        self._now_ms = max(self._now_ms, now_ms)
        return self._now_ms
