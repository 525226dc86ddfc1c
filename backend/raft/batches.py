"""A batch of the log as the quorum sees it: where it stands, and bytes that it does not look into.

The bytes are a record batch of Kafka (`codec.batches`), the same in memory, on disk and on the wire. Sits below
everything else of `backend.raft`; storage and the network make these values, the quorum only orders them.
"""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """One batch at its place in the log.

    Attributes:
        base_offset: offset of the first record.
        last_offset: offset of the last record.
        leader_epoch: epoch of the leader that appended it.
        encoded: the whole record batch, format 2, with these offsets and this epoch in its header.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    encoded: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SnapshotId:
    """Names a snapshot: it holds all that the log says below `end_offset`, which is exclusive (KIP-630).

    Attributes:
        end_offset: the first offset that is not in it.
        epoch: leader epoch of the last record that is.
    """

    end_offset: int
    epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """Where an epoch ends in somebody's log; `end_offset` is exclusive."""

    epoch: int
    end_offset: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStart:
    """The first offset that the leader of an epoch wrote in somebody's log."""

    epoch: int
    start_offset: int
