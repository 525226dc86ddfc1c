"""What is wrong with a configuration, and where.

A fault is a value, so that all faults of a file are reported at once. A reason never repeats a configured value: it may
be a secret that somebody put in the wrong place. Knows nothing of YAML, pydantic or the models.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""A key's place in a document: `("listeners", 0, "bind")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        name: the file, or the command line option, that holds the fault.
        line: counted from 1; None where there are no lines.
        path: dotted key path such as `listeners[0].bind`; empty for the whole file.
        reason: what is wrong and what to do about it, one line, without the value.
    """

    name: str
    reason: str
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        """The line that `tidegate check` prints: `FILE:LINE: key.path: reason`."""
        place = self.name if self.line is None else f"{self.name}:{self.line}"
        return ": ".join(part for part in (place, self.path, self.reason) if part)


class ConfigError(Exception):
    """The configuration cannot be used; `faults` says why, sorted by line, never empty."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = sorted(faults, key=lambda fault: fault.line or 0)
        super().__init__("\n".join(map(str, self.faults)))


def dotted(path: KeyPath) -> str:
    """`("listeners", 0, "bind")` as `listeners[0].bind`, safe to print on a terminal."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + printable(part)
    return text


def printable(text: str) -> str:
    """`text` cut to 80 characters, with anything escaped that could steer a terminal."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return shown if shown.isprintable() else ascii(shown)[1:-1]
