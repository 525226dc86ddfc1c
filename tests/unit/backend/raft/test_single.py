"""The single leader's log: what is appended is committed, read from any offset, and cut back behind a snapshot."""

import pytest

from backend.raft.interfaces import Fetched, Snapshot
from backend.raft.single import FIRST_EPOCH, SingleLeaderLog


def log_of(*sizes: int) -> SingleLeaderLog[str, str]:
    """A log with one batch for each size; each record is its own offset as text."""
    log: SingleLeaderLog[str, str] = SingleLeaderLog(3001, [3001, 3002, 3003])
    for size in sizes:
        log.append([str(log.high_watermark + index) for index in range(size)])
    return log


def records(fetched: Fetched[str, str]) -> list[str]:
    return [record for batch in fetched.batches for record in batch.records]


def test_a_batch_is_committed_as_it_is_appended() -> None:
    log = log_of()
    assert (log.high_watermark, log.head.offset) == (0, -1)
    batch = log.append(["a", "b"])
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (0, 1, FIRST_EPOCH)
    assert (log.high_watermark, log.head.offset) == (2, 1)


def test_a_batch_without_records_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        log_of().append([])


@pytest.mark.parametrize(
    ("from_offset", "expected"),
    [
        (0, ["0", "1", "2", "3", "4", "5"]),
        (2, ["2", "3", "4", "5"]),
        (4, ["3", "4", "5"]),
        (5, ["3", "4", "5"]),
        (6, []),
    ],
)
def test_reading_begins_with_the_batch_that_has_the_offset(from_offset: int, expected: list[str]) -> None:
    assert records(log_of(2, 1, 3).read(from_offset, 100)) == expected


@pytest.mark.parametrize(("records_max", "expected"), [(1, 2), (2, 2), (3, 3), (4, 6), (100, 6)])
def test_reading_stops_with_the_batch_that_reaches_the_limit(records_max: int, expected: int) -> None:
    assert len(records(log_of(2, 1, 3).read(0, records_max))) == expected


def test_behind_a_snapshot_the_log_is_gone_and_the_snapshot_stands_in() -> None:
    log = log_of(2, 1, 3)
    snapshot = Snapshot(end_offset=3, leader_epoch=FIRST_EPOCH, content="0 to 2")
    log.compact(snapshot)
    assert log.log_start_offset == 3
    assert log.read(2, 100) == Fetched(snapshot=snapshot)
    assert records(log.read(3, 100)) == ["3", "4", "5"]


def test_a_batch_that_reaches_beyond_the_snapshot_stays_whole() -> None:
    log = log_of(2, 3)
    log.compact(Snapshot(end_offset=3, leader_epoch=FIRST_EPOCH, content=""))
    assert records(log.read(3, 100)) == ["2", "3", "4"]


def test_a_snapshot_of_what_is_not_committed_is_refused() -> None:
    with pytest.raises(ValueError, match="a snapshot to 3 of a log that ends at 2"):
        log_of(2).compact(Snapshot(end_offset=3, leader_epoch=FIRST_EPOCH, content=""))


def test_an_older_snapshot_changes_nothing() -> None:
    log = log_of(2, 1)
    newer = Snapshot(end_offset=3, leader_epoch=FIRST_EPOCH, content="newer")
    log.compact(newer)
    log.compact(Snapshot(end_offset=2, leader_epoch=FIRST_EPOCH, content="older"))
    assert log.read(0, 100).snapshot == newer


def test_every_voter_has_just_fetched_everything() -> None:
    state = log_of(2).describe(5000)
    assert (state.leader_id, state.leader_epoch, state.high_watermark) == (3001, FIRST_EPOCH, 2)
    assert [(v.replica_id, v.log_end_offset, v.last_fetch_timestamp_ms) for v in state.voters] == [
        (3001, 2, 5000),
        (3002, 2, 5000),
        (3003, 2, 5000),
    ]
    assert {voter.last_caught_up_timestamp_ms for voter in state.voters} == {5000}


def test_observers_show_how_far_they_fetched_until_they_leave() -> None:
    log = log_of(2)
    log.fetched(1, 2, 1000)
    log.fetched(2, 1, 1000)
    log.append(["x"])
    log.fetched(1, 2, 2000)
    one, two = log.describe(3000).observers
    assert (one.log_end_offset, one.last_fetch_timestamp_ms, one.last_caught_up_timestamp_ms) == (2, 2000, 1000)
    assert (two.log_end_offset, two.last_fetch_timestamp_ms, two.last_caught_up_timestamp_ms) == (1, 1000, -1)
    log.left(1)
    assert [observer.replica_id for observer in log.describe(3000).observers] == [2]
