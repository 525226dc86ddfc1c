"""When which broker is asked for its position, and who for the head."""

from sidecar.core.ids import NodeId, Seq
from sidecar.core.probing import HEDGE_MS, RETRY_MS, HeadProbes, Pace, PositionProbes

PACE = Pace(idle_interval_ms=1000, min_interval_ms=2, timeout_ms=500)
ONE, TWO = NodeId(1), NodeId(2)


def test_a_new_connection_is_probed_at_once_and_then_once_a_second() -> None:
    probes = PositionProbes(PACE)
    probes.opened(ONE)
    assert probes.due(0, Seq(1)) == [ONE]
    assert probes.due(5, Seq(2)) == [], "one is under way"
    assert probes.answered(ONE, Seq(1))
    assert probes.wakeup_ms() == 1000
    assert probes.due(999, Seq(3)) == []
    assert probes.due(1000, Seq(4)) == [ONE]


def test_while_anyone_waits_the_next_probe_follows_the_answer() -> None:
    probes = PositionProbes(PACE)
    probes.opened(ONE)
    probes.want(frozenset({ONE}))
    probes.due(0, Seq(1))
    assert probes.due(10, Seq(2)) == []
    probes.answered(ONE, Seq(1))
    assert probes.due(10, Seq(3)) == [ONE]
    probes.answered(ONE, Seq(3))
    assert probes.due(11, Seq(4)) == [], "they keep their distance"
    assert probes.due(12, Seq(5)) == [ONE]


def test_an_answer_to_another_question_is_not_taken() -> None:
    probes = PositionProbes(PACE)
    assert not probes.answered(ONE, Seq(1))
    probes.opened(ONE)
    probes.due(0, Seq(1))
    assert not probes.answered(ONE, Seq(2))
    probes.closed(ONE)
    probes.opened(ONE)
    assert not probes.answered(ONE, Seq(1)), "it was asked on the former connection"


def test_a_broker_that_does_not_answer_is_overdue() -> None:
    probes = PositionProbes(PACE)
    probes.opened(ONE)
    probes.due(0, Seq(1))
    assert probes.wakeup_ms() == 500
    assert probes.overdue(499) == []
    assert probes.overdue(500) == [ONE]
    probes.closed(ONE)
    assert probes.overdue(500) == []
    assert probes.wakeup_ms() == float("inf")


def test_the_head_is_asked_for_through_one_broker_at_a_time() -> None:
    probes = HeadProbes(PACE)
    assert probes.due(0, Seq(1), []) is None
    assert probes.due(0, Seq(1), [TWO, ONE]) == ONE
    assert probes.due(0, Seq(2), [ONE, TWO]) is None
    assert probes.answered(ONE, Seq(1))
    assert not probes.answered(ONE, Seq(1))
    assert probes.due(999, Seq(3), [ONE, TWO]) is None
    assert probes.due(1000, Seq(4), [ONE, TWO]) == ONE


def test_an_answer_that_takes_long_is_asked_for_through_another_broker_if_somebody_waits() -> None:
    probes = HeadProbes(PACE)
    probes.due(0, Seq(1), [ONE, TWO])
    assert probes.due(HEDGE_MS, Seq(2), [ONE, TWO]) is None, "nobody waits"
    probes.want(True)
    assert probes.wakeup_ms([ONE, TWO]) == HEDGE_MS
    assert probes.due(HEDGE_MS - 1, Seq(2), [ONE, TWO]) is None
    assert probes.due(HEDGE_MS, Seq(3), [ONE, TWO]) == TWO
    assert probes.due(2 * HEDGE_MS, Seq(4), [ONE, TWO]) is None, "nobody is left to ask"
    assert probes.wakeup_ms([ONE, TWO]) == 500, "so nothing is to be done before one is overdue"


def test_a_question_that_is_not_answered_is_given_up() -> None:
    probes = HeadProbes(PACE)
    probes.due(0, Seq(1), [ONE])
    assert probes.overdue(499) == []
    assert probes.overdue(500) == [(ONE, Seq(1))]
    assert not probes.answered(ONE, Seq(1))


def test_after_an_answer_that_did_not_count_another_broker_is_asked_a_little_later() -> None:
    probes = HeadProbes(PACE)
    probes.want(True)
    probes.due(0, Seq(1), [ONE, TWO])
    probes.answered(ONE, Seq(1))
    probes.back_off(10)
    assert probes.due(10 + RETRY_MS - 1, Seq(2), [ONE, TWO]) is None
    assert probes.due(10 + RETRY_MS, Seq(3), [ONE, TWO]) == TWO


def test_the_broker_that_relayed_a_write_is_asked_first_and_once() -> None:
    probes = HeadProbes(PACE)
    probes.want(True)
    probes.prefer(TWO)
    assert probes.due(0, Seq(1), [ONE, TWO]) == TWO
    probes.answered(TWO, Seq(1))
    assert probes.due(2, Seq(2), [ONE, TWO]) == ONE


def test_a_lost_connection_takes_its_question_with_it() -> None:
    probes = HeadProbes(PACE)
    probes.due(0, Seq(1), [ONE])
    probes.lost(ONE)
    assert not probes.answered(ONE, Seq(1))
    assert probes.overdue(1000) == []
