"""A leader, as scripts: what is appended, who is answered when, what counts as committed, and when it leads no more."""

import pytest

from backend.raft import reads
from backend.raft.batches import EpochEnd, SnapshotId
from backend.raft.effects import DeleteBefore, LogRead, ReadConfirmed, ReadRefused, SnapshotRead
from backend.raft.interfaces import QuorumState, ReplicaState
from backend.raft.messages import BeginQuorumEpochRequest, FetchResponse, FetchSnapshotResponse
from backend.raft.replica import NotLeader
from codec.error_codes import ErrorCode
from tests.unit.backend.raft import kit
from tests.unit.backend.raft.kit import Script

# Elected at 1500 ms in epoch 1, after an empty log: its LeaderChange stands at offset 0.


def leader(voters: int = 3) -> Script:
    return Script(voters=voters).elected(*range(2, voters // 2 + 2))


def committed_leader() -> Script:
    """A leader whose first record is committed."""
    script = leader()
    script.acknowledge(2)
    assert script.effects.high_watermark == 1
    return script


def answer(script: Script, handle: int) -> FetchResponse:
    response = kit.reply_to(script.effects, handle).response
    assert isinstance(response, FetchResponse)
    return response


def test_only_a_leader_appends() -> None:
    script = Script()
    with pytest.raises(NotLeader):
        script.propose(1)


def test_nothing_is_not_appended() -> None:
    script = leader()
    for nothing in ([], [(b"", 0)]):
        with pytest.raises(ValueError, match="at least one record"):
            script.replica.propose(nothing, 0)


def test_batches_get_their_places_in_order() -> None:
    script = leader()
    assert script.propose(2, 1) == 3
    assert kit.appended(script.effects) == [(1, 2, 1), (3, 3, 1)]
    assert script.propose(3) == 6
    assert kit.appended(script.effects) == [(4, 6, 1)]
    assert script.replica.log_end_offset == 7


def test_a_record_is_committed_once_a_majority_has_it() -> None:
    script = leader(5)
    script.propose(2)
    script.acknowledge(2)
    assert script.replica.high_watermark == -1
    script.acknowledge(3, 1)
    assert script.replica.high_watermark == 1
    script.acknowledge(4, 2)
    assert script.replica.high_watermark == 2
    script.acknowledge(3)
    assert script.replica.high_watermark == 3


def test_half_of_the_voters_is_no_majority() -> None:
    script = Script(voters=4).elected(2, 3)
    script.propose(1)
    script.acknowledge(2)
    assert script.replica.high_watermark == -1
    script.acknowledge(3, 1)
    assert script.replica.high_watermark == 1


def test_an_observer_that_has_a_record_does_not_commit_it() -> None:
    script = leader()
    for observer in (100, 101, 102):
        script.acknowledge(observer)
    assert script.replica.high_watermark == -1


def test_a_record_of_an_older_epoch_is_committed_only_with_one_of_the_leaders_own() -> None:
    script = Script(kit.recovered(epoch=3, log=[1, 2])).elected(2)
    script.receive(kit.fetch(2, 4, 2, 2, wait_ms=0))
    assert script.replica.high_watermark == -1
    script.receive(kit.fetch(2, 4, 3, 4, wait_ms=0))
    assert script.replica.high_watermark == 3


def test_a_late_fetch_takes_nothing_back() -> None:
    script = leader()
    script.propose(1)
    script.acknowledge(2)
    script.acknowledge(2, 1)
    assert script.replica.describe(script.now_ms).voters[1].log_end_offset == 2
    script.propose(1)
    script.acknowledge(3, 3)
    assert script.replica.high_watermark == 3


def test_a_fetch_that_is_behind_is_answered_at_once_with_all_there_is() -> None:
    script = committed_leader()
    script.propose(2)
    script.receive(kit.fetch(3, 1, 0, 0))
    reply = kit.reply_to(script.effects, script.handle)
    assert reply.read == LogRead(from_offset=0, end_offset=3, max_bytes=8 * 1024 * 1024)
    assert reply.response == FetchResponse(leader_id=1, leader_epoch=1, high_watermark=1)


def test_a_fetch_that_is_caught_up_is_held_until_a_record_comes() -> None:
    script = committed_leader()
    script.receive(kit.fetch(2, 1, 1, 1, high_watermark=1))
    held = script.handle
    assert script.effects.replies == ()
    script.propose(1)
    assert kit.reply_to(script.effects, held).read == LogRead(from_offset=1, end_offset=2, max_bytes=8 * 1024 * 1024)


def test_a_fetch_that_is_caught_up_is_held_until_the_high_watermark_moves() -> None:
    script = leader(5)
    script.receive(kit.fetch(2, 1, 1, 1))
    held = script.handle
    assert script.effects.replies == ()
    script.acknowledge(3)
    reply = kit.reply_to(script.effects, held)
    assert reply.read is None
    assert answer(script, held).high_watermark == 1


def test_who_does_not_say_what_it_knows_is_not_told_of_a_high_watermark() -> None:
    script = leader(5)
    script.receive(kit.fetch(2, 1, 1, 1, high_watermark=None))
    script.acknowledge(3)
    assert len(script.effects.replies) == 1
    script.propose(1)
    assert len(script.effects.replies) == 1


def test_a_fetch_is_held_no_longer_than_it_wants_and_the_leader_allows() -> None:
    script = committed_leader()
    for wait_ms, held_ms in ((30, 30), (100_000, 500)):
        script.receive(kit.fetch(2, 1, 1, 1, high_watermark=1, wait_ms=wait_ms))
        until = script.now_ms + held_ms
        script.at(until - 1)
        assert script.effects.replies == ()
        script.at(until)
        assert answer(script, script.handle).high_watermark == 1


def test_a_second_fetch_of_the_same_replica_takes_the_place_of_the_first() -> None:
    script = committed_leader()
    script.receive(kit.fetch(2, 1, 1, 1, high_watermark=1))
    first = script.handle
    script.receive(kit.fetch(2, 1, 1, 1, high_watermark=1))
    assert [reply.handle for reply in script.effects.replies] == [first]
    script.propose(1)
    assert [reply.handle for reply in script.effects.replies] == [script.handle]


def test_a_consumer_is_never_held_and_acknowledges_nothing() -> None:
    script = leader()
    for _ in range(3):
        assert script.asked(kit.fetch(-1, 1, 1, 1), FetchResponse).high_watermark == -1
    assert script.replica.describe(0).observers == ()


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_a_fetch_of_another_epoch_is_refused_and_counts_for_nothing(epoch: int, error: ErrorCode) -> None:
    script = leader()
    response = script.asked(kit.fetch(2, epoch, 1, 1), FetchResponse)
    assert response == FetchResponse(error_code=error, leader_id=1, leader_epoch=1)
    snapshot = SnapshotId(end_offset=1, epoch=1)
    piece = script.asked(kit.fetch_snapshot(2, epoch, snapshot), FetchSnapshotResponse)
    assert piece.error_code is error
    assert script.replica.high_watermark == -1


def test_who_does_not_lead_names_the_leader() -> None:
    script = Script(kit.recovered(epoch=3, leader=2))
    response = script.asked(kit.fetch(3, 3, 0, 0), FetchResponse)
    assert response == FetchResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=2, leader_epoch=3)


def test_a_log_that_parted_is_told_where_and_counts_for_nothing() -> None:
    script = Script(kit.recovered(epoch=5, log=[1, 1, 4])).elected(2)
    response = script.asked(kit.fetch(2, 6, 7, 3), FetchResponse)
    assert response.diverging_epoch == EpochEnd(epoch=1, end_offset=2)
    response = script.asked(kit.fetch(3, 6, 9, 6), FetchResponse)
    assert response.diverging_epoch == EpochEnd(epoch=6, end_offset=4)
    assert script.replica.high_watermark == -1


def test_a_leader_whom_no_majority_asks_resigns() -> None:
    script = leader(5)
    script.at(4000)
    script.acknowledge(2)
    script.acknowledge(3)
    script.at(6999)
    assert script.state == ("Leader", 1, 1)
    script.at(7000)
    assert script.state == ("Resigned", 1, -1)


def test_a_new_leader_has_the_same_time() -> None:
    script = leader()
    script.at(4499)
    assert script.state == ("Leader", 1, 1)
    script.at(4500)
    assert script.state == ("Resigned", 1, -1)


def test_observers_do_not_keep_a_leader() -> None:
    script = leader()
    script.at(4499)
    script.acknowledge(100)
    script.at(4500)
    assert script.state == ("Resigned", 1, -1)


def test_a_voter_that_fetches_a_snapshot_or_from_a_foreign_log_keeps_a_leader_all_the_same() -> None:
    script = leader()
    script.at(4000)
    script.receive(kit.fetch_snapshot(2, 1, SnapshotId(end_offset=1, epoch=1)))
    script.at(6000)
    script.receive(kit.fetch(3, 1, 9, 1))
    script.at(8999)
    assert script.state == ("Leader", 1, 1)
    script.at(9000)
    assert script.state == ("Resigned", 1, -1)


def test_a_leader_tells_voters_that_do_not_fetch_again_and_again() -> None:
    script = leader()
    script.acknowledge(2)
    script.at(2000)
    script.acknowledge(2)
    told = []
    while script.now_ms < 3500:
        script.to_deadline()
        told += [(script.now_ms, to) for to, _ in script.requests(BeginQuorumEpochRequest)]
    assert told == [(2500, 3), (3000, 2), (3500, 3)]


def test_who_waits_on_a_leader_that_resigns_is_told() -> None:
    script = committed_leader()
    script.receive(kit.fetch(3, 1, 1, 1, high_watermark=1))
    held = script.handle
    script.read_index(7)
    script.resign()
    assert answer(script, held) == FetchResponse(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=-1, leader_epoch=1
    )
    assert script.reads() == (ReadRefused(handle=7, leader_id=-1, leader_epoch=1),)


def test_a_leader_that_learns_of_another_names_it_to_those_who_wait() -> None:
    script = committed_leader()
    script.receive(kit.fetch(3, 1, 1, 1, high_watermark=1))
    held = script.handle
    script.receive(kit.begin(2, 2))
    assert script.state == ("Follower", 2, 2)
    assert (answer(script, held).leader_id, answer(script, held).leader_epoch) == (2, 2)


def test_a_read_is_confirmed_by_a_majority_that_was_asked_after_it_came() -> None:
    script = committed_leader()
    script.read_index(7)
    assert script.reads() == ()
    assert script.asked_to_begin() == [(2, kit.begin(1, 1)), (3, kit.begin(1, 1))]
    script.respond(script.to(3), kit.begun(1, 1))
    assert script.reads() == (ReadConfirmed(handle=7, high_watermark=1, leader_epoch=1),)


def test_an_answer_to_an_older_question_confirms_no_read() -> None:
    script = committed_leader()
    older = script.to(3)
    script.read_index(7)
    script.respond(older, kit.begun(1, 1))
    assert script.reads() == ()


def test_an_answer_to_an_earlier_round_confirms_no_read() -> None:
    script = committed_leader()
    script.read_index(7)
    earlier = script.to(3)
    script.respond(script.to(2), kit.begun(1, 1))
    assert [read.handle for read in script.reads()] == [7]
    script.read_index(8)
    script.respond(earlier, kit.begun(1, 1))
    assert script.reads() == ()
    script.respond(script.to(3), kit.begun(1, 1))
    assert [read.handle for read in script.reads()] == [8]


def test_a_voter_that_has_answered_a_round_is_asked_no_more_nor_anybody_when_it_is_over() -> None:
    script = leader(5)
    script.acknowledge(2)
    script.acknowledge(3)
    script.read_index(7)
    script.respond(script.to(2), kit.begun(1, 1))
    for voter in (3, 4, 5):
        script.fail(script.to(voter))
    script.at(script.now_ms + 20)
    assert [to for to, _ in script.asked_to_begin()] == [3, 4, 5]
    script.respond(script.to(3), kit.begun(1, 1))
    assert [read.handle for read in script.reads()] == [7]
    for voter in (4, 5):
        script.fail(script.to(voter))
    script.at(script.now_ms + 20)
    assert script.asked_to_begin() == []


def test_a_slow_round_asks_again_only_whom_it_has_not_heard() -> None:
    script = leader(5)
    for voter in (2, 3, 4, 5):
        script.acknowledge(voter)
    script.read_index(7)
    script.respond(script.to(2), kit.begun(1, 1))
    asked: list[int] = []
    for now_ms in range(1600, 3700, 100):
        script.at(now_ms)
        asked += [to for to, _ in script.asked_to_begin()]
        for voter in (2, 3, 4, 5):
            script.acknowledge(voter)
    assert asked == [3, 4, 5]


def test_a_fetch_confirms_no_read() -> None:
    script = committed_leader()
    script.read_index(7)
    script.acknowledge(2)
    script.acknowledge(3)
    assert script.reads() == ()


def test_a_read_that_comes_during_a_round_waits_for_the_next() -> None:
    script = committed_leader()
    script.read_index(7)
    first = script.to(2)
    script.read_index(8)
    script.read_index(9)
    assert script.asked_to_begin() == []
    script.respond(first, kit.begun(1, 1))
    assert [read.handle for read in script.reads()] == [7]
    assert script.asked_to_begin() == [(2, kit.begin(1, 1)), (3, kit.begin(1, 1))]
    script.respond(script.to(3), kit.begun(1, 1))
    assert [read.handle for read in script.reads()] == [8, 9]


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST])
def test_a_voter_that_does_not_follow_confirms_no_read(error: ErrorCode) -> None:
    script = committed_leader()
    script.read_index(7)
    script.respond(script.to(3), kit.begun(-1, 1, error))
    assert script.reads() == ()


def test_a_voter_of_a_later_epoch_ends_the_leadership_and_the_read() -> None:
    script = committed_leader()
    script.read_index(7)
    script.respond(script.to(3), kit.begun(3, 2, ErrorCode.FENCED_LEADER_EPOCH))
    assert script.state == ("Follower", 2, 3)
    assert script.reads() == (ReadRefused(handle=7, leader_id=3, leader_epoch=2),)


def test_a_new_leader_confirms_no_read_before_it_has_committed() -> None:
    script = leader()
    script.read_index(7)
    assert script.effects.requests == ()
    script.acknowledge(2)
    script.respond(script.to(2), kit.begun(1, 1))
    assert script.reads() == (ReadConfirmed(handle=7, high_watermark=1, leader_epoch=1),)


def test_a_question_without_an_answer_is_asked_again() -> None:
    script = committed_leader()
    script.read_index(7)
    script.fail(script.to(2))
    script.at(script.now_ms + 20)
    assert [to for to, _ in script.asked_to_begin()] == [2]
    script.at(script.now_ms + 300)
    script.respond(script.to(2), kit.begun(1, 1))
    assert [read.handle for read in script.reads()] == [7]


def test_who_does_not_lead_refuses_reads_and_names_the_leader() -> None:
    script = Script(kit.recovered(epoch=3, leader=2))
    script.read_index(7)
    assert script.reads() == (ReadRefused(handle=7, leader_id=2, leader_epoch=3),)


def test_the_only_voter_confirms_reads_alone() -> None:
    script = Script(voters=1)
    for handle in (7, 8):
        script.read_index(handle)
        assert script.reads() == (ReadConfirmed(handle=handle, high_watermark=1, leader_epoch=1),)


def test_reads_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "READS_WAITING_MAX", 2)
    script = committed_leader()
    for handle in (1, 2):
        # The first has a round, the second waits for the next.
        script.read_index(handle)
        assert script.reads() == ()
    script.read_index(3)
    assert script.reads() == (ReadRefused(handle=3, leader_id=1, leader_epoch=1),)


def test_a_voter_that_never_answers_is_asked_no_more_than_ten_times_at_once() -> None:
    script = committed_leader()
    asked = 0
    for handle in range(30):
        script.read_index(handle)
        asked += sum(1 for to, _ in script.asked_to_begin() if to == 3)
        script.respond(script.to(2), kit.begun(1, 1))
        assert [read.handle for read in script.reads()] == [handle]
        assert script.replica.deadline_ms > script.now_ms
    assert asked == 9


def test_the_leader_describes_the_quorum() -> None:
    script = committed_leader()
    script.propose(1)
    script.now_ms = 1600
    script.acknowledge(3)
    script.acknowledge(100, 1)
    assert script.replica.describe(1700) == QuorumState(
        leader_id=1,
        leader_epoch=1,
        high_watermark=2,
        voters=(
            ReplicaState(
                replica_id=1, log_end_offset=2, last_fetch_timestamp_ms=1700, last_caught_up_timestamp_ms=1700
            ),
            ReplicaState(
                replica_id=2, log_end_offset=1, last_fetch_timestamp_ms=1500, last_caught_up_timestamp_ms=1500
            ),
            ReplicaState(
                replica_id=3, log_end_offset=2, last_fetch_timestamp_ms=1600, last_caught_up_timestamp_ms=1600
            ),
        ),
        observers=(
            ReplicaState(
                replica_id=100, log_end_offset=1, last_fetch_timestamp_ms=1600, last_caught_up_timestamp_ms=-1
            ),
        ),
    )


def test_who_has_what_the_leader_had_a_fetch_ago_was_caught_up_then() -> None:
    script = committed_leader()
    script.propose(1)
    script.now_ms = 1600
    script.acknowledge(2, 1)
    script.propose(1)
    script.now_ms = 1700
    script.acknowledge(2, 2)
    second = script.replica.describe(1800).voters[1]
    assert (second.log_end_offset, second.last_fetch_timestamp_ms, second.last_caught_up_timestamp_ms) == (
        2,
        1700,
        1600,
    )


def test_an_observer_that_is_long_gone_is_forgotten() -> None:
    script = Script(voters=1)
    script.acknowledge(100)
    script.at(200_000)
    script.acknowledge(101)
    for now_ms, expected in ((300_000, [100, 101]), (300_001, [101])):
        observers = script.replica.describe(now_ms).observers
        assert [observer.replica_id for observer in observers] == expected


def test_observers_are_remembered_up_to_a_limit_and_served_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.raft.leading.OBSERVERS_MAX", 2)
    script = Script(voters=1)
    for observer in (0, 100, 101):
        script.receive(kit.fetch(observer, 1, 1, 1, high_watermark=1))
    # The third is answered at once, and leaves no trace.
    assert answer(script, script.handle).high_watermark == 1
    assert [observer.replica_id for observer in script.replica.describe(0).observers] == [0, 100]


def test_an_observer_that_is_long_gone_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.raft.leading.OBSERVERS_MAX", 1)
    script = Script(voters=1)
    script.acknowledge(100)
    script.at(300_001)
    script.acknowledge(101)
    assert [observer.replica_id for observer in script.replica.describe(script.now_ms).observers] == [101]


def test_who_does_not_lead_describes_itself() -> None:
    script = Script(kit.recovered(epoch=3, leader=2, log=[1]))
    state = script.replica.describe(5)
    assert (state.leader_id, state.leader_epoch, state.high_watermark) == (2, 3, -1)
    assert [voter.replica_id for voter in state.voters] == [1]
    observer = Script(node_id=100).replica.describe(5)
    assert (observer.voters, [one.replica_id for one in observer.observers]) == ((), [100])


def test_the_log_goes_behind_the_snapshot_before_the_latest() -> None:
    script = Script(voters=1)
    script.propose(9)
    script.snapshot(4, 1)
    assert script.persisted() == ()
    script.snapshot(8, 1)
    assert script.persisted() == (DeleteBefore(SnapshotId(end_offset=4, epoch=1)),)
    assert script.replica.log_start_offset == 4
    assert script.asked(kit.fetch(100, 1, 4, 1), FetchResponse).snapshot_id is None
    response = script.asked(kit.fetch(100, 1, 3, 1), FetchResponse)
    assert (response.snapshot_id, response.log_start_offset) == (SnapshotId(end_offset=8, epoch=1), 4)


def test_a_snapshot_of_what_is_not_committed_or_of_another_epoch_is_refused() -> None:
    script = committed_leader()
    script.propose(1)
    with pytest.raises(ValueError, match="only all below 1 is committed"):
        script.snapshot(2, 1)
    with pytest.raises(ValueError, match="of epoch 4; the log says 1"):
        script.snapshot(1, 4)


def test_an_older_snapshot_than_the_latest_changes_nothing() -> None:
    script = Script(voters=1)
    script.propose(9)
    script.snapshot(8, 1)
    script.snapshot(4, 1)
    assert script.persisted() == ()


def test_both_snapshots_that_are_kept_are_served_and_no_other() -> None:
    script = Script(voters=1)
    script.propose(9)
    for end_offset in (3, 5, 7):
        script.snapshot(end_offset, 1)
    for end_offset, error in ((3, ErrorCode.SNAPSHOT_NOT_FOUND), (5, ErrorCode.NONE), (7, ErrorCode.NONE)):
        snapshot = SnapshotId(end_offset=end_offset, epoch=1)
        script.receive(kit.fetch_snapshot(100, 1, snapshot, position=40))
        reply = kit.reply_to(script.effects, script.handle)
        assert isinstance(reply.response, FetchSnapshotResponse)
        assert (reply.response.error_code, reply.response.position) == (error, 40)
        if error is ErrorCode.NONE:
            assert reply.read == SnapshotRead(snapshot_id=snapshot, position=40, max_bytes=4096)


def test_a_position_before_the_snapshot_is_refused() -> None:
    script = Script(voters=1)
    snapshot = SnapshotId(end_offset=1, epoch=1)
    script.snapshot(1, 1)
    for position, error in ((-1, ErrorCode.POSITION_OUT_OF_RANGE), (0, ErrorCode.NONE)):
        response = script.asked(kit.fetch_snapshot(100, 1, snapshot, position), FetchSnapshotResponse)
        assert response.error_code is error
