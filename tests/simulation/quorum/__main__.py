"""Replays one seed and tells its story: ``python -m tests.simulation.quorum SEED``."""

import sys

from tests.simulation.quorum.seeds import run_seed

world = run_seed(int(sys.argv[1]), lines_max=None)
print(world.story, world.weather, dict(sorted(world.counts.items())), sep="\n\n")  # noqa: T201 - a command's output
