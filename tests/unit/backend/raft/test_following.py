"""A follower, as scripts: one Fetch after another, logs that parted, snapshots, leaders that come and go."""

import pytest

from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.effects import (
    Append,
    DeleteBefore,
    Effects,
    InstallSnapshot,
    LeaderAndEpoch,
    SavePiece,
    Truncate,
)
from backend.raft.messages import BeginQuorumEpochResponse, FetchRequest, FetchSnapshotRequest, VoteResponse
from backend.raft.replica import CommittedLost
from codec.error_codes import ErrorCode
from tests.unit.backend.raft import kit
from tests.unit.backend.raft.kit import Script

SNAPSHOT = SnapshotId(end_offset=20, epoch=2)


def follower(*log: int, node_id: int = 1, snapshot: SnapshotId | None = None, start: int = 0) -> Script:
    """Follows 2 in epoch 3; its first Fetch is under way."""
    return Script(
        kit.recovered(epoch=3, leader=2, log=log, snapshot=snapshot, start=start),
        node_id=node_id,
    )


def test_a_restarted_follower_asks_its_leader_for_what_comes_after_its_log() -> None:
    script = follower(1, 3)
    assert script.state == ("Follower", 3, 2)
    assert script.effects.leader == LeaderAndEpoch(leader_id=2, leader_epoch=3)
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 2, 3))]
    assert script.effects.high_watermark is None


def test_what_comes_is_appended_and_more_is_asked_for_at_once() -> None:
    script = follower()
    batches = kit.log_batch(0, 1, 2), kit.log_batch(2, 3), kit.log_batch(3, 3)
    script.respond(script.to(2), kit.fetched(2, 3, *batches, high_watermark=2))
    assert script.persisted() == (Append(batches),)
    assert script.effects.high_watermark == 2
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 4, 3, high_watermark=2))]


def test_no_more_is_known_to_be_committed_than_is_in_the_log() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, kit.log_batch(0, 1), high_watermark=9))
    assert script.effects.high_watermark == 1


def test_the_high_watermark_never_goes_back() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, kit.log_batch(0, 1, 3), high_watermark=3))
    for lower in (2, -1):
        script.respond(script.to(2), kit.fetched(2, 3, high_watermark=lower))
        assert script.effects.high_watermark is None
    assert script.replica.high_watermark == 3


@pytest.mark.parametrize(
    "batches",
    [
        (kit.log_batch(1, 3),),
        (kit.log_batch(3, 3),),
        (kit.log_batch(2, 2),),
        (kit.log_batch(2, 4),),
        (kit.log_batch(2, 3), kit.log_batch(4, 3)),
        (LogBatch(base_offset=2, last_offset=1, leader_epoch=3, encoded=b""),),
    ],
    ids=["overlap", "gap", "older epoch", "later epoch", "gap between", "nothing"],
)
def test_what_does_not_follow_on_the_log_is_not_taken_and_no_sign_of_life(batches: tuple[object, ...]) -> None:
    script = follower(1, 3)
    script.respond(script.to(2), kit.fetched(2, 3, *batches, high_watermark=2))  # type: ignore[arg-type]
    assert script.effects == kit.NOTHING
    assert script.asked(kit.vote(3, 3, last_epoch=3, end=2, pre_vote=True), VoteResponse).vote_granted
    script.at(20)
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 2, 3))]


def test_after_a_failure_it_asks_again_after_a_pause() -> None:
    script = follower()
    script.fail(script.to(2))
    assert script.effects.requests == ()
    script.at(19)
    assert script.effects.requests == ()
    script.at(20)
    assert [to for to, _ in script.requests(FetchRequest)] == [2]


def test_a_fetch_that_takes_too_long_counts_as_lost_and_its_answer_as_nothing() -> None:
    script = Script(kit.recovered(epoch=3, leader=2), request_timeout_ms=400)
    lost = script.to(2)
    script.at(399)
    assert script.effects.requests == ()
    # The time is up, and another input comes before the alarm.
    script.now_ms = 400
    script.receive(kit.vote(3, 3, pre_vote=True))
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 0, 0))]
    script.respond(lost, kit.fetched(2, 3, kit.log_batch(0, 3)))
    assert script.effects == kit.NOTHING


def test_the_fetch_timeout_runs_from_the_last_answer() -> None:
    script = follower()
    script.at(1900)
    script.respond(script.to(2), kit.fetched(2, 3))
    script.at(3899)
    assert script.state == ("Follower", 3, 2)
    script.at(3900)
    assert script.state == ("Prospective", 3, 2)


@pytest.mark.parametrize(
    "answer",
    [
        kit.fetched(2, 3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        kit.fetched(2, 2, error=ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_an_error_is_no_sign_of_life(answer: object) -> None:
    script = follower()
    script.at(1900)
    script.respond(script.to(2), answer)  # type: ignore[arg-type]
    script.at(2000)
    assert script.state == ("Prospective", 3, 2)


def test_an_answer_that_names_a_later_leader_is_followed() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(3, 5, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert script.state == ("Follower", 5, 3)
    assert [to for to, _ in script.requests(FetchRequest)] == [3]


def test_an_answer_to_an_earlier_state_is_ignored() -> None:
    script = follower()
    early = script.to(2)
    script.receive(kit.begin(3, 4))
    assert script.state == ("Follower", 4, 3)
    script.respond(early, kit.fetched(2, 3, kit.log_batch(0, 1), high_watermark=1))
    assert script.effects == kit.NOTHING
    assert script.replica.log_end_offset == 0


def test_a_log_that_parted_is_cut_and_fetched_anew() -> None:
    script = follower(1, 1, 2, 2)
    script.respond(script.to(2), kit.fetched(2, 3, diverging=(1, 5)))
    assert script.persisted() == (Truncate(2),)
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 2, 1))]


def test_a_cut_within_an_epoch_goes_to_where_the_leader_has_less_of_it() -> None:
    script = follower(1, 1, 1, 1)
    script.respond(script.to(2), kit.fetched(2, 3, diverging=(1, 3)))
    assert script.persisted() == (Truncate(3),)


def test_all_that_is_not_committed_may_be_cut() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, kit.log_batch(0, 1), kit.log_batch(1, 2), high_watermark=1))
    script.respond(script.to(2), kit.fetched(2, 3, diverging=(1, 1)))
    assert script.persisted() == (Truncate(1),)


def test_what_is_committed_is_never_cut() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, kit.log_batch(0, 1), kit.log_batch(1, 2), high_watermark=2))
    with pytest.raises(CommittedLost, match="cut back to 1, but all below 2 is committed"):
        script.respond(script.to(2), kit.fetched(2, 3, diverging=(1, 1)))


def test_what_a_snapshot_holds_is_never_cut() -> None:
    script = follower(2, snapshot=SNAPSHOT, start=20)
    with pytest.raises(CommittedLost):
        script.respond(script.to(2), kit.fetched(2, 3, diverging=(1, 4)))


def test_a_cut_that_cuts_nothing_is_not_obeyed_for_ever() -> None:
    script = follower(1, 1)
    script.respond(script.to(2), kit.fetched(2, 3, diverging=(1, 9)))
    assert script.effects == kit.NOTHING


def test_a_snapshot_is_loaded_at_start_and_known_to_be_committed() -> None:
    script = follower(3, snapshot=SNAPSHOT, start=20)
    assert script.effects.load_snapshot == SNAPSHOT
    assert script.effects.high_watermark == 20
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 21, 3, high_watermark=20))]
    script.respond(script.to(2), kit.fetched(2, 3))
    assert script.effects == Effects(requests=script.effects.requests)


def test_a_snapshot_is_fetched_in_pieces_and_takes_the_place_of_the_log() -> None:
    script = follower(1, 1)
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    assert script.requests(FetchSnapshotRequest) == [(2, kit.fetch_snapshot(1, 3, SNAPSHOT, 0, max_bytes=1024 * 1024))]
    script.respond(script.to(2), kit.piece(2, 3, SNAPSHOT, 0, b"abc", 5))
    assert script.effects == Effects(persist=(SavePiece(SNAPSHOT, 0, b"abc"),), requests=script.effects.requests)
    assert [request.position for _, request in script.requests(FetchSnapshotRequest)] == [3]
    script.respond(script.to(2), kit.piece(2, 3, SNAPSHOT, 3, b"de", 5))
    assert script.persisted() == (SavePiece(SNAPSHOT, 3, b"de"), InstallSnapshot(SNAPSHOT))
    assert script.effects.load_snapshot == SNAPSHOT
    assert script.effects.high_watermark == 20
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 20, 2, high_watermark=20))]
    assert script.replica.log_start_offset == 20
    script.respond(script.to(2), kit.fetched(2, 3, kit.log_batch(20, 3), high_watermark=21))
    script.snapshot(21, 3)
    assert script.persisted() == (DeleteBefore(SNAPSHOT),)


def test_a_snapshot_goes_on_where_it_stopped() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    script.respond(script.to(2), kit.piece(2, 3, SNAPSHOT, 0, b"abc", 5))
    script.fail(script.to(2))
    script.at(20)
    assert [request.position for _, request in script.requests(FetchSnapshotRequest)] == [3]


def test_pieces_of_a_snapshot_are_a_sign_of_life() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    script.at(1500)
    script.respond(script.to(2), kit.piece(2, 3, SNAPSHOT, 0, b"abc", 5))
    script.at(3400)
    assert script.state == ("Follower", 3, 2)


@pytest.mark.parametrize(
    ("snapshot", "position", "data"),
    [
        (SnapshotId(end_offset=21, epoch=2), 0, b"abc"),
        (SNAPSHOT, 1, b"abc"),
        (SNAPSHOT, 0, b""),
        (SNAPSHOT, 0, b"abcdef"),
    ],
    ids=["another snapshot", "another place", "nothing", "too much"],
)
def test_a_piece_that_does_not_fit_is_not_taken(snapshot: SnapshotId, position: int, data: bytes) -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    script.respond(script.to(2), kit.piece(2, 3, snapshot, position, data, 5))
    assert script.effects == kit.NOTHING
    script.at(20)
    assert [request.position for _, request in script.requests(FetchSnapshotRequest)] == [0]


def test_a_snapshot_that_is_gone_is_given_up_and_the_leader_asked_anew() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    script.respond(script.to(2), kit.piece(2, 3, SNAPSHOT, 0, b"", 0, ErrorCode.SNAPSHOT_NOT_FOUND))
    script.at(20)
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 3, 0, 0))]


def test_a_leader_that_is_behind_in_epochs_does_not_end_a_download() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    script.respond(script.to(2), kit.piece(-1, 2, SNAPSHOT, 0, b"", 0, ErrorCode.UNKNOWN_LEADER_EPOCH))
    script.at(20)
    assert [request.position for _, request in script.requests(FetchSnapshotRequest)] == [0]


def test_a_snapshot_of_the_leaders_own_epoch_is_fetched() -> None:
    script = follower()
    snapshot = SnapshotId(end_offset=9, epoch=3)
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=snapshot))
    assert [request.snapshot_id for _, request in script.requests(FetchSnapshotRequest)] == [snapshot]


def test_another_leaders_snapshot_is_begun_anew() -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=SNAPSHOT))
    script.respond(script.to(2), kit.piece(2, 3, SNAPSHOT, 0, b"abc", 5))
    script.receive(kit.begin(3, 4))
    script.respond(script.to(3), kit.fetched(3, 4, snapshot=SNAPSHOT))
    assert [request.position for _, request in script.requests(FetchSnapshotRequest)] == [0]


@pytest.mark.parametrize("snapshot", [SnapshotId(end_offset=2, epoch=1), SnapshotId(end_offset=9, epoch=4)])
def test_a_snapshot_below_what_is_committed_or_of_a_later_epoch_is_not_fetched(snapshot: SnapshotId) -> None:
    script = follower()
    script.respond(script.to(2), kit.fetched(2, 3, kit.log_batch(0, 1, 3), high_watermark=2))
    script.respond(script.to(2), kit.fetched(2, 3, snapshot=snapshot))
    assert script.effects == kit.NOTHING


def test_a_leader_that_makes_itself_known_is_followed() -> None:
    script = Script(kit.recovered(epoch=3))
    assert script.asked(kit.begin(2, 4), BeginQuorumEpochResponse) == kit.begun(2, 4)
    assert script.state == ("Follower", 4, 2)
    assert script.requests(FetchRequest) == [(2, kit.fetch(1, 4, 0, 0))]


def test_a_leader_that_is_followed_already_is_told_so() -> None:
    script = follower()
    assert script.asked(kit.begin(2, 3), BeginQuorumEpochResponse) == kit.begun(2, 3)
    assert script.persisted() == ()
    assert script.effects.requests == ()


def test_a_leader_of_an_older_epoch_is_told_of_the_later() -> None:
    script = follower()
    answer = script.asked(kit.begin(3, 2), BeginQuorumEpochResponse)
    assert answer == kit.begun(2, 3, ErrorCode.FENCED_LEADER_EPOCH)


@pytest.mark.parametrize(
    ("leader", "epoch", "error"),
    [
        (3, 3, ErrorCode.INVALID_REQUEST),
        (1, 4, ErrorCode.INVALID_REQUEST),
        (100, 4, ErrorCode.INCONSISTENT_VOTER_SET),
    ],
    ids=["a second one in the epoch", "itself", "no voter"],
)
def test_a_leader_that_cannot_be_is_not_followed(leader: int, epoch: int, error: ErrorCode) -> None:
    script = follower()
    assert script.asked(kit.begin(leader, epoch), BeginQuorumEpochResponse).error_code is error
    assert script.replica.leader_id != leader


def test_a_leader_that_resigned_hears_of_no_second_one_in_its_epoch() -> None:
    script = Script(kit.recovered(epoch=3, leader=1))
    assert script.asked(kit.begin(2, 3), BeginQuorumEpochResponse).error_code is ErrorCode.INVALID_REQUEST
    assert script.state == ("Resigned", 3, -1)


def test_a_voter_that_asks_for_pre_votes_goes_back_to_a_leader_that_is_there_after_all() -> None:
    script = follower()
    script.at(2000)
    assert script.state == ("Prospective", 3, 2)
    assert script.asked(kit.begin(2, 3), BeginQuorumEpochResponse) == kit.begun(2, 3)
    assert script.state == ("Follower", 3, 2)


def test_a_candidate_follows_whoever_leads_its_epoch() -> None:
    script = Script(kit.recovered(epoch=3))
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 3))
    assert script.state == ("Candidate", 4, -1)
    script.receive(kit.begin(3, 4))
    assert script.state == ("Follower", 4, 3)


def test_an_observer_asks_one_voter_after_another_until_one_names_the_leader() -> None:
    script = Script(node_id=100, jitter=0.0)
    assert script.requests(FetchRequest) == [(1, kit.fetch(100, 0, 0, 0, wait_ms=0))]
    script.fail(script.to(1))
    script.at(20)
    assert [to for to, _ in script.requests(FetchRequest)] == [2]
    script.respond(script.to(2), kit.fetched(-1, 0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    script.at(40)
    assert [to for to, _ in script.requests(FetchRequest)] == [3]
    script.respond(script.to(3), kit.fetched(1, 4, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert script.state == ("Follower", 4, 1)
    assert script.requests(FetchRequest) == [(1, kit.fetch(100, 4, 0, 0))]


def test_an_observer_whose_leader_is_silent_asks_around_and_never_stands() -> None:
    script = follower(node_id=100)
    script.at(2000)
    assert script.state == ("Unattached", 3, -1)
    assert len(script.requests(FetchRequest)) == 1
    script.at(60_000)
    assert script.state == ("Unattached", 3, -1)


def test_an_observer_whose_connection_to_the_leader_breaks_asks_around_and_comes_back_to_it() -> None:
    script = Script(kit.recovered(epoch=3, leader=2), node_id=100, jitter=0.0)
    script.fail(script.to(2))
    script.at(20)
    assert script.requests(FetchRequest) == [(1, kit.fetch(100, 3, 0, 0, wait_ms=0))]
    script.respond(script.to(1), kit.fetched(2, 3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    script.at(40)
    assert [to for to, _ in script.requests(FetchRequest)] == [2]
    script.fail(script.to(2))
    script.at(60)
    # Node 2 comes next in turn, and the one after it knows more.
    script.fail(script.to(2))
    script.at(80)
    script.respond(script.to(3), kit.fetched(3, 4, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert script.state == ("Follower", 4, 3)


def test_a_voter_whose_connection_to_the_leader_breaks_asks_nobody_else() -> None:
    script = follower()
    script.fail(script.to(2))
    script.at(20)
    assert [to for to, _ in script.requests(FetchRequest)] == [2]


def test_an_observer_follows_the_leader_it_happens_to_ask() -> None:
    script = Script(kit.recovered(epoch=3), node_id=100, jitter=0.0)
    script.respond(script.to(1), kit.fetched(1, 3, high_watermark=-1))
    assert script.state == ("Follower", 3, 1)


def test_a_leader_that_is_no_voter_is_not_believed() -> None:
    script = Script(kit.recovered(epoch=3), node_id=100)
    asked = next(iter(script.sent.values()))
    script.respond(asked, kit.fetched(100, 5, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert script.state == ("Unattached", 5, -1)


def test_a_response_that_was_not_asked_for_is_as_good_as_none() -> None:
    script = follower()
    script.respond(script.to(2), kit.voted(True, 3))
    assert script.effects == kit.NOTHING
    script.at(20)
    assert [to for to, _ in script.requests(FetchRequest)] == [2]
