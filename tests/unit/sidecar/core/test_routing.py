"""Which broker answers a read, or what it waits for."""

from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sidecar.core.bounds import AfterBroker, Bound, Why
from sidecar.core.ids import NodeId, Seq
from sidecar.core.routing import Forward, Hold, Question, among_all, at_home, decide
from sidecar.core.view import Broker, Channel, Load, View

API, VERSION = 3, 12


class Scene:
    """Broker 1 is the client's own; brokers 2 and 3 have a channel each, broker 4 has none."""

    def __init__(
        self, *, at: int = 10, visible: dict[int, int] | None = None, load: dict[int, int] | None = None
    ) -> None:
        shows = {1: 10, 2: 10, 3: 10, 4: 10} | (visible or {})
        self.brokers = {
            NodeId(n): Broker(node_id=NodeId(n), up=True, visible=offset, effective=offset - 1, proven=Seq(50))
            for n, offset in shows.items()
        }
        self.loads = {NodeId(n): Load() for n in shows}
        for node_id, in_flight in (load or {}).items():
            self.loads[NodeId(node_id)].in_flight = in_flight
        self.channels = {
            n: Channel(channel_id=n, node_id=NodeId(n), established=Seq(20), shown=-1, load=self.loads[NodeId(n)])
            for n in (1, 2, 3)
        }
        self.bound = Bound()
        self.bound.visible = at

    def question(self, *, home: bool = True, roams: bool = True, effective: bool = False) -> Question:
        return Question(
            api_key=API,
            api_version=VERSION,
            bound=self.bound,
            effective=effective,
            home=self.channels[1] if home else None,
            channels=[self.channels[2], self.channels[3]] if roams else (),
            openable=[NodeId(4)] if roams else (),
        )

    def decide(self, *, home: bool = True, roams: bool = True, effective: bool = False) -> Forward | Hold:
        question = self.question(home=home, roams=roams, effective=effective)
        return decide(question, View(brokers=MappingProxyType(self.brokers)), self.loads, Seq(7))


def forwarded(decision: Forward | Hold) -> int:
    assert isinstance(decision, Forward)
    return decision.channel.node_id


def held(decision: Forward | Hold) -> Hold:
    assert isinstance(decision, Hold)
    return decision


def test_among_equals_the_clients_own_broker_answers() -> None:
    assert forwarded(Scene().decide()) == 1


def test_fewest_in_flight_comes_first() -> None:
    assert forwarded(Scene(load={1: 2, 2: 1}).decide()) == 3


def test_then_the_smallest_lag() -> None:
    assert forwarded(Scene(load={1: 1}, visible={2: 11, 3: 12}).decide()) == 3


def test_a_broker_that_is_behind_is_no_choice_and_that_is_noted() -> None:
    decision = Scene(at=11, visible={2: 11}, load={2: 5}).decide()
    assert forwarded(decision) == 2
    assert decision.prevented, "load alone would have chosen a stale one"


def test_nothing_is_noted_where_load_and_position_agree() -> None:
    assert not Scene().decide().prevented


def test_where_nobody_is_proven_the_read_waits() -> None:
    decision = held(Scene(at=11).decide())
    assert (decision.open_channel, decision.shown) == (None, False)


def test_a_caught_up_broker_without_a_channel_gets_one() -> None:
    assert held(Scene(at=11, visible={4: 11}).decide()).open_channel == 4


def test_an_idler_one_gets_one_too_for_the_reads_to_come() -> None:
    busy = Scene(load={1: 1, 2: 1, 3: 1}).decide()
    assert isinstance(busy, Forward)
    assert busy.open_channel == 4
    idle = Scene().decide()
    assert isinstance(idle, Forward)
    assert idle.open_channel is None


def test_what_only_lacks_the_effect_is_said() -> None:
    assert held(Scene().decide(effective=True)).shown


def test_where_reads_do_not_roam_only_the_own_broker_counts() -> None:
    decision = held(Scene(at=11, visible={2: 11, 4: 11}).decide(roams=False))
    assert decision.open_channel is None


def test_a_read_may_go_elsewhere_before_its_own_connection_is_open() -> None:
    assert forwarded(Scene().decide(home=False)) in (2, 3)


def test_a_broker_that_does_not_speak_the_version_is_left_out() -> None:
    scene = Scene()
    for node_id in (1, 2):
        scene.brokers[NodeId(node_id)] = Broker(
            node_id=NodeId(node_id),
            up=True,
            visible=99,
            proven=Seq(50),
            versions=MappingProxyType({API: (0, VERSION - 1)}),
        )
    assert forwarded(scene.decide()) == 3


def test_a_broker_that_is_not_known_any_more_is_left_out() -> None:
    scene = Scene()
    del scene.brokers[NodeId(1)]
    assert forwarded(scene.decide()) in (2, 3)


def test_an_empty_list_of_brokers_is_never_caught_up() -> None:
    scene = Scene(at=-1)
    scene.brokers.clear()
    assert held(scene.decide()).open_channel is None


def test_a_promise_on_the_head_holds_and_opens_nothing() -> None:
    scene = Scene(visible={4: 99})
    scene.bound.after_head(Seq(5), Why.OWN_WRITE)
    assert held(scene.decide()) == Hold(None, False, False)


@pytest.mark.parametrize("node_id", [1, 2])
def test_a_promise_on_a_broker_leads_there(node_id: int) -> None:
    scene = Scene(visible={3: 99, 4: 99})
    scene.bound.after_broker(scene.brokers[NodeId(node_id)], Seq(60))
    assert forwarded(scene.decide()) == node_id


OFFSETS = st.integers(8, 11)
LOADS = st.dictionaries(st.integers(1, 4), st.integers(0, 2))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_short_way_home_says_what_the_choice_among_all_says(data: st.DataObject) -> None:
    scene = Scene(
        at=data.draw(OFFSETS),
        visible=data.draw(st.dictionaries(st.integers(1, 4), OFFSETS)),
        load=data.draw(LOADS),
    )
    if data.draw(st.booleans()):
        scene.brokers[NodeId(1)] = replace(
            scene.brokers[NodeId(1)], versions={API: (0, data.draw(st.integers(11, 12)))}
        )
    if data.draw(st.booleans()):
        scene.bound.after_head(Seq(5), Why.OWN_WRITE)
    for node_id in data.draw(st.sets(st.integers(1, 4))):
        scene.bound.brokers[NodeId(node_id)] = AfterBroker(data.draw(st.integers(0, 1)), Seq(60))
    question = scene.question(
        home=data.draw(st.booleans()), roams=data.draw(st.booleans()), effective=data.draw(st.booleans())
    )
    view = View(brokers=MappingProxyType(scene.brokers))
    short, full = at_home(question, view, scene.loads), among_all(question, view, scene.loads, Seq(7))
    event(f"the short way {'led home' if short else 'was left'}")
    assert decide(question, view, scene.loads, Seq(7)) == full
    assert short in (None, full)
