"""What a command's exit code means; the same for all commands, and part of the public interface."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
NO: Final = 1
"""The answer is no: `wait` timed out, `inspect` met wrong bytes."""
USAGE: Final = 2
"""Wrong usage or configuration."""
UNREACHABLE: Final = 3
"""No cluster or sidecar to be reached."""
