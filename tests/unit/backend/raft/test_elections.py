"""Elections, as scripts: what comes in, what is said and kept on disk."""

import pytest

from backend.raft.effects import ElectionState, LeaderAndEpoch, SaveElection
from backend.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse, FetchRequest, VoteRequest, VoteResponse
from codec.batches import read_batch
from codec.control_records import ControlType, decode_control_record
from codec.error_codes import ErrorCode
from tests.unit.backend.raft import kit
from tests.unit.backend.raft.kit import Script

# Time-outs are drawn in the middle: an election takes 1500 ms, a fetch timeout is 2000 ms.


def saved(script: Script) -> list[ElectionState]:
    return [persist.election for persist in script.persisted() if isinstance(persist, SaveElection)]


def following(leader: int = 2, epoch: int = 3, **disk: object) -> Script:
    """A voter whose leader has answered it."""
    script = Script(kit.recovered(epoch=epoch, leader=leader, **disk))  # type: ignore[arg-type]
    script.respond(script.to(leader), kit.fetched(leader, epoch))
    return script


def test_a_voter_without_a_leader_asks_for_pre_votes_first_and_changes_nothing() -> None:
    script = Script(kit.recovered(epoch=3, log=[1, 3]))
    script.at(1499)
    assert script.state == ("Unattached", 3, -1)
    script.at(1500)
    assert script.state == ("Prospective", 3, -1)
    assert script.persisted() == ()
    asked = kit.vote(1, 3, last_epoch=3, end=2, pre_vote=True)
    assert script.requests(VoteRequest) == [(2, asked), (3, asked)]


def test_with_a_majority_behind_it_a_voter_begins_an_epoch_and_votes_for_itself() -> None:
    script = Script(kit.recovered(epoch=3, log=[1, 3]))
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 3))
    assert script.state == ("Candidate", 4, -1)
    assert saved(script) == [ElectionState(leader_epoch=4, voted_id=1)]
    asked = kit.vote(1, 4, last_epoch=3, end=2)
    assert script.requests(VoteRequest) == [(2, asked), (3, asked)]


def test_a_pre_vote_counts_though_the_voter_is_in_an_older_epoch() -> None:
    script = Script(kit.recovered(epoch=3))
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 1))
    assert script.state == ("Candidate", 4, -1)


def test_a_majority_of_votes_makes_a_leader_whose_first_record_says_so() -> None:
    script = Script(kit.recovered(epoch=3, log=[1, 3]))
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 3))
    script.respond(script.to(3), kit.voted(True, 4))
    assert script.state == ("Leader", 4, 1)
    assert saved(script) == [ElectionState(leader_epoch=4, leader_id=1, voted_id=1)]
    assert kit.appended(script.effects) == [(2, 2, 4)]
    assert script.effects.leader == LeaderAndEpoch(leader_id=1, leader_epoch=4)
    (record,) = read_batch(kit.appended_bytes(script.effects)[0])[0].records
    change = decode_control_record(record.key, record.value)
    assert change.type is ControlType.LEADER_CHANGE
    assert change.value["leader_id"] == 1
    assert [voter["voter_id"] for voter in change.value["voters"]] == [1, 2, 3]
    assert [voter["voter_id"] for voter in change.value["granting_voters"]] == [1, 3]
    assert script.asked_to_begin() == [(2, kit.begin(1, 4)), (3, kit.begin(1, 4))]


def test_a_vote_of_an_earlier_election_does_not_count() -> None:
    script = Script(kit.recovered(epoch=3), voters=5)
    script.at(1500)
    early = script.to(5)
    for voter in (2, 3):
        script.respond(script.to(voter), kit.voted(True, 3))
    assert script.state == ("Candidate", 4, -1)
    script.respond(script.to(2), kit.voted(True, 4))
    script.respond(early, kit.voted(True, 3))
    assert script.state == ("Candidate", 4, -1)
    script.respond(script.to(5), kit.voted(True, 4))
    assert script.state == ("Leader", 4, 1)


def test_the_same_vote_twice_is_one_vote() -> None:
    script = Script(voters=5)
    script.at(1500)
    for _ in range(2):
        script.respond(script.to(2), kit.voted(True, 0))
    assert script.state == ("Prospective", 0, -1)


def test_a_lost_pre_vote_leads_back_to_the_leader_that_is_still_known() -> None:
    script = following()
    script.at(2000)
    assert script.state == ("Prospective", 3, 2)
    script.respond(script.to(3), kit.voted(False, 3, leader=2))
    script.respond(script.to(2), kit.voted(False, 3, leader=2))
    assert script.state == ("Follower", 3, 2)
    assert script.persisted() == ()
    assert [to for to, _ in script.requests(FetchRequest)] == [2]


def test_a_pre_vote_without_an_answer_leads_back_too() -> None:
    script = following()
    script.at(3499)
    assert script.state == ("Prospective", 3, 2)
    script.at(3500)
    assert script.state == ("Follower", 3, 2)


def test_a_lost_pre_vote_without_a_leader_is_tried_again_later() -> None:
    script = Script()
    script.at(1500)
    for voter in (2, 3):
        script.respond(script.to(voter), kit.voted(False, 0))
    assert script.state == ("Unattached", 0, -1)
    script.at(3000)
    assert script.state == ("Prospective", 0, -1)


def test_who_refuses_a_pre_vote_and_names_the_leader_is_believed_when_none_was_known() -> None:
    script = Script(kit.recovered(epoch=3))
    script.at(1500)
    script.respond(script.to(2), kit.voted(False, 3, leader=2))
    assert script.state == ("Follower", 3, 2)
    assert saved(script) == [ElectionState(leader_epoch=3, leader_id=2)]


def test_a_refusal_from_a_later_epoch_moves_the_voter_there() -> None:
    script = Script(kit.recovered(epoch=3))
    script.at(1500)
    script.respond(script.to(2), kit.voted(False, 6, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert script.state == ("Unattached", 6, -1)
    assert saved(script) == [ElectionState(leader_epoch=6)]


def test_a_lost_election_is_followed_by_a_pause_and_a_new_pre_vote() -> None:
    script = Script(jitter=0.3)
    script.at(1300)
    script.respond(script.to(2), kit.voted(True, 0))
    for voter in (2, 3):
        script.respond(script.to(voter), kit.voted(False, 1))
    assert script.state == ("Candidate", 1, -1)
    script.at(1599)
    assert script.state == ("Candidate", 1, -1)
    script.at(1600)
    assert script.state == ("Prospective", 1, -1)


def test_an_election_without_a_result_is_given_up() -> None:
    script = Script()
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 0))
    script.at(2999)
    assert script.state == ("Candidate", 1, -1)
    script.at(3000)
    assert script.state == ("Prospective", 1, -1)


def test_a_voter_that_cannot_be_reached_is_asked_again_after_a_pause() -> None:
    script = Script()
    script.at(1500)
    script.fail(script.to(2))
    assert script.requests(VoteRequest) == []
    script.at(1519)
    assert script.requests(VoteRequest) == []
    script.at(1520)
    assert [to for to, _ in script.requests(VoteRequest)] == [2]


def test_who_has_answered_is_asked_no_more_who_has_not_is_asked_again() -> None:
    script = Script(voters=5, request_timeout_ms=400)
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 0))
    script.respond(script.to(3), kit.voted(False, 0))
    script.at(1920)
    assert [to for to, _ in script.requests(VoteRequest)] == [4, 5]


def test_once_an_election_is_decided_nobody_is_asked_for_the_last_one() -> None:
    script = Script(voters=5)
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 0))
    script.fail(script.to(5))
    script.now_ms += 20
    script.respond(script.to(3), kit.voted(True, 0))
    assert script.requests(VoteRequest) == [(voter, kit.vote(1, 1)) for voter in (2, 3, 4, 5)]
    script.respond(script.to(2), kit.voted(True, 1))
    script.fail(script.to(5))
    script.now_ms += 20
    script.respond(script.to(3), kit.voted(True, 1))
    assert script.state == ("Leader", 1, 1)
    assert script.requests(VoteRequest) == []


def test_a_vote_is_on_disk_with_the_answer_and_not_given_to_another() -> None:
    script = Script(kit.recovered(epoch=3))
    assert script.asked(kit.vote(2, 4), VoteResponse) == kit.voted(True, 4)
    assert saved(script) == [ElectionState(leader_epoch=4), ElectionState(leader_epoch=4, voted_id=2)]
    assert script.asked(kit.vote(3, 4), VoteResponse) == kit.voted(False, 4)
    assert script.asked(kit.vote(2, 4), VoteResponse) == kit.voted(True, 4)


def test_a_restarted_voter_remembers_its_vote() -> None:
    script = Script(kit.recovered(epoch=4, voted=2))
    assert script.state == ("Unattached", 4, -1)
    assert script.asked(kit.vote(3, 4), VoteResponse) == kit.voted(False, 4)
    assert script.asked(kit.vote(2, 4), VoteResponse) == kit.voted(True, 4)


def test_a_vote_makes_the_voter_wait_for_the_election() -> None:
    script = Script(kit.recovered(epoch=3))
    script.at(1400)
    script.receive(kit.vote(2, 4))
    script.at(2899)
    assert script.state == ("Unattached", 4, -1)
    script.at(2900)
    assert script.state == ("Prospective", 4, -1)


def test_a_vote_that_is_refused_puts_off_nothing() -> None:
    script = Script(kit.recovered(epoch=3, log=[3]))
    script.at(1400)
    assert script.asked(kit.vote(2, 4), VoteResponse) == kit.voted(False, 4)
    assert script.state == ("Unattached", 4, -1)
    script.at(1500)
    assert script.state == ("Prospective", 4, -1)


def test_a_candidate_of_an_older_epoch_learns_the_epoch() -> None:
    script = following(epoch=5)
    for pre_vote in (False, True):
        answer = script.asked(kit.vote(3, 4, pre_vote=pre_vote), VoteResponse)
        assert answer == kit.voted(False, 5, leader=2, error=ErrorCode.FENCED_LEADER_EPOCH)
    assert script.state == ("Follower", 5, 2)


@pytest.mark.parametrize("epoch", [3, 9])
def test_who_hears_from_its_leader_refuses_a_pre_vote_and_stays(epoch: int) -> None:
    script = following(epoch=3)
    assert script.asked(kit.vote(3, epoch, pre_vote=True), VoteResponse) == kit.voted(False, 3, leader=2)
    assert script.state == ("Follower", 3, 2)
    assert script.persisted() == ()


def test_who_has_not_heard_from_its_leader_grants_a_pre_vote_and_stays() -> None:
    script = Script(kit.recovered(epoch=3, leader=2))
    assert script.asked(kit.vote(3, 3, pre_vote=True), VoteResponse) == kit.voted(True, 3, leader=2)
    assert script.state == ("Follower", 3, 2)


def test_a_pre_vote_may_be_granted_to_many_also_after_a_vote() -> None:
    script = Script(kit.recovered(epoch=4, voted=2))
    for candidate in (2, 3):
        assert script.asked(kit.vote(candidate, 4, pre_vote=True), VoteResponse).vote_granted
    assert script.persisted() == ()


def test_a_pre_vote_needs_an_up_to_date_log() -> None:
    script = Script(kit.recovered(epoch=4, log=[1, 4]))
    assert not script.asked(kit.vote(2, 4, last_epoch=3, end=9, pre_vote=True), VoteResponse).vote_granted
    assert script.asked(kit.vote(2, 4, last_epoch=4, end=2, pre_vote=True), VoteResponse).vote_granted


def test_a_leader_refuses_pre_votes_and_votes_of_its_epoch() -> None:
    script = Script().elected(2)
    for pre_vote in (False, True):
        answer = script.asked(kit.vote(3, 1, last_epoch=1, end=9, pre_vote=pre_vote), VoteResponse)
        assert answer == kit.voted(False, 1, leader=1)


def test_a_leader_gives_way_to_a_candidate_of_a_later_epoch() -> None:
    script = Script().elected(2)
    assert script.asked(kit.vote(3, 2, last_epoch=1, end=1), VoteResponse) == kit.voted(True, 2)
    assert script.state == ("Unattached", 2, -1)


def test_a_leader_that_gives_way_to_nobody_in_particular_waits_as_long_as_an_election_takes() -> None:
    script = Script().elected(2)
    assert not script.asked(kit.vote(3, 2), VoteResponse).vote_granted
    assert script.state == ("Unattached", 2, -1)
    assert script.replica.deadline_ms == script.now_ms + 1500


def test_a_vote_is_kept_on_disk_while_its_epoch_lasts() -> None:
    script = Script(kit.recovered(epoch=3))
    script.receive(kit.vote(2, 4))
    assert script.effects.leader == LeaderAndEpoch(leader_id=-1, leader_epoch=4)
    script.receive(kit.begin(2, 4))
    assert saved(script) == [ElectionState(leader_epoch=4, leader_id=2, voted_id=2)]
    script.receive(kit.begin(3, 5))
    assert saved(script) == [ElectionState(leader_epoch=5, leader_id=3)]


def test_a_prospective_voter_that_votes_for_another_waits() -> None:
    script = Script()
    script.at(1500)
    assert script.asked(kit.vote(2, 1), VoteResponse).vote_granted
    assert script.state == ("Unattached", 1, -1)


def test_strangers_and_observers_take_no_part() -> None:
    voter, observer = Script(), Script(node_id=100)
    for script, candidate in ((voter, 100), (observer, 2)):
        answer = script.asked(kit.vote(candidate, 5), VoteResponse)
        assert answer == kit.voted(False, 0, error=ErrorCode.INCONSISTENT_VOTER_SET)


def test_the_only_voter_elects_itself_at_once_and_commits_alone() -> None:
    script = Script(kit.recovered(epoch=3, leader=1, log=[3]), voters=1)
    assert script.state == ("Leader", 4, 1)
    assert script.effects.high_watermark == 2
    assert script.replica.deadline_ms > 10**15
    assert script.effects.requests == ()


def test_a_restarted_leader_leads_its_epoch_no_more_and_says_so() -> None:
    script = Script(kit.recovered(epoch=3, leader=1, voted=1, log=[3]))
    assert script.state == ("Resigned", 3, -1)
    assert script.requests(EndQuorumEpochRequest) == [(2, kit.end(1, 3)), (3, kit.end(1, 3))]
    assert script.asked(kit.vote(2, 3, last_epoch=3, end=1), VoteResponse) == kit.voted(False, 3)
    script.at(1500)
    assert script.state == ("Unattached", 3, -1)
    assert script.asked(kit.vote(2, 3, last_epoch=3, end=1), VoteResponse) == kit.voted(False, 3)


def test_a_restarted_candidate_waits_and_votes_for_nobody_else() -> None:
    script = Script(kit.recovered(epoch=3, voted=1))
    assert script.state == ("Unattached", 3, -1)
    assert not script.asked(kit.vote(2, 3), VoteResponse).vote_granted


def test_an_epoch_that_only_the_log_knows_is_taken_over() -> None:
    script = Script(kit.recovered(epoch=3, leader=2, log=[3, 5]))
    assert script.state == ("Unattached", 5, -1)
    assert saved(script) == [ElectionState(leader_epoch=5)]


def test_a_leader_that_stops_names_the_others_by_how_much_they_have() -> None:
    script = Script(voters=4).elected(2, 3)
    script.propose(1)
    script.acknowledge(3)
    script.acknowledge(4, 1)
    script.resign()
    assert script.state == ("Resigned", 1, -1)
    told = kit.end(1, 1, 3, 4, 2)
    assert script.requests(EndQuorumEpochRequest) == [(2, told), (3, told), (4, told)]
    script.respond(script.to(2), EndQuorumEpochResponse(leader_id=-1, leader_epoch=1))
    script.fail(script.to(3))
    script.at(script.now_ms + 20)
    assert [to for to, _ in script.requests(EndQuorumEpochRequest)] == [3]


def test_only_a_leader_resigns() -> None:
    script = following()
    script.resign()
    assert script.state == ("Follower", 3, 2)


def test_whom_a_leader_names_first_stands_at_once_without_asking() -> None:
    script = following()
    answer = script.asked(kit.end(2, 3, 1, 3), EndQuorumEpochResponse)
    assert answer.error_code is ErrorCode.NONE
    assert script.state == ("Candidate", 4, -1)
    assert saved(script)[-1] == ElectionState(leader_epoch=4, voted_id=1)
    assert script.requests(VoteRequest) == [(2, kit.vote(1, 4)), (3, kit.vote(1, 4))]


@pytest.mark.parametrize(("successors", "delay_ms"), [((3, 1), 750), ((3,), 1500)])
def test_others_give_the_first_a_lead(successors: tuple[int, ...], delay_ms: int) -> None:
    script = following()
    script.receive(kit.end(2, 3, *successors))
    assert script.state == ("Unattached", 3, -1)
    assert script.asked(kit.vote(3, 3, pre_vote=True), VoteResponse).vote_granted
    script.at(delay_ms - 1)
    assert script.state == ("Unattached", 3, -1)
    script.at(delay_ms)
    assert script.state == ("Prospective", 3, -1)


def test_a_vote_stays_given_after_the_leader_resigned() -> None:
    script = Script(kit.recovered(epoch=3, leader=2, voted=2))
    script.receive(kit.end(2, 3, 3))
    assert script.state == ("Unattached", 3, -1)
    assert not script.asked(kit.vote(3, 3), VoteResponse).vote_granted


def test_an_observer_forgets_a_leader_that_resigned_and_does_not_stand() -> None:
    script = Script(kit.recovered(epoch=3, leader=2), node_id=100)
    script.receive(kit.end(2, 3, 100))
    assert script.state == ("Unattached", 3, -1)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (kit.end(2, 2, 1), ErrorCode.FENCED_LEADER_EPOCH),
        (kit.end(100, 4, 1), ErrorCode.INCONSISTENT_VOTER_SET),
        (kit.end(1, 4, 1), ErrorCode.INVALID_REQUEST),
        (kit.end(3, 3, 1), ErrorCode.NONE),
    ],
)
def test_a_resignation_of_somebody_else_changes_nothing(request_: EndQuorumEpochRequest, error: ErrorCode) -> None:
    script = following()
    assert script.asked(request_, EndQuorumEpochResponse).error_code is error
    assert script.state == ("Follower", 3, 2)


def test_a_candidate_does_not_hear_of_its_own_epoch_from_another_that_resigns() -> None:
    script = Script(kit.recovered(epoch=3))
    script.at(1500)
    script.respond(script.to(2), kit.voted(True, 3))
    script.receive(kit.end(2, 4, 1))
    assert script.state == ("Candidate", 4, -1)


def test_a_resignation_in_a_later_epoch_is_taken_over() -> None:
    script = following()
    script.receive(kit.end(3, 5, 2, 1))
    assert script.state == ("Unattached", 5, -1)


def test_the_clock_may_go_back_without_stopping_the_replica() -> None:
    script = Script()
    script.at(1400)
    script.now_ms = 0
    script.receive(kit.vote(100, 0))
    assert script.replica.deadline_ms == 1500
    script.receive(kit.vote(2, 1))
    assert script.replica.deadline_ms >= 1400 + 1000
    script.to_deadline()
    assert script.state == ("Prospective", 1, -1)
