"""The page about connections names every cause that is counted, and no other."""

import re
from pathlib import Path

from sidecar.net.counters import CAUSES

PAGE = Path(__file__).parents[4] / "docs" / "connections.md"


def test_every_cause_is_explained() -> None:
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {cause for row in rows for cause in re.findall(r"`(\w+)`", row)} == CAUSES
