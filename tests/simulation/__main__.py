"""Replays one seed and tells its story: ``python -m tests.simulation SEED``."""

import sys

from tests.simulation.world import World

world = World(int(sys.argv[1]))
world.run()
print(world.weather, world.story, dict(world.counts), sep="\n\n")  # noqa: T201 - a command's output
