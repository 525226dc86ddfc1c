"""How probe answers become what is known of a broker."""

from sidecar.core import positions
from sidecar.core.ids import NEVER, NodeId, Seq
from sidecar.core.view import Broker


def probed(broker: Broker, offset: int | None, *, asked: int) -> Broker:
    return positions.probed(broker, asked=Seq(asked), offset=offset)


FRESH = Broker(node_id=NodeId(1))


def test_the_first_probe_shows_a_position_of_which_nothing_is_known_to_act() -> None:
    broker = probed(FRESH, 10, asked=5)
    assert (broker.up, broker.visible, broker.effective, broker.proven) == (True, 10, -1, 5)


def test_a_later_position_proves_that_the_former_one_acts() -> None:
    broker = probed(probed(FRESH, 10, asked=5), 13, asked=7)
    assert (broker.visible, broker.effective) == (13, 10)


def test_the_same_position_again_proves_only_that_it_still_holds() -> None:
    broker = probed(probed(FRESH, 10, asked=5), 10, asked=7)
    assert (broker.visible, broker.effective, broker.proven) == (10, -1, 7)


def test_a_lower_position_is_another_process() -> None:
    broker = probed(probed(probed(FRESH, 10, asked=5), 13, asked=7), 4, asked=9)
    assert (broker.incarnation, broker.visible, broker.effective, broker.proven) == (1, 4, -1, 9)


def test_an_incarnation_that_ended_leaves_nothing() -> None:
    broker = positions.incarnation_ended(probed(FRESH, 10, asked=5))
    assert (broker.incarnation, broker.visible, broker.effective, broker.proven) == (1, -1, -1, NEVER)


def test_a_broker_without_the_field_is_up_and_promises_nothing() -> None:
    broker = probed(FRESH, None, asked=5)
    assert (broker.up, broker.positions, broker.visible) == (True, False, -1)


def test_versions_stay_known_until_new_ones_come() -> None:
    broker = positions.probed(FRESH, asked=Seq(1), offset=1, versions={3: (0, 12)})
    assert probed(broker, 2, asked=2).versions == {3: (0, 12)}


def test_a_broker_speaks_what_it_offers_and_an_unknown_one_everything() -> None:
    broker = positions.probed(FRESH, asked=Seq(1), offset=1, versions={3: (4, 12)})
    assert broker.speaks(3, 4)
    assert broker.speaks(3, 12)
    assert not broker.speaks(3, 3)
    assert not broker.speaks(3, 13)
    assert not broker.speaks(75, 0)
    assert FRESH.speaks(75, 0)
