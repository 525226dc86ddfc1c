"""A thousand seeds and more, with invariants checked after every step; each chunk must also see everything happen."""

import os
from collections import Counter
from typing import Final

import pytest

from tests.simulation.weather import KINDS
from tests.simulation.world import World

CHUNK: Final = 320
CHUNKS: Final = 500 if os.environ.get("TIDEGATE_NIGHTLY") else 5
LEAST: Final = {
    "answers": 3000,
    "asked again": 1,
    "claims": 40,
    "closed broker_closed": 20,
    "closed wait_timeout": 5,
    "complaint STALE": 2,
    "creates": 30,
    "decided forward": 400,
    "decided hold": 400,
    "decided route": 100,
    "decided unproven": 10,
    "decided write": 200,
    "fault break": 10,
    "fault cut": 5,
    "fault kill": 20,
    "fault restart_sidecar": 5,
    "fault swap": 2,
    "fetched as a client": 20,
    "head CONFIRMED": 800,
    "head NO_LEASE": 10,
    "head UNKNOWN": 5,
    "homes reopened": 20,
    "login refused": 3,
    "logs in again": 20,
    "probes reset": 1,
    "refused": 5,
    "released client_left": 20,
    "released freshest": 5,
    "released proven": 300,
    "released stale": 5,
    "steps": 20_000,
}
"""How often each thing must have happened in every chunk at least: a quiet simulation proves nothing."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_breaks_an_invariant(chunk: int) -> None:
    assert CHUNK % len(KINDS) == 0, "every chunk sees every weather"
    counts: Counter[str] = Counter()
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        world = World(seed)
        try:
            world.run()
        except Exception as error:
            error.add_note(f"replay: python -m tests.simulation {seed}")
            raise
        counts += world.counts
    assert {name: counts[name] for name, least in LEAST.items() if counts[name] < least} == {}


def test_the_same_seed_tells_the_same_story() -> None:
    first, second = World(4711), World(4711)
    first.run()
    second.run()
    assert str(first.story) == str(second.story)
    assert first.counts == second.counts


@pytest.mark.parametrize("seed", range(12))
def test_looking_for_due_probes_after_every_event_tells_the_same_story(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After most events the sidecar does not look: nothing can be due."""
    short, full = World(seed), World(seed)
    short.run()
    monkeypatch.setattr("sidecar.core.sidecar._QUIET", ())
    full.run()
    assert str(short.story) == str(full.story)
