"""The index of the log against a list that holds the epoch of every record."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.raft.batches import EpochEnd, EpochStart, SnapshotId
from backend.raft.log_index import LogIndex
from tests.unit.backend.raft import kit

EPOCHS = st.lists(st.integers(1, 6), max_size=30).map(sorted)


def index_of(log: Sequence[int], start: int = 0, snapshot: SnapshotId | None = None) -> LogIndex:
    disk = kit.recovered(log=log, start=start, snapshot=snapshot)
    return LogIndex(
        start_offset=disk.log_start_offset,
        end_offset=disk.log_end_offset,
        epochs=disk.epochs,
        snapshot=snapshot,
    )


def trimmed(log: Sequence[int], at: int) -> LogIndex:
    """The same log behind a snapshot that ends at `at`."""
    index = index_of(log)
    if at:
        index.trim(SnapshotId(end_offset=at, epoch=log[at - 1]))
    return index


def common_end(one: Sequence[int], other: Sequence[int]) -> int:
    """Where two logs part, by comparing record after record."""
    end = 0
    while end < min(len(one), len(other)) and one[end] == other[end]:
        end += 1
    return end


@given(EPOCHS, st.integers(0, 7))
def test_an_epoch_ends_where_a_later_one_begins(log: list[int], epoch: int) -> None:
    earlier = [one for one in log if one <= epoch]
    expected = EpochEnd(epoch=earlier[-1], end_offset=len(earlier)) if earlier else EpochEnd(epoch=0, end_offset=0)
    assert index_of(log).end_of_epoch(epoch) == expected


@given(EPOCHS, st.data())
def test_every_record_keeps_its_epoch_whatever_was_cut_at_either_end(log: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(log)))
    end = data.draw(st.integers(start, len(log)))
    index = trimmed(log, start)
    index.truncate(end)
    assert (index.start_offset, index.end_offset) == (start, end)
    assert index.last_epoch == (log[end - 1] if end else 0)
    for offset in range(start, end):
        assert index.epoch_of(offset) == log[offset]
    assert index.epoch_of(end) is None
    if start:
        assert index.epoch_of(start - 1) == log[start - 1]
    if start > 1:
        assert index.epoch_of(start - 2) is None


@given(EPOCHS)
def test_batches_that_are_appended_make_the_same_index_as_recovery(log: list[int]) -> None:
    index = LogIndex(start_offset=0, end_offset=0, epochs=(), snapshot=None)
    for offset, epoch in enumerate(log):
        index.append(epoch, offset)
    for offset in range(len(log)):
        assert index.epoch_of(offset) == log[offset]
    assert index.last_epoch == (log[-1] if log else 0)


def epochs_written(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs as leaders make them: an epoch is written by one leader, so both hold a prefix of what it wrote."""
    own: list[int] = []
    other: list[int] = []
    for epoch in range(1, draw(st.integers(1, 6))):
        base = draw(st.sampled_from(["own", "other", "both", "none"]))
        count = draw(st.integers(1, 4))
        if base == "own":
            own = [*own, *[epoch] * count]
        elif base == "other":
            other = [*other, *[epoch] * count]
        elif base == "both":
            # The leader has one of the logs; the other one is cut to it first, and then gets a prefix.
            source = own if draw(st.booleans()) else other
            kept = draw(st.integers(1, count))
            full, part = [*source, *[epoch] * count], [*source, *[epoch] * kept]
            own, other = (full, part) if draw(st.booleans()) else (part, full)
    return own, other


@given(st.composite(epochs_written)())
def test_a_follower_that_is_told_where_to_cut_ends_up_with_a_prefix_and_loses_nothing_shared(
    logs: tuple[list[int], list[int]],
) -> None:
    leader_log, follower_log = logs
    leader, follower = index_of(leader_log), index_of(follower_log)
    shared = common_end(leader_log, follower_log)
    for _ in range(len(follower_log) + 2):
        diverging = leader.divergence(follower.end_offset, follower.last_epoch)
        if diverging is None:
            break
        cut = follower.truncation_offset(diverging)
        assert shared <= cut < follower.end_offset
        follower.truncate(cut)
    assert follower.end_offset == shared


@given(st.composite(epochs_written)(), st.data())
def test_a_leader_whose_log_begins_late_tells_the_same_or_sends_its_snapshot(
    logs: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    leader_log, follower_log = logs
    start = data.draw(st.integers(0, len(leader_log)))
    leader, whole = trimmed(leader_log, start), index_of(leader_log)
    offset, epoch = len(follower_log), follower_log[-1] if follower_log else 0
    if leader.reaches(offset, epoch):
        told, meant = leader.divergence(offset, epoch), whole.divergence(offset, epoch)
        assert (told is None) == (meant is None)
        if told is not None:
            assert told.end_offset >= start
            assert told == meant
    else:
        # It has something else at the start, or nothing: what it lacks is in the snapshot.
        assert common_end(leader_log, follower_log) < start or offset < start


def test_a_log_whose_start_is_below_its_snapshot_does_not_know_the_epoch_before_it() -> None:
    index = index_of([2, 2, 3, 3], start=10, snapshot=SnapshotId(end_offset=12, epoch=2))
    assert index.epoch_of(9) is None
    assert not index.reaches(10, 2)
    assert index.reaches(11, 2)
    assert not index.reaches(11, 1)
    assert index.divergence(11, 2) is None
    assert index.last_epoch == 3


def test_a_snapshot_that_ends_where_the_log_starts_tells_the_epoch_before_it() -> None:
    snapshot = SnapshotId(end_offset=20, epoch=2)
    for log in ([], [3, 4]):
        index = index_of(log, start=20, snapshot=snapshot)
        assert index.epoch_of(19) == 2
        assert index.reaches(20, 2)
        assert not index.reaches(20, 3)
        assert index.last_epoch == (log[-1] if log else 2)


def test_epochs_that_are_gone_from_the_log_are_forgotten() -> None:
    index = trimmed([1, 1, 2, 3, 3], 3)
    assert index.end_of_epoch(2) == EpochEnd(epoch=2, end_offset=3)
    assert index.end_of_epoch(1) == EpochEnd(epoch=0, end_offset=0)


def test_a_log_that_begins_anew_is_empty_and_knows_what_is_before() -> None:
    index = index_of([1, 1, 2])
    index.begin_anew(SnapshotId(end_offset=20, epoch=4))
    assert (index.start_offset, index.end_offset, index.last_epoch) == (20, 20, 4)
    assert index.epoch_of(19) == 4
    assert index.reaches(20, 4)
    assert not index.reaches(20, 3)
    assert index.divergence(20, 4) is None
    index.append(6, 22)
    assert [index.epoch_of(offset) for offset in range(20, 24)] == [6, 6, 6, None]


def test_an_older_snapshot_trims_nothing() -> None:
    index = trimmed([1, 1, 2, 2], 3)
    index.trim(SnapshotId(end_offset=2, epoch=1))
    assert index.start_offset == 3
    assert index.epoch_of(2) == 2


@pytest.mark.parametrize(
    ("start", "end", "epochs", "snapshot"),
    [
        (5, 9, (EpochStart(epoch=1, start_offset=5),), None),
        (0, 9, (EpochStart(epoch=1, start_offset=0),), SnapshotId(end_offset=12, epoch=1)),
        (0, 9, (), None),
    ],
)
def test_a_disk_that_contradicts_itself_is_refused(
    start: int, end: int, epochs: tuple[EpochStart, ...], snapshot: SnapshotId | None
) -> None:
    with pytest.raises(ValueError, match="a log from"):
        LogIndex(start_offset=start, end_offset=end, epochs=epochs, snapshot=snapshot)


def test_the_generator_of_logs_makes_them_with_epochs_in_order() -> None:
    @given(st.composite(epochs_written)())
    def check(logs: tuple[list[int], list[int]]) -> None:
        for log in logs:
            assert all(one <= two for one, two in pairwise(log))

    check()
