"""The story of a run: what happened last, in words, for whoever has to explain a failing seed."""

from collections import deque
from typing import Any, Final

from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.effects import (
    Append,
    DeleteBefore,
    InstallSnapshot,
    LeaderAndEpoch,
    Outgoing,
    SaveElection,
    SavePiece,
    Truncate,
)
from backend.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from codec.error_codes import ErrorCode

LINES_MAX: Final = 400


class Story:
    """The last that happened; put into words only when somebody asks."""

    def __init__(self, lines_max: int | None = LINES_MAX) -> None:
        self.lines: deque[tuple[float, int, str, Any]] = deque(maxlen=lines_max)

    def tell(self, now_ms: float, node_id: int, kind: str, what: Any) -> None:
        """Notes what a node did or what befell it; node 0 is the world."""
        self.lines.append((now_ms, node_id, kind, what))

    def __str__(self) -> str:
        return "\n".join(
            f"{now_ms / 1000:8.3f} s  {node_id or '-'}  {kind:8} {words(what)}"
            for now_ms, node_id, kind, what in self.lines
        )


def words(what: Any) -> str:
    """One line."""
    match what:
        case Outgoing(to=to, request=request):
            return f"{to}: {_message(request)}"
        case (int(), _):
            return f"{what[0]}: {_message(what[1])}"
        case SaveElection(election):
            voted = f", voted for {election.voted_id}" if election.voted_id >= 0 else ""
            return f"quorum state: epoch {election.leader_epoch}, {_leader(election.leader_id)}{voted}"
        case Append(batches):
            return f"append {_batches(batches)}"
        case Truncate(end_offset):
            return f"cut the log at {end_offset}"
        case SavePiece(snapshot_id, position, piece):
            return f"piece of {_snapshot(snapshot_id)}: {len(piece)} bytes at {position}"
        case InstallSnapshot(snapshot_id):
            return f"install {_snapshot(snapshot_id)}"
        case DeleteBefore(snapshot_id):
            return f"delete what {_snapshot(snapshot_id)} covers"
        case SnapshotId():
            return _snapshot(what)
        case LeaderAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch):
            return f"epoch {leader_epoch}, {_leader(leader_id)}"
        case _:
            return str(what)


def _message(message: Any) -> str:
    error = getattr(message, "error_code", ErrorCode.NONE)
    name = type(message).__name__.removesuffix("Request").removesuffix("Response")
    if error:
        return f"{name} {error.name}, epoch {message.leader_epoch}, {_leader(message.leader_id)}"
    match message:
        case VoteRequest(replica_epoch=epoch, last_offset=end, last_offset_epoch=last, pre_vote=pre):
            return f"{'Pre-vote' if pre else 'Vote'} in epoch {epoch}? my log ends at {end} of epoch {last}"
        case VoteResponse(leader_epoch=epoch, leader_id=leader_id, vote_granted=granted):
            return f"Vote {'granted' if granted else 'refused'}, epoch {epoch}, {_leader(leader_id)}"
        case BeginQuorumEpochRequest(leader_epoch=epoch):
            return f"BeginQuorumEpoch {epoch}: do I lead?"
        case BeginQuorumEpochResponse(leader_epoch=epoch):
            return f"BeginQuorumEpoch {epoch}: yes"
        case EndQuorumEpochRequest(leader_epoch=epoch, preferred_successors=successors):
            return f"EndQuorumEpoch {epoch}, successors {successors}"
        case EndQuorumEpochResponse(leader_epoch=epoch):
            return f"EndQuorumEpoch {epoch}: yes"
        case FetchRequest(current_leader_epoch=epoch, fetch_offset=at, last_fetched_epoch=last, high_watermark=known):
            return f"Fetch in epoch {epoch} from {at} (last epoch {last}, high watermark {known})"
        case FetchResponse(diverging_epoch=end) if end is not None:
            return f"Fetch: your log parts from mine, epoch {end.epoch} ends at {end.end_offset}"
        case FetchResponse(snapshot_id=snapshot_id) if snapshot_id is not None:
            return f"Fetch: first get {_snapshot(snapshot_id)}"
        case FetchResponse(batches=batches, high_watermark=high_watermark):
            return f"Fetch: {_batches(batches)}, high watermark {high_watermark}"
        case FetchSnapshotRequest(snapshot_id=snapshot_id, position=position):
            return f"FetchSnapshot {_snapshot(snapshot_id)} from byte {position}"
        case FetchSnapshotResponse(snapshot_id=snapshot_id, position=position, piece=piece, size=size):
            return f"FetchSnapshot {_snapshot(snapshot_id)}: {len(piece)} bytes at {position} of {size}"
        case _:
            return str(message)


def _leader(leader_id: int) -> str:
    return f"leader {leader_id}" if leader_id >= 0 else "no leader"


def _snapshot(snapshot_id: SnapshotId) -> str:
    return f"snapshot {snapshot_id.end_offset}-{snapshot_id.epoch}"


def _batches(batches: tuple[LogBatch, ...]) -> str:
    if not batches:
        return "nothing new"
    return f"{batches[0].base_offset}..{batches[-1].last_offset} of epoch {batches[-1].leader_epoch}"
