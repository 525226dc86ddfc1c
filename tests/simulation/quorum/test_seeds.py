"""Many seeds, invariants checked in every step; each must see enough, and each chunk must see everything happen."""

import os
from collections import Counter
from typing import Final

import pytest

from tests.simulation.quorum.seeds import COMMITS, ELECTIONS, VIRTUAL_MS, run_seed
from tests.simulation.quorum.weather import KINDS, Fault

CHUNK: Final = 40
CHUNKS: Final = 10_000 // CHUNK if os.environ.get("TIDEGATE_NIGHTLY") else 8
LEAST: Final = {
    "crashes that lost something": 20,
    "pre-votes": 500,
    "reads": 5000,
    "reads of observers": 500,
    "reads refused": 100,
    "snapshots installed": 10,
    "snapshots loaded": 20,
    "snapshots written": 300,
    "torn tails": 5,
    "truncations": 20,
    "writes refused": 100,
}
"""How often each thing must have happened in every chunk at least: a quiet simulation proves nothing."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_breaks_an_invariant(chunk: int) -> None:
    assert CHUNK % len(KINDS) == 0, "every chunk sees every weather"
    counts: Counter[str] = Counter()
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        world = run_seed(seed)
        assert world.counts["virtual ms"] >= VIRTUAL_MS
        assert world.counts["commits"] >= COMMITS
        assert world.counts["elections"] >= ELECTIONS
        counts += world.counts
    assert {name: counts[name] for name, least in LEAST.items() if counts[name] < least} == {}
    assert [fault for fault in Fault if not counts[f"fault {fault.value}"]] == []


def test_the_same_seed_tells_the_same_story() -> None:
    first, second = run_seed(4711), run_seed(4711)
    assert str(first.story) == str(second.story)
    assert first.counts == second.counts
