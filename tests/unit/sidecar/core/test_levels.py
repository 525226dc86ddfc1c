"""What a read requires of its session, by level and depth."""

import pytest

from sidecar.core.bounds import Bound, Why
from sidecar.core.ids import NodeId, Seq
from sidecar.core.levels import Depth, Level, Override, Policy, required
from sidecar.core.view import Broker


def session() -> Bound:
    bound = Bound()
    bound.visible = 7
    bound.after_broker(Broker(node_id=NodeId(1), up=True), Seq(30))
    return bound


def test_eventual_requires_nothing() -> None:
    bound = required(Level.EVENTUAL, session(), Seq(20))
    assert (bound.visible, bound.head_promised, bound.brokers) == (-1, 0, {})


def test_session_requires_what_the_session_has_seen() -> None:
    bound = required(Level.SESSION, session(), Seq(20))
    assert (bound.visible, bound.head_promised, list(bound.brokers)) == (7, 0, [1])


def test_linearizable_requires_the_head_after_the_arrival_and_after_all_that_was_read() -> None:
    for arrived, latest in ((20, 30), (40, 40)):
        bound = required(Level.LINEARIZABLE, session(), Seq(arrived))
        assert (bound.visible, bound.head, bound.head_why, bound.brokers) == (7, latest, Why.LINEARIZABLE, {})


def test_linearizable_keeps_a_later_promise_of_the_session() -> None:
    bound = session()
    bound.after_head(Seq(50), Why.OWN_WRITE, effective=True)
    read = required(Level.LINEARIZABLE, bound, Seq(40))
    assert (read.head, read.head_effective, read.head_why) == (50, 50, Why.OWN_WRITE)


@pytest.mark.parametrize("level", [Level.SESSION, Level.LINEARIZABLE])
def test_the_session_itself_is_not_touched(level: Level) -> None:
    bound = session()
    read = required(level, bound, Seq(40))
    read.after_head(Seq(99), Why.OWN_WRITE)
    assert (bound.head, list(bound.brokers)) == (0, [1])


def test_an_override_replaces_only_what_it_names() -> None:
    policy = Policy(
        level=Level.SESSION,
        depth=Depth.AUTO,
        apis={3: Override(level=Level.LINEARIZABLE), 29: Override(depth=Depth.VISIBLE)},
    )
    assert policy.level_of(3) is Level.LINEARIZABLE
    assert policy.level_of(29) is Level.SESSION
    assert policy.effective(3, by_nature=True)
    assert not policy.effective(29, by_nature=True)


@pytest.mark.parametrize(
    ("depth", "plain", "rules"), [("auto", False, True), ("visible", False, False), ("effective", True, True)]
)
def test_depths(depth: str, plain: bool, rules: bool) -> None:
    policy = Policy(depth=Depth(depth))
    assert policy.effective(3, by_nature=False) is plain
    assert policy.effective(29, by_nature=True) is rules
