"""A leader: appends, answers Fetch, moves the high watermark, and proves to reads that it leads.

    refusal              only the leader of the sender's epoch answers a Fetch
    propose              a record gets its place here and nowhere else; a new leader's first is its LeaderChange
    on_fetch             a Fetch acknowledges all below its offset, if it is of this epoch and its log is a prefix
    move_high_watermark  over what a majority of voters has, observers not among them
    check_quorum         a leader that no majority has asked for too long resigns
    on_begin_response    an answer of this epoch counts for the read round whose question it answers
    complete_held        a Fetch is held until there is news

What the leader appends counts as its own acknowledgement at once: the driver has it on disk before anything else of the
same effects is seen. Knows the log by its index only; the driver reads batches into the replies. Sources: KIP-595,
KIP-630, KafkaRaftClient and LeaderState of Kafka.
"""

from collections.abc import Sequence
from typing import Final

from backend.raft import replication, transitions
from backend.raft.batches import EpochEnd, LogBatch, SnapshotId
from backend.raft.calls import NEVER_MS
from backend.raft.effects import LogRead, SnapshotRead
from backend.raft.interfaces import UNKNOWN, QuorumState, ReplicaState
from backend.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from backend.raft.node import InFlight, Node
from backend.raft.reads import NO_ROUND
from backend.raft.replication import NEVER, OBSERVER_SESSION_MS, OBSERVERS_MAX, HeldFetch, Progress
from backend.raft.states import Leader
from codec.batches import encode_control_batch, placed
from codec.control_records import ControlRecord, ControlType
from codec.error_codes import ErrorCode

_LEADER_CHANGE_VERSION: Final = 0


def begin(node: Node, leader: Leader, granted: Sequence[int], now_ms: int) -> None:
    """Append the first record of the epoch: who leads, and who has voted for it."""
    settings = node.settings
    record = ControlRecord(
        type=ControlType.LEADER_CHANGE,
        version=_LEADER_CHANGE_VERSION,
        value={
            "leader_id": settings.node_id,
            "voters": [{"voter_id": voter} for voter in settings.voters],
            "granting_voters": [{"voter_id": voter} for voter in granted],
        },
    )
    encoded = encode_control_batch([record], base_offset=0, partition_leader_epoch=node.epoch, timestamp_ms=now_ms)
    propose(node, leader, [(encoded, 1)])


def propose(node: Node, leader: Leader, encoded: Sequence[tuple[bytes, int]]) -> int:
    """Append batches; returns the offset of the last record.

    Args:
        node: the replica.
        leader: its state.
        encoded: record batches with any base offset and epoch, each with its number of records; at least one.
    """
    batches: list[LogBatch] = []
    offset = node.log.end_offset
    for batch, count in encoded:
        last_offset = offset + count - 1
        batches.append(
            LogBatch(
                base_offset=offset,
                last_offset=last_offset,
                leader_epoch=node.epoch,
                encoded=placed(batch, offset, node.epoch),
            )
        )
        offset = last_offset + 1
    node.append(tuple(batches))
    move_high_watermark(node, leader)
    complete_held(node, leader)
    return offset - 1


def on_fetch(node: Node, leader: Leader, handle: int, request: FetchRequest, now_ms: int) -> None:
    """Answer a Fetch of this epoch, now or when there is news."""
    log = node.log
    progress = _progress(node, leader, request.replica_id, now_ms)
    _note_contact(node, leader, progress, now_ms)
    latest = node.snapshots.latest
    if latest is not None and not log.reaches(request.fetch_offset, request.last_fetched_epoch):
        node.reply(handle, _response(node, leader, snapshot_id=latest))
        return
    diverging = log.divergence(request.fetch_offset, request.last_fetched_epoch)
    if diverging is not None:
        node.reply(handle, _response(node, leader, diverging_epoch=diverging))
        return
    if progress is not None:
        progress.acknowledge(request.fetch_offset, log.end_offset, now_ms)
        move_high_watermark(node, leader)
    held = HeldFetch(
        handle=handle,
        fetch_offset=request.fetch_offset,
        known_high_watermark=request.high_watermark,
        deadline_ms=now_ms + min(request.max_wait_ms, node.settings.fetch_max_wait_ms),
    )
    if progress is None or _has_news(node, leader, held):
        _complete(node, leader, held)
        return
    earlier = leader.held.get(request.replica_id)
    if earlier is not None:
        _complete(node, leader, earlier)
    leader.held[request.replica_id] = held


def on_fetch_snapshot(node: Node, leader: Leader, handle: int, request: FetchSnapshotRequest, now_ms: int) -> None:
    """Answer a FetchSnapshot of this epoch; the driver reads the piece."""
    _note_contact(node, leader, _progress(node, leader, request.replica_id, now_ms), now_ms)
    error_code, read = ErrorCode.NONE, None
    if not node.snapshots.serves(request.snapshot_id):
        error_code = ErrorCode.SNAPSHOT_NOT_FOUND
    elif request.position < 0:
        error_code = ErrorCode.POSITION_OUT_OF_RANGE
    else:
        read = SnapshotRead(
            snapshot_id=request.snapshot_id,
            position=request.position,
            max_bytes=min(request.max_bytes, node.settings.snapshot_max_bytes),
        )
    response = FetchSnapshotResponse(
        error_code=error_code,
        leader_id=node.settings.node_id,
        leader_epoch=node.epoch,
        snapshot_id=request.snapshot_id,
        position=request.position,
    )
    node.reply(handle, response, read)


def move_high_watermark(node: Node, leader: Leader) -> None:
    """Move the high watermark as far as it may, and answer whoever waits for it."""
    end_offset = replication.committed_end(
        [node.log.end_offset, *(progress.log_end_offset for progress in leader.voters.values())],
        node.settings.majority,
        leader.epoch_start_offset,
    )
    if end_offset > leader.high_watermark:
        leader.high_watermark = end_offset
        node.raise_high_watermark(end_offset)
        complete_held(node, leader)


def complete_held(node: Node, leader: Leader) -> None:
    """Answer the Fetches for which there is news."""
    ready = [replica_id for replica_id, held in leader.held.items() if _has_news(node, leader, held)]
    for replica_id in ready:
        _complete(node, leader, leader.held.pop(replica_id))


def read_index(node: Node, leader: Leader, handle: int) -> None:
    """Let a read wait for the next round."""
    if leader.reads.is_full:
        node.refuse_read(handle)
    else:
        leader.reads.waiting.append(handle)


def on_begin_response(node: Node, leader: Leader, sent: InFlight, response: BeginQuorumEpochResponse) -> None:
    """Count an answer for the read round that asked."""
    if response.error_code != ErrorCode.NONE or response.leader_epoch != node.epoch:
        return
    if sent.round_number != NO_ROUND:
        leader.reads.acknowledge(sent.to, sent.round_number)


def on_failed(node: Node, leader: Leader, sent: InFlight, now_ms: int) -> None:
    """A question has no answer: the read round that asked it asks again after a pause."""
    if sent.round_number == leader.reads.number:
        leader.reads.calls.put_off(sent.to, now_ms + node.settings.retry_backoff_ms)


def refusal(node: Node, current_leader_epoch: int) -> ErrorCode:
    """Why this node does not answer what only the leader of that epoch does; NONE if it is the one."""
    if current_leader_epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > node.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(node.state, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def act(node: Node, leader: Leader, now_ms: int) -> None:
    """Resign if it is time; otherwise let Fetches go that have waited enough, prove reads, and make itself known."""
    if check_quorum(node, leader) <= now_ms:
        resign(node, leader, now_ms)
        return
    late = [replica_id for replica_id, held in leader.held.items() if held.deadline_ms <= now_ms]
    for replica_id in late:
        _complete(node, leader, leader.held.pop(replica_id))
    _prove_reads(node, leader, now_ms)
    for voter in leader.calls.due(now_ms):
        _tell(node, leader, voter, NO_ROUND, now_ms)


def deadline_ms(node: Node, leader: Leader) -> int:
    """When `act` has something to do."""
    held_ms = min((held.deadline_ms for held in leader.held.values()), default=NEVER_MS)
    return min(check_quorum(node, leader), held_ms, leader.calls.deadline_ms, leader.reads.calls.deadline_ms)


def check_quorum(node: Node, leader: Leader) -> int:
    """When this leader resigns unless a majority asks it before."""
    return replication.check_quorum_deadline_ms(
        [
            leader.elected_ms if progress.last_contact_ms == NEVER else progress.last_contact_ms
            for progress in leader.voters.values()
        ],
        node.settings.majority,
        node.settings.fetch_timeout_ms,
    )


def resign(node: Node, leader: Leader, now_ms: int) -> None:
    """Lead no more, and name the others by how much of the log they have."""
    by_end = sorted(leader.voters.values(), key=lambda progress: -progress.log_end_offset)
    transitions.become_resigned(node, tuple(progress.replica_id for progress in by_end), now_ms)


def describe(node: Node, leader: Leader, own: ReplicaState, now_ms: int) -> QuorumState:
    """The quorum as its leader knows it."""
    forget_observers(leader, now_ms)
    others = {progress.replica_id: progress.state() for progress in leader.voters.values()}
    return QuorumState(
        leader_id=node.settings.node_id,
        leader_epoch=node.epoch,
        high_watermark=leader.high_watermark,
        voters=tuple(others.get(voter, own) for voter in node.settings.voters),
        observers=tuple(leader.observers[observer_id].state() for observer_id in sorted(leader.observers)),
    )


def _prove_reads(node: Node, leader: Leader, now_ms: int) -> None:
    reads = leader.reads
    while True:
        if reads.may_begin(leader.high_watermark != UNKNOWN):
            reads.begin(node.settings.node_id, node.settings.other_voters)
        proven = reads.proven(node.settings.majority)
        for handle in proven:
            node.confirm_read(handle, leader.high_watermark)
        if not proven:
            break
    for voter in reads.calls.due(now_ms):
        if node.may_ask(voter):
            _tell(node, leader, voter, reads.number, now_ms)
            reads.calls.put_off(voter, now_ms + node.settings.request_timeout_ms)
        else:
            reads.calls.put_off(voter, now_ms + node.settings.retry_backoff_ms)


def _tell(node: Node, leader: Leader, voter: int, round_number: int, now_ms: int) -> None:
    request = BeginQuorumEpochRequest(leader_id=node.settings.node_id, leader_epoch=node.epoch)
    node.send(voter, request, now_ms, round_number)
    leader.calls.put_off(voter, now_ms + node.settings.fetch_timeout_ms // 2)


def _progress(node: Node, leader: Leader, replica_id: int, now_ms: int) -> Progress | None:
    """What is known of a replica; None for consumers, and for observers beyond the limit."""
    if replica_id in leader.voters:
        return leader.voters[replica_id]
    if replica_id < 0 or replica_id == node.settings.node_id:
        return None
    known = leader.observers.get(replica_id)
    if known is not None:
        return known
    if len(leader.observers) >= OBSERVERS_MAX:
        forget_observers(leader, now_ms)
        if len(leader.observers) >= OBSERVERS_MAX:
            return None
    return leader.observers.setdefault(replica_id, Progress(replica_id))


def forget_observers(leader: Leader, now_ms: int) -> None:
    """Forget the observers that have long fetched nothing."""
    gone = [
        observer_id
        for observer_id, progress in leader.observers.items()
        if now_ms - progress.last_contact_ms > OBSERVER_SESSION_MS
    ]
    for observer_id in gone:
        del leader.observers[observer_id]


def _note_contact(node: Node, leader: Leader, progress: Progress | None, now_ms: int) -> None:
    if progress is None:
        return
    progress.last_contact_ms = now_ms
    # Who asks knows the leader already.
    leader.calls.put_off(progress.replica_id, now_ms + node.settings.fetch_timeout_ms // 2)


def _has_news(node: Node, leader: Leader, held: HeldFetch) -> bool:
    return replication.is_news(held.fetch_offset, held.known_high_watermark, node.log.end_offset, leader.high_watermark)


def _complete(node: Node, leader: Leader, held: HeldFetch) -> None:
    read = None
    if held.fetch_offset < node.log.end_offset:
        read = LogRead(
            from_offset=held.fetch_offset, end_offset=node.log.end_offset, max_bytes=node.settings.fetch_max_bytes
        )
    node.reply(held.handle, _response(node, leader), read)


def _response(
    node: Node,
    leader: Leader,
    *,
    diverging_epoch: EpochEnd | None = None,
    snapshot_id: SnapshotId | None = None,
) -> FetchResponse:
    return FetchResponse(
        leader_id=node.settings.node_id,
        leader_epoch=node.epoch,
        high_watermark=leader.high_watermark,
        log_start_offset=node.log.start_offset,
        diverging_epoch=diverging_epoch,
        snapshot_id=snapshot_id,
    )
