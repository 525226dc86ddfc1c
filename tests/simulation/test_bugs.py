"""Every bug that is brought back is caught, by an invariant that is meant to catch it."""

from typing import Final

import pytest

from tests.simulation.bugs import BUGS, Bug
from tests.simulation.story import Violation
from tests.simulation.weather import KINDS
from tests.simulation.world import World

SEEDS_MAX: Final = 400
DEMANDED: Final = frozenset(map(str, (*range(1, 9), *range(10, 16), *range(18, 25))))
"""Rows of consistency.md section 9 for whose rules the core has a place."""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.number}: {bug.title}")
def test_a_bug_that_is_brought_back_is_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.bring_back(monkeypatch)
    first = KINDS.index(bug.weather)
    for seed in range(first, first + SEEDS_MAX * len(KINDS), len(KINDS)):
        try:
            World(seed).run()
        except Violation as violation:
            if violation.name in bug.caught_by:
                return
    pytest.fail(f"{SEEDS_MAX} seeds of {bug.weather.value} do not notice: {bug.title}")


def test_every_bug_that_the_core_can_have_is_among_them() -> None:
    assert {bug.number for bug in BUGS} - {"own"} == DEMANDED
