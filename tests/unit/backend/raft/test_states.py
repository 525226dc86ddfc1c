"""The table of states in the docstring is the one in the code, and each of its ways is gone."""

import re
from collections.abc import Callable

import pytest

from backend.raft import states, transitions
from backend.raft.messages import NOBODY
from backend.raft.node import Node
from backend.raft.states import TRANSITIONS, Leader, Resigned, State
from tests.unit.backend.raft import kit

ROW = re.compile(r"^    ([A-Z][a-z]+) +([A-Z][a-z]+) {2,}\S", re.MULTILINE)


def rows() -> set[tuple[str, str]]:
    assert states.__doc__ is not None
    return set(ROW.findall(states.__doc__))


def test_the_table_in_the_docstring_is_the_one_in_the_code() -> None:
    assert rows() == {(old.__name__, new.__name__) for old, news in TRANSITIONS.items() for new in news}


def node_in(kind: type[State]) -> Node:
    """A node in a state, by the shortest way."""
    disk = kit.recovered(epoch=3, leader=NOBODY if kind.__name__ in ("Unattached", "Prospective", "Candidate") else 2)
    node = Node(kit.settings(), disk, lambda: 0.5, 0)
    transitions.recover(node, 0)
    match kind.__name__:
        case "Prospective":
            transitions.become_prospective(node, 0)
        case "Candidate":
            transitions.become_candidate(node, 0)
        case "Leader" | "Resigned":
            transitions.become_unattached(node, 3, 0)
            transitions.become_candidate(node, 0)
            transitions.become_leader(node, 0)
            if kind is Resigned:
                transitions.become_resigned(node, (), 0)
    assert type(node.state) is kind
    return node


@pytest.mark.parametrize("old", list(TRANSITIONS))
@pytest.mark.parametrize("new", list(TRANSITIONS))
def test_a_way_that_is_not_in_the_table_cannot_be_gone(old: type[State], new: type[State]) -> None:
    node = node_in(old)
    ways: dict[str, Callable[[], object]] = {
        "Unattached": lambda: transitions.become_unattached(node, node.epoch + 1, 0),
        "Prospective": lambda: transitions.become_prospective(node, 0),
        "Candidate": lambda: transitions.become_candidate(node, 0),
        "Leader": lambda: transitions.become_leader(node, 0),
        "Follower": lambda: transitions.become_follower(node, node.epoch + 1, 2, 0),
        "Resigned": lambda: transitions.become_resigned(node, (), 0),
    }
    if new in TRANSITIONS[old]:
        ways[new.__name__]()
        assert type(node.state) is new
    else:
        with pytest.raises(AssertionError, match=f"from {old.__name__} to {new.__name__}"):
            ways[new.__name__]()


def test_a_leader_follows_only_in_a_later_epoch() -> None:
    node = node_in(Leader)
    transitions.learn(node, node.epoch, 2, 0)
    assert type(node.state).__name__ == "Leader"
    transitions.learn(node, node.epoch + 1, 2, 0)
    assert type(node.state).__name__ == "Follower"
    assert node.election.leader_id == 2
