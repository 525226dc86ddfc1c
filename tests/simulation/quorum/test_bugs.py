"""Every bug that is brought back is noticed, by what is meant to notice it."""

from pathlib import Path
from typing import Final

import pytest

from backend.raft.node import CommittedLost
from tests.simulation.quorum.bugs import BUGS, Bug, no_pre_vote, no_read_index
from tests.simulation.quorum.script import Script
from tests.simulation.quorum.seeds import run_seed
from tests.simulation.story import Violation

pytestmark = pytest.mark.timeout(900)
"""Some bugs show in one seed of hundreds, and a machine may be slow."""

SCRIPTS: Final = Path(__file__).parent / "scripts"


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.caught_by], ids=lambda bug: bug.title)
def test_a_bug_that_is_brought_back_is_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.bring_back(monkeypatch)
    assert any(_what_fails(seed) in bug.caught_by for seed in range(bug.seeds)), f"{bug.seeds} seeds do not notice"


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.script], ids=lambda bug: bug.title)
def test_a_bug_that_is_brought_back_spoils_a_script(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.bring_back(monkeypatch)
    with pytest.raises(AssertionError):
        Script().run((SCRIPTS / f"{bug.script}.txt").read_text())


def test_a_returning_node_disturbs_the_leader_of_the_same_seed_without_pre_vote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = range(4)
    assert {_what_fails(seed) for seed in seeds} == {""}
    no_pre_vote(monkeypatch)
    assert {_what_fails(seed) for seed in seeds} == {"returning_nodes_disturb_nobody"}


def test_reads_of_the_same_seeds_go_wrong_without_read_index(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(4)
    assert {_what_fails(seed) for seed in seeds} == {""}
    no_read_index(monkeypatch)
    assert {_what_fails(seed) for seed in seeds} == {"", "reads_are_linearizable"}


def test_a_violation_tells_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    no_pre_vote(monkeypatch)
    with pytest.raises(Violation) as caught:
        run_seed(0)
    story = caught.value.__notes__[0]
    assert "asks     2: Vote in epoch " in story
    assert "replay: python -m tests.simulation.quorum 0" in story


def _what_fails(seed: int) -> str:
    """The invariant, or the type of the error, or nothing."""
    try:
        run_seed(seed)
    except Violation as violation:
        return violation.name
    except (ArithmeticError, AssertionError, LookupError, ValueError, CommittedLost) as error:
        return type(error).__name__
    return ""
