"""`python -P -m tidegate`: the same as the command `tidegate`."""

from __future__ import annotations

from tidegate.cli import main

main()
