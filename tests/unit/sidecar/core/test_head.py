"""Which answers about the head are believed."""

import pytest

from sidecar.core.head import LEASE_MS, QuorumAnswer, Verdict, Voter, advanced, broker_max, judge, lease_holds
from sidecar.core.ids import NodeId, Seq
from sidecar.core.view import Broker, Head

NOW_MS = 50_000


def answer(
    *, high_watermark: int = 11, epoch: int = 5, ages_ms: tuple[int | None, ...] = (100, 100), leader_id: int = 1
) -> QuorumAnswer:
    """Of leader 1, whose other voters fetched so long ago; None: never."""
    voters = [Voter(replica_id=1, last_fetch_ms=-1, last_caught_up_ms=NOW_MS)]
    for replica_id, age_ms in enumerate(ages_ms, start=2):
        fetched_ms = -1 if age_ms is None else NOW_MS - age_ms
        voters.append(Voter(replica_id=replica_id, last_fetch_ms=fetched_ms, last_caught_up_ms=fetched_ms))
    return QuorumAnswer(leader_id=leader_id, leader_epoch=epoch, high_watermark=high_watermark, voters=tuple(voters))


def known(offset: int = 10, *, epoch: int = 5, asked: int = 20) -> Head:
    return Head(offset=offset, leader_epoch=epoch, asked=Seq(asked))


@pytest.mark.parametrize(
    ("ages_ms", "holds"),
    [
        ((0, 0), True),
        ((LEASE_MS, None), True),
        ((LEASE_MS + 1, None), False),
        ((None, None), False),
        ((2200, 2400), False),
        ((), True),
        ((0,), True),
        ((LEASE_MS + 1,), False),
        ((0, 0, None, None), True),
        ((0, None, None, None), False),
    ],
)
def test_the_lease_needs_a_majority_with_the_leader(ages_ms: tuple[int | None, ...], holds: bool) -> None:
    assert lease_holds(answer(ages_ms=ages_ms)) is holds


def test_a_leader_that_is_no_voter_or_has_no_clock_holds_no_lease() -> None:
    assert not lease_holds(answer(leader_id=9))
    timeless = Voter(replica_id=1, last_fetch_ms=-1, last_caught_up_ms=-1)
    assert not lease_holds(QuorumAnswer(leader_id=1, leader_epoch=5, high_watermark=11, voters=(timeless,)))


@pytest.mark.parametrize(
    ("given", "before", "verdict"),
    [
        (answer(), None, Verdict.CONFIRMED),
        (answer(), known(), Verdict.CONFIRMED),
        (answer(high_watermark=0), None, Verdict.CONFIRMED),
        (answer(high_watermark=-1), None, Verdict.UNKNOWN),
        (answer(high_watermark=-1, epoch=6), known(), Verdict.UNKNOWN),
        (answer(ages_ms=(2200, 2400)), known(), Verdict.NO_LEASE),
        (answer(epoch=4), known(), Verdict.DEPOSED),
        (answer(epoch=4, high_watermark=99), known(), Verdict.DEPOSED),
        (answer(epoch=6), known(), Verdict.CONFIRMED),
        (answer(epoch=6, high_watermark=10), known(), Verdict.REGRESSED),
        (answer(epoch=6, high_watermark=10, ages_ms=(2200, 2400)), known(), Verdict.NO_LEASE),
        (answer(high_watermark=10), known(), Verdict.CONFIRMED),
        (answer(high_watermark=10), known(epoch=-1), Verdict.CONFIRMED),
    ],
)
def test_verdicts(given: QuorumAnswer, before: Head | None, verdict: Verdict) -> None:
    assert judge(before, given) is verdict


def test_the_high_watermark_is_exclusive() -> None:
    assert advanced(None, answer(high_watermark=11), Seq(30)) == known(10, asked=30)


def test_answers_that_overtake_each_other_move_neither_offset_nor_moment_back() -> None:
    assert advanced(known(10, asked=40), answer(high_watermark=8), Seq(30)) == known(10, asked=40)
    assert advanced(known(10, asked=20), answer(high_watermark=13), Seq(30)) == known(12, asked=30)


def broker(node_id: int, visible: int, proven: int, *, up: bool = True) -> Broker:
    return Broker(node_id=NodeId(node_id), up=up, visible=visible, proven=Seq(proven))


def test_broker_max_is_the_highest_position_as_of_the_oldest_probe() -> None:
    assert broker_max([broker(1, 10, 30), broker(2, 12, 25)], None) == Head(offset=12, leader_epoch=-1, asked=Seq(25))


def test_broker_max_waits_for_every_live_broker_and_ignores_the_dead() -> None:
    assert broker_max([broker(1, 10, 30), broker(2, -1, 0)], None) is None
    assert broker_max([broker(1, 10, 30), broker(2, 99, 9, up=False)], None) == Head(
        offset=10, leader_epoch=-1, asked=Seq(30)
    )


def test_nobody_alive_is_never_caught_up() -> None:
    assert broker_max([], None) is None
    assert broker_max([broker(1, 10, 30, up=False)], None) is None


def test_broker_max_never_goes_back() -> None:
    assert broker_max([broker(1, 10, 30)], known(15, asked=40)) == Head(offset=15, leader_epoch=-1, asked=Seq(40))


def response(*, error_code: int = 0, **voter: int) -> dict[str, object]:
    partition = {
        "error_code": error_code,
        "leader_id": 1,
        "leader_epoch": 5,
        "high_watermark": 11,
        "current_voters": [{"replica_id": 1, **voter}],
    }
    return {"topics": [{"partitions": [partition]}]}


def test_a_decoded_answer_is_read() -> None:
    read = QuorumAnswer.from_response(response(last_fetch_timestamp=3, last_caught_up_timestamp=4))
    assert read is not None
    assert (read.leader_epoch, read.high_watermark) == (5, 11)
    assert read.voters == (Voter(replica_id=1, last_fetch_ms=3, last_caught_up_ms=4),)


def test_version_0_has_no_timestamps_and_so_no_lease() -> None:
    read = QuorumAnswer.from_response(response())
    assert read is not None
    assert judge(None, read) is Verdict.NO_LEASE


def test_an_answer_with_an_error_or_without_the_partition_says_nothing() -> None:
    assert QuorumAnswer.from_response(response(error_code=3)) is None
    assert QuorumAnswer.from_response({"topics": []}) is None
