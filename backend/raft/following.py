"""A follower: fetches from its leader, one Fetch at a time, and makes its log the leader's; an observer also finds it.

    on_fetch_response       only in the epoch that is followed: batches, or where to cut, or a snapshot
    cut_back                a log that parted from the leader's is cut to where they agree
    take_batches            what comes must follow on the end of the log without a gap, and be of no later epoch
    follow_high_watermark   committed is what the leader says, as far as it is in the own log
    answer_begin            who is in the leader's epoch says so; who has seen a later one says that

A leader that does not answer for the fetch timeout is given up: a voter asks for pre-votes, an observer asks around. An
observer asks around as soon as the connection to its leader breaks, for nobody tells observers of a new leader.
Sources: KIP-595, KIP-630, FollowerState of Kafka.
"""

from backend.raft import snapshots, transitions
from backend.raft.batches import EpochEnd, SnapshotId
from backend.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from backend.raft.node import Node
from backend.raft.snapshots import Download
from backend.raft.states import Follower, Unattached
from codec.error_codes import ErrorCode


def act(node: Node, follower: Follower, now_ms: int) -> None:
    """Give the leader up if it is time; ask it for more if nothing is under way."""
    if follower.fetch_deadline_ms <= now_ms:
        on_silence(node, now_ms)
    elif follower.ask_at_ms <= now_ms:
        node.forget_requests()
        if follower.asks_around:
            follower.asks_around = False
            node.send(_next_voter(node), _fetch(node, max_wait_ms=0), now_ms)
        else:
            node.send(follower.leader_id, _next_request(node, follower), now_ms)
        follower.ask_at_ms = now_ms + node.settings.request_timeout_ms


def on_silence(node: Node, now_ms: int) -> None:
    """The leader has not answered for the fetch timeout."""
    if node.settings.is_voter:
        transitions.become_prospective(node, now_ms)
    else:
        transitions.become_unattached(node, node.epoch, now_ms)


def seek(node: Node, unattached: Unattached, now_ms: int) -> None:
    """An observer without a leader asks one voter after another, by a Fetch: whoever is asked names the leader."""
    if unattached.ask_at_ms > now_ms:
        return
    node.send(_next_voter(node), _fetch(node, max_wait_ms=0), now_ms)
    unattached.ask_at_ms = now_ms + node.settings.request_timeout_ms


def on_fetch_response(node: Node, follower: Follower, response: FetchResponse, now_ms: int) -> None:
    """Take what the leader sends, and ask for more at once; after an error or nonsense, after a pause."""
    follower.ask_at_ms = now_ms + node.settings.retry_backoff_ms
    if response.leader_epoch != node.epoch or response.error_code != ErrorCode.NONE:
        return
    if response.diverging_epoch is not None:
        is_sound = cut_back(node, response.diverging_epoch)
    elif response.snapshot_id is not None:
        is_sound = begin_download(node, follower, response.snapshot_id)
    else:
        is_sound = take_batches(node, response)
        if is_sound:
            follow_high_watermark(node, response.high_watermark)
    _heard(node, follower, is_sound, now_ms)


def cut_back(node: Node, leader_end: EpochEnd) -> bool:
    """Cut the log back to where it may agree with the leader's; returns whether there was something to cut.

    Raises:
        CommittedLost: What is committed would be lost.
    """
    end_offset = node.log.truncation_offset(leader_end)
    if end_offset >= node.log.end_offset:
        return False
    node.truncate(end_offset)
    return True


def take_batches(node: Node, response: FetchResponse) -> bool:
    """Append what came; returns whether it may be appended."""
    end_offset, epoch = node.log.end_offset, node.log.last_epoch
    for batch in response.batches:
        if batch.base_offset != end_offset or not epoch <= batch.leader_epoch <= node.epoch:
            return False
        if batch.last_offset < batch.base_offset:
            return False
        end_offset, epoch = batch.last_offset + 1, batch.leader_epoch
    if response.batches:
        node.append(response.batches)
    return True


def follow_high_watermark(node: Node, leader_high_watermark: int) -> None:
    """Take over the leader's high watermark, as far as the own log goes."""
    node.raise_high_watermark(min(leader_high_watermark, node.log.end_offset))


def begin_download(node: Node, follower: Follower, snapshot_id: SnapshotId) -> bool:
    """Begin to fetch a snapshot; returns whether it is of use."""
    if snapshot_id.epoch > node.epoch or not snapshots.may_install(snapshot_id, node.high_watermark):
        return False
    follower.download = Download(snapshot_id)
    return True


def on_fetch_snapshot_response(node: Node, follower: Follower, response: FetchSnapshotResponse, now_ms: int) -> None:
    """Save a piece; the last one completes the snapshot. An error ends the download, and the next Fetch tells more."""
    follower.ask_at_ms = now_ms + node.settings.retry_backoff_ms
    download = follower.download
    if download is None or response.leader_epoch != node.epoch:
        return
    if response.error_code != ErrorCode.NONE:
        follower.download = None
        return
    position = download.position
    is_sound = download.accept(response)
    if is_sound:
        node.save_piece(download.snapshot_id, position, response.piece)
        if download.position == response.size:
            node.install(download.snapshot_id)
            follower.download = None
    _heard(node, follower, is_sound, now_ms)


def on_failed(node: Node, state: Follower | Unattached, now_ms: int) -> None:
    """The request under way has no response: ask again after a pause, an observer whoever comes next."""
    state.ask_at_ms = now_ms + node.settings.retry_backoff_ms
    if isinstance(state, Follower) and not node.settings.is_voter:
        state.asks_around = True


def answer_begin(node: Node, handle: int, request: BeginQuorumEpochRequest, now_ms: int) -> None:
    """Follow a leader that makes itself known, and say whether this node is in its epoch."""
    error_code = ErrorCode.NONE
    if request.leader_id not in node.settings.voters:
        error_code = ErrorCode.INCONSISTENT_VOTER_SET
    elif request.leader_epoch < node.epoch:
        error_code = ErrorCode.FENCED_LEADER_EPOCH
    else:
        transitions.learn(node, request.leader_epoch, request.leader_id, now_ms)
        if node.election.leader_id != request.leader_id or request.leader_id == node.settings.node_id:
            error_code = ErrorCode.INVALID_REQUEST
        elif not isinstance(node.state, Follower):
            # It asks for pre-votes, and its leader is there after all.
            transitions.lose_pre_vote(node, now_ms)
    node.reply(
        handle,
        BeginQuorumEpochResponse(error_code=error_code, leader_id=node.known_leader_id, leader_epoch=node.epoch),
    )


def _heard(node: Node, follower: Follower, is_sound: bool, now_ms: int) -> None:
    if not is_sound:
        return
    follower.hears_leader = True
    follower.fetch_deadline_ms = now_ms + node.settings.fetch_timeout_ms
    follower.ask_at_ms = now_ms


def _next_voter(node: Node) -> int:
    """Whom an observer asks next: each voter in turn."""
    voters = node.settings.voters
    node.turn += 1
    return voters[(node.turn - 1) % len(voters)]


def _next_request(node: Node, follower: Follower) -> FetchRequest | FetchSnapshotRequest:
    download = follower.download
    if download is None:
        return _fetch(node, node.settings.fetch_max_wait_ms)
    return FetchSnapshotRequest(
        replica_id=node.settings.node_id,
        current_leader_epoch=node.epoch,
        snapshot_id=download.snapshot_id,
        position=download.position,
        max_bytes=node.settings.snapshot_max_bytes,
    )


def _fetch(node: Node, max_wait_ms: int) -> FetchRequest:
    return FetchRequest(
        replica_id=node.settings.node_id,
        current_leader_epoch=node.epoch,
        fetch_offset=node.log.end_offset,
        last_fetched_epoch=node.log.last_epoch,
        max_wait_ms=max_wait_ms,
        high_watermark=node.high_watermark,
    )
