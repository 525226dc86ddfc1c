"""Promises and the numbers they become."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.bounds import GONE, Bound, Why, proven, shown
from sidecar.core.ids import NEVER, NodeId, Seq
from sidecar.core.view import Broker, Channel, Head, Load


def broker(node_id: int = 1, **changes: object) -> Broker:
    known = Broker(node_id=NodeId(node_id), up=True, visible=10, effective=8, proven=Seq(50))
    return replace(known, **changes)  # type: ignore[arg-type]


def channel(node_id: int = 1, *, established: int = 20, shown: int = -1) -> Channel:
    return Channel(channel_id=1, node_id=NodeId(node_id), established=Seq(established), shown=shown, load=Load())


def head(offset: int, *, asked: int) -> Head:
    return Head(offset=offset, leader_epoch=1, asked=Seq(asked))


def test_a_head_redeems_only_what_was_promised_strictly_before_it_was_asked_for() -> None:
    bound = Bound()
    bound.after_head(Seq(30), Why.OWN_WRITE)
    for too_early in (29, 30):
        bound.redeem_head(head(99, asked=too_early))
        assert bound.head_promised == 30
    bound.redeem_head(head(12, asked=31))
    assert (bound.head_promised, bound.visible, bound.effective) == (NEVER, 12, -1)


def test_a_later_promise_includes_an_earlier_one_and_not_the_reverse() -> None:
    bound = Bound()
    bound.after_head(Seq(30), Why.OWN_WRITE)
    bound.after_head(Seq(20), Why.NEW_SESSION)
    assert (bound.head, bound.head_why) == (30, Why.OWN_WRITE)
    bound.after_head(Seq(40), Why.LINEARIZABLE)
    assert (bound.head, bound.head_why) == (40, Why.LINEARIZABLE)


def test_an_effective_promise_is_redeemed_at_both_depths() -> None:
    bound = Bound()
    bound.after_head(Seq(30), Why.OWN_WRITE, effective=True)
    bound.after_head(Seq(40), Why.OWN_WRITE)
    bound.redeem_head(head(12, asked=35))
    assert (bound.effective, bound.head_promised) == (12, 40), "the later, visible one still waits"
    bound.redeem_head(head(14, asked=45))
    assert (bound.visible, bound.effective, bound.head_promised) == (14, 12, NEVER)


def test_a_number_is_maximised_and_never_overwritten() -> None:
    bound = Bound()
    bound.visible = 20
    bound.after_head(Seq(30), Why.OWN_WRITE)
    bound.redeem_head(head(12, asked=31))
    bound.after_broker(broker(), Seq(40))
    bound.redeem_broker(broker())
    assert bound.visible == 20


def test_a_broker_redeems_its_promise_by_a_probe_sent_later_on_the_same_incarnation() -> None:
    bound = Bound()
    bound.after_broker(broker(), Seq(60))
    bound.redeem_broker(broker(proven=Seq(60)))
    bound.redeem_broker(broker(proven=Seq(61), incarnation=1))
    assert list(bound.brokers) == [1]
    bound.redeem_broker(broker(proven=Seq(61)))
    assert (bound.brokers, bound.visible) == ({}, 10)


def test_a_promise_on_an_incarnation_that_ended_becomes_one_on_the_head() -> None:
    bound = Bound()
    bound.after_broker(broker(), Seq(60))
    bound.give_up_broker(NodeId(1), 0)
    assert list(bound.brokers) == [1], "that is the present one"
    bound.give_up_broker(NodeId(1), GONE)
    assert (bound.brokers, bound.head, bound.head_why) == ({}, 60, Why.LOST_BROKER)


def test_a_promise_on_the_next_incarnation_keeps_the_former_one_as_a_promise_on_the_head() -> None:
    bound = Bound()
    bound.after_broker(broker(), Seq(60))
    bound.after_broker(broker(incarnation=1), Seq(70))
    assert (bound.head, bound.brokers[NodeId(1)].seq) == (60, 70)


def test_the_head_redeems_broker_promises_made_before_it_was_asked_for() -> None:
    bound = Bound()
    bound.after_head(Seq(30), Why.OWN_WRITE)
    bound.after_broker(broker(1), Seq(35))
    bound.after_broker(broker(2), Seq(45))
    bound.redeem_head(head(12, asked=40))
    assert list(bound.brokers) == [2]


# What is proven


def test_a_position_speaks_for_a_connection_only_if_its_probe_was_sent_after_that_was_open() -> None:
    bound = Bound()
    bound.visible = 10
    assert shown(bound, broker(), channel(established=49))
    assert not shown(bound, broker(), channel(established=50))
    assert not shown(bound, broker(), channel(established=51))


def test_what_a_connection_showed_itself_needs_no_probe() -> None:
    bound = Bound()
    bound.visible = 10
    assert shown(bound, broker(), channel(established=60, shown=10))
    assert not shown(bound, broker(), channel(established=60, shown=9))


def test_a_pending_promise_on_the_head_is_proven_by_nobody() -> None:
    bound = Bound()
    bound.after_head(Seq(1), Why.OWN_WRITE)
    assert not shown(bound, broker(visible=1000), channel())


def test_a_promise_on_a_broker_is_free_there_and_only_there() -> None:
    bound = Bound()
    bound.after_broker(broker(1), Seq(60))
    assert shown(bound, broker(1), channel(1))
    assert not shown(bound, broker(1, incarnation=1), channel(1))
    assert not shown(bound, broker(1), channel(1, established=55)), "it may be another process there"
    assert not shown(bound, broker(2, visible=1000), channel(2))


def test_it_is_not_free_where_the_effect_counts() -> None:
    bound = Bound()
    bound.after_broker(broker(), Seq(60))
    assert proven(bound, broker(), channel(), effective=False)
    assert not proven(bound, broker(), channel(), effective=True)


def test_depth_effective_demands_all_numbers_and_depth_visible_only_changes_of_access() -> None:
    bound = Bound()
    bound.visible = 9
    assert proven(bound, broker(effective=8), channel(), effective=False)
    assert not proven(bound, broker(effective=8), channel(), effective=True)
    assert proven(bound, broker(effective=9), channel(), effective=True)
    bound.effective = 9
    assert not proven(bound, broker(effective=8), channel(), effective=False)


def test_what_a_broker_acted_upon_is_free_there_at_both_depths_before_and_after_the_next_probe() -> None:
    bound = Bound()
    bound.after_acting(broker(), Seq(40))
    for _ in range(2):
        assert proven(bound, broker(), channel(), effective=True)
        assert proven(bound, broker(), channel(), effective=False)
        bound.redeem_broker(broker())
    assert bound.visible == -1, "a number would have to be proven to act, and would cost a record of the log"


def test_what_a_broker_acted_upon_is_required_elsewhere_as_the_next_probe_finds_it() -> None:
    bound = Bound()
    bound.after_acting(broker(), Seq(40))
    other, there = broker(2, visible=11, effective=9), channel(2)
    assert not shown(bound, other, there)
    assert bound.to_probe == {1}
    bound.redeem_broker(broker())
    assert bound.to_probe == set()
    assert proven(bound, other, there, effective=False)
    assert not proven(bound, other, there, effective=True)
    assert proven(bound, replace(other, effective=10), there, effective=True)
    assert not shown(bound, broker(2, visible=9), there)


def test_what_an_ended_process_acted_upon_is_its_number_or_a_promise_on_the_head() -> None:
    for probed, expected in ((True, (10, NEVER)), (False, (-1, 40))):
        bound = Bound()
        bound.after_acting(broker(), Seq(40))
        if probed:
            bound.redeem_broker(broker())
        bound.give_up_broker(NodeId(1), 1)
        assert (bound.visible, bound.head, bound.acted) == (*expected, {})


def test_acting_promises_on_two_processes_of_a_broker_do_not_replace_each_other() -> None:
    bound = Bound()
    bound.after_acting(broker(), Seq(40))
    bound.after_acting(broker(incarnation=1), Seq(60))
    assert (bound.head, bound.acted[NodeId(1)].seq) == (40, 60)


def test_the_effect_is_never_taken_from_what_a_connection_showed() -> None:
    bound = Bound()
    bound.effective = 5
    assert not proven(bound, broker(), channel(established=60, shown=10), effective=False)


# Properties

SEQS = st.integers(min_value=1, max_value=200).map(Seq)
STEPS = st.one_of(
    st.tuples(st.just("after_head"), SEQS, st.booleans()),
    st.tuples(st.just("after_broker"), st.integers(1, 2), SEQS, st.integers(0, 2)),
    st.tuples(st.just("redeem_head"), st.integers(0, 50), SEQS),
    st.tuples(st.just("redeem_broker"), st.integers(1, 2), st.integers(0, 50), SEQS, st.integers(0, 2)),
    st.tuples(st.just("give_up"), st.integers(1, 2), st.integers(0, 2)),
)


def take(bound: Bound, step: tuple[object, ...]) -> None:
    match step:
        case ("after_head", int(seq), bool(effective)):
            bound.after_head(Seq(seq), Why.OWN_WRITE, effective=effective)
        case ("after_broker", int(node_id), int(seq), int(incarnation)):
            bound.after_broker(broker(node_id, incarnation=incarnation), Seq(seq))
        case ("redeem_head", int(offset), int(asked)):
            bound.redeem_head(head(offset, asked=asked))
        case ("redeem_broker", int(node_id), int(offset), int(asked), int(incarnation)):
            bound.redeem_broker(broker(node_id, visible=offset, proven=Seq(asked), incarnation=incarnation))
        case ("give_up", int(node_id), int(incarnation)):
            bound.give_up_broker(NodeId(node_id), incarnation)
        case _:
            raise AssertionError(step)


def state(bound: Bound) -> tuple[object, ...]:
    return bound.visible, bound.effective, bound.head, bound.head_effective, dict(bound.brokers)


@given(st.lists(STEPS, max_size=12))
def test_numbers_never_fall_and_promises_never_vanish_unredeemed(steps: list[tuple[object, ...]]) -> None:
    bound = Bound()
    for step in steps:
        visible, effective, promised, brokers = bound.visible, bound.effective, bound.head, dict(bound.brokers)
        take(bound, step)
        assert bound.visible >= visible
        assert bound.effective >= effective
        if bound.head < promised:
            assert step[0] == "redeem_head"
            assert isinstance(step[2], int)
            assert step[2] > promised
        for node_id, promise in brokers.items():
            kept = bound.brokers.get(node_id)
            covered = kept is not None and (kept.seq == promise.seq or step[0] == "after_broker")
            assert covered or bound.head >= promise.seq or step[0] in ("redeem_head", "redeem_broker")


@given(st.lists(STEPS, max_size=6), st.lists(STEPS, max_size=6))
def test_a_captured_bound_does_not_move_with_its_session(
    before: list[tuple[object, ...]], after: list[tuple[object, ...]]
) -> None:
    session = Bound()
    for step in before:
        take(session, step)
    captured = session.capture()
    taken = state(captured)
    assert taken == state(session)
    for step in after:
        take(session, step)
    assert state(captured) == taken
