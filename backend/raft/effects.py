"""What a replica wants done, and in which order: first what must be on disk, then what is said, then what is applied.

`Replica` returns one `Effects` for each input and touches nothing itself. The driver's duties:

1. Carry out `persist` in order, and make all of it durable (one fsync for all is enough), before anything else of the
   same `Effects`. A vote that is told before it is on disk can be given twice; a record that is fetched for before it
   is on disk can be lost by a majority that has acknowledged it.
2. Then send `requests` and `replies`. A reply with a `read` takes its bytes from the log or snapshot as it stands now;
   when they are not there any more, the answer is SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE for a position beyond the
   end of a snapshot, and for a log none. Requests may be lost; each gets one response or `failed`, at most once.
   Replies may be lost.
3. Then let the state machine apply up to `high_watermark`, load `load_snapshot`, and tell `reads` to whoever asked.
4. Never give the replica the next input before 1 is done. Inputs that came meanwhile may be given one after another
   and their effects joined with `then`: that is how many writes share one fsync.
5. Call `tick` at `deadline_ms` or soon after; a late call delays elections and does no harm.
6. If anything of 1 fails, stop the process: what the disk holds is unknown.

Sources: KIP-595, KIP-630; the shape follows etcd's raft (Ready).
"""

from dataclasses import dataclass
from typing import TypeAlias, final

from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.messages import Request, Response


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionState:
    """What a voter must not forget: the epoch, and in it the vote or the leader (Kafka's quorum-state file).

    Attributes:
        leader_epoch: the latest epoch seen.
        leader_id: its leader, -1 while that is unknown.
        voted_id: who has this voter's vote in it, -1 for nobody.
    """

    leader_epoch: int
    leader_id: int = -1
    voted_id: int = -1


@final
@dataclass(frozen=True, slots=True)
class SaveElection:
    """Replace the quorum state."""

    election: ElectionState


@final
@dataclass(frozen=True, slots=True)
class Append:
    """Append batches at the end of the log."""

    batches: tuple[LogBatch, ...]


@final
@dataclass(frozen=True, slots=True)
class Truncate:
    """Forget everything from `end_offset` on."""

    end_offset: int


@final
@dataclass(frozen=True, slots=True)
class SavePiece:
    """Write a piece of a snapshot that is being fetched; position 0 begins it anew."""

    snapshot_id: SnapshotId
    position: int
    piece: bytes


@final
@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """The fetched snapshot is complete: make it the latest, and begin an empty log at its end offset."""

    snapshot_id: SnapshotId


@final
@dataclass(frozen=True, slots=True)
class DeleteBefore:
    """The log may forget what lies wholly below the snapshot, and older snapshots; not urgent."""

    snapshot_id: SnapshotId


Persist: TypeAlias = SaveElection | Append | Truncate | SavePiece | InstallSnapshot | DeleteBefore


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead:
    """Fill a FetchResponse: whole batches from `from_offset`, below `end_offset`, at least one, up to `max_bytes`."""

    from_offset: int
    end_offset: int
    max_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRead:
    """Fill a FetchSnapshotResponse: size, and the piece at a position."""

    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A request to another node; its response comes back with the same `correlation_id`."""

    correlation_id: int
    to: int
    request: Request


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The response to a request that came in with `handle`, and what is to be read into it."""

    handle: int
    response: Response
    read: LogRead | SnapshotRead | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfirmed:
    """A majority acknowledged the leader after `read_index` was called; everything committed by then is below."""

    handle: int
    high_watermark: int
    leader_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRefused:
    """This node does not lead, or ceased to before a majority answered; `leader_id` is a hint, -1 for none."""

    handle: int
    leader_id: int
    leader_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndEpoch:
    """The leader that this node knows, -1 for none, and the epoch."""

    leader_id: int
    leader_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What follows from one input, or from several that were joined.

    Attributes:
        high_watermark: the new high watermark, exclusive, when it has moved.
        load_snapshot: begin the state machine anew from this snapshot, before anything above it is applied.
        leader: leader or epoch have changed.
    """

    persist: tuple[Persist, ...] = ()
    requests: tuple[Outgoing, ...] = ()
    replies: tuple[Reply, ...] = ()
    high_watermark: int | None = None
    load_snapshot: SnapshotId | None = None
    leader: LeaderAndEpoch | None = None
    reads: tuple[ReadConfirmed | ReadRefused, ...] = ()

    def then(self, later: "Effects") -> "Effects":
        """Both, in order."""
        return Effects(
            persist=self.persist + later.persist,
            requests=self.requests + later.requests,
            replies=self.replies + later.replies,
            high_watermark=self.high_watermark if later.high_watermark is None else later.high_watermark,
            load_snapshot=later.load_snapshot or self.load_snapshot,
            leader=later.leader or self.leader,
            reads=self.reads + later.reads,
        )
