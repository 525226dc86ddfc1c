"""Snapshots of one replica: which it has, how far the log may go, and one that is being fetched.

The log is trimmed behind the snapshot before the latest: a follower that is a little behind when a snapshot is written
still finds its records, and one that is fetching the older snapshot can finish.

    trim_point       the log loses only what a snapshot holds that is complete
    may_install      a snapshot is installed only if it ends beyond what is committed here: applied records do not
                     come back, and never disappear
    Download.accept  pieces are put together in order; one that does not fit is not taken

Knows ids, sizes and positions; the bytes go to the disk by way of effects. Source: KIP-630.
"""

from dataclasses import dataclass
from typing import final

from backend.raft.batches import SnapshotId
from backend.raft.messages import FetchSnapshotResponse


@final
@dataclass(slots=True)
class Snapshots:
    """The complete snapshots that this replica knows of; the disk keeps both.

    Attributes:
        latest: the newest, None before the first.
        previous: the one before it, as far as this process has seen it.
    """

    latest: SnapshotId | None = None
    previous: SnapshotId | None = None

    def trim_point(self, written: SnapshotId) -> SnapshotId | None:
        """Take up a newer snapshot; returns the one behind which the log may go now."""
        self.previous, self.latest = self.latest, written
        return self.previous

    def installed(self, snapshot_id: SnapshotId) -> None:
        """A fetched snapshot is the latest; nothing older is of use."""
        self.previous, self.latest = None, snapshot_id

    def serves(self, snapshot_id: SnapshotId) -> bool:
        """Whether others may fetch it here."""
        return snapshot_id in (self.latest, self.previous)


def may_install(snapshot_id: SnapshotId, high_watermark: int) -> bool:
    """Whether a leader's snapshot is one to fetch."""
    return snapshot_id.end_offset > high_watermark


@final
@dataclass(slots=True)
class Download:
    """A snapshot that is being fetched, in pieces and in order; resumes at `position` after a lost answer."""

    snapshot_id: SnapshotId
    position: int = 0

    def accept(self, response: FetchSnapshotResponse) -> bool:
        """Take a piece; returns whether it is the next one, so that it may be saved."""
        fits = response.snapshot_id == self.snapshot_id and response.position == self.position
        if not fits or not response.piece or self.position + len(response.piece) > response.size:
            return False
        self.position += len(response.piece)
        return True
