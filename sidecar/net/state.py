"""The state file: which port each broker has on each listener, so that clients find them again after a restart.

    {"version": 1, "listeners": {"default": {"1": 19101, "2": 19102}}}

Written whole beside its place and then renamed, so that a crash leaves the old file or the new one. A file that cannot
be understood is never overwritten: `write` puts it aside under another name first.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from config.values import PORT_MAX
from sidecar.core.ids import NodeId

STATE_BYTES_MAX: Final = 1 << 20
_VERSION: Final = 1
_NODE_ID_MAX: Final = 2**31 - 1
ASIDE: Final = ".unreadable"
"""What the name of a file that was put aside ends in."""

Assignments = Mapping[str, Mapping[NodeId, int]]


class StateUnreadable(Exception):
    """The file is there, but its content cannot be had; the text says why."""


def read(path: Path) -> Assignments:
    """Node ports by listener; empty if there is no file yet.

    Raises:
        StateUnreadable: it cannot be read, or is no state file of ours.
    """
    try:
        with path.open("rb") as file:
            content = file.read(STATE_BYTES_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateUnreadable(error.strerror or type(error).__name__) from error
    if len(content) > STATE_BYTES_MAX:
        raise StateUnreadable(f"it is larger than {STATE_BYTES_MAX} bytes")
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StateUnreadable("it is not JSON") from error
    if not isinstance(tree, dict) or tree.get("version") != _VERSION or not isinstance(tree.get("listeners"), dict):
        raise StateUnreadable("it is no state file of this version of Tidegate")
    return {name: _ports(name, ports) for name, ports in tree["listeners"].items()}


def write(path: Path, assignments: Assignments, *, put_aside: bool) -> None:
    """Replaces the file.

    Args:
        put_aside: the present file could not be read: keep it beside as `NAME.unreadable`.

    Raises:
        OSError: nothing was replaced.
    """
    listeners = {name: {str(node): port for node, port in sorted(ports.items())} for name, ports in assignments.items()}
    text = json.dumps({"version": _VERSION, "listeners": listeners}, indent=1) + "\n"
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if put_aside and path.exists():
            path.replace(path.with_name(path.name + ASIDE))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _ports(name: str, ports: Any) -> dict[NodeId, int]:
    if not isinstance(ports, dict):
        raise StateUnreadable(f"listener {name!r} has no table of ports")
    found: dict[NodeId, int] = {}
    for node, port in ports.items():
        if not (node.isascii() and node.isdecimal() and len(node) <= 10 and int(node) <= _NODE_ID_MAX):
            raise StateUnreadable(f"listener {name!r} has a node id that is none")
        if type(port) is not int or not 1 <= port <= PORT_MAX:
            raise StateUnreadable(f"listener {name!r} has a port that is none")
        found[NodeId(int(node))] = port
    if len(set(found.values())) < len(found):
        raise StateUnreadable(f"listener {name!r} has one port for two nodes")
    return found
