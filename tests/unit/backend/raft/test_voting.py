"""Who gets a vote, against what the paper says in words."""

from hypothesis import given
from hypothesis import strategies as st

from backend.raft import voting
from backend.raft.effects import ElectionState
from tests.unit.backend.raft import kit

LOGS = st.lists(st.integers(1, 4), max_size=6).map(sorted)


@given(LOGS, LOGS)
def test_a_log_is_up_to_date_if_its_last_epoch_is_later_or_it_is_as_long_in_the_same(
    theirs: list[int], ours: list[int]
) -> None:
    their_last, our_last = theirs[-1] if theirs else 0, ours[-1] if ours else 0
    request = kit.vote(2, 9, last_epoch=their_last, end=len(theirs))
    expected = their_last > our_last or (their_last == our_last and len(theirs) >= len(ours))
    assert voting.is_up_to_date(request, our_last, len(ours)) is expected


@given(LOGS, st.data())
def test_a_log_that_has_all_of_ours_is_up_to_date(ours: list[int], data: st.DataObject) -> None:
    more = data.draw(st.lists(st.integers(ours[-1] if ours else 1, 5), max_size=3).map(sorted))
    theirs = [*ours, *more]
    request = kit.vote(2, 9, last_epoch=theirs[-1] if theirs else 0, end=len(theirs))
    assert voting.is_up_to_date(request, ours[-1] if ours else 0, len(ours))


@given(st.lists(st.tuples(st.integers(2, 5), st.booleans()), max_size=20))
def test_a_voter_supports_one_candidate_an_epoch(asked: list[tuple[int, bool]]) -> None:
    election, supported = ElectionState(leader_epoch=7), set()
    for candidate, up_to_date in asked:
        if voting.may_grant_vote(election, kit.vote(candidate, 7), up_to_date):
            supported.add(candidate)
            election = ElectionState(leader_epoch=7, voted_id=candidate)
        elif election.voted_id == -1:
            assert not up_to_date
    assert len(supported) <= 1


def test_a_vote_is_given_again_to_the_same_candidate() -> None:
    election = ElectionState(leader_epoch=7, voted_id=3)
    assert voting.may_grant_vote(election, kit.vote(3, 7), up_to_date=False)
    assert not voting.may_grant_vote(election, kit.vote(2, 7), up_to_date=True)


def test_nobody_is_voted_for_once_the_epoch_has_a_leader() -> None:
    election = ElectionState(leader_epoch=7, leader_id=3, voted_id=3)
    assert not voting.may_grant_vote(election, kit.vote(2, 7), up_to_date=True)
    assert not voting.may_grant_vote(election, kit.vote(3, 7), up_to_date=True)


def test_a_pre_vote_needs_a_good_log_and_a_silent_leader() -> None:
    assert voting.may_grant_pre_vote(hears_leader=False, up_to_date=True)
    assert not voting.may_grant_pre_vote(hears_leader=True, up_to_date=True)
    assert not voting.may_grant_pre_vote(hears_leader=False, up_to_date=False)


@given(st.floats(0, 1, exclude_max=True), st.permutations([1, 2, 3, 4, 5]))
def test_successors_stand_one_after_another(jitter: float, order: list[int]) -> None:
    delays = [voting.successor_delay_ms(node, order[:4], 1000, jitter) for node in order]
    assert delays[0] == 0
    assert all(delay > 0 for delay in delays[1:])
    assert delays == sorted(delays)
    assert delays[4] < 2000
