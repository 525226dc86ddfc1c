"""Keeps somebody else's modules from being taken for ours.

The packages `config`, `codec`, `sidecar` and `backend` have plain names, and a directory in which the command is
started may hold a module of the same name. So the working directory is no place to import from, unless Tidegate itself
lives there, as in a checkout. Imports nothing but the standard library, and runs before anything else does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HOME = Path(__file__).resolve().parents[2]
"""The directory that holds our packages."""


def leave_out_working_directory() -> None:
    """Take every spelling of the working directory off `sys.path`, unless our packages are in it."""
    try:
        here = Path.cwd().resolve()
    except OSError:
        return
    if here != _HOME:
        sys.path[:] = [entry for entry in sys.path if Path(entry or os.curdir).resolve() != here]
