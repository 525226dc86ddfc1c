"""What differs between two configurations of a sidecar, and which of it a running one can take over.

A key is live when whoever obeys it looks at it again and again; every other key needs a restart, and so do new keys
until they are added to `_LIVE`. Pure: knows values, not those who obey them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from config.faults import KeyPath, dotted
from config.judge import judge
from config.keys import Pattern
from config.sidecar import SidecarConfig

_LIVE: Final[tuple[Pattern, ...]] = tuple(
    tuple(pattern.split("."))
    for pattern in (
        "cluster.bootstrap_servers",
        "cluster.security.ssl.*",
        "cluster.security.sasl.*",
        "listeners.*.security.ssl.*",
        "listeners.*.security.client_auth",
        "consistency.level",
        "consistency.depth",
        "consistency.apis",
        "consistency.wait_timeout_ms",
        "consistency.on_timeout",
        "consistency.effective_grace_ms",
        "limits.*",
        "admin.token_file",
        "logging.*",
    )
)
_WHOLE: Final[frozenset[Pattern]] = frozenset({("consistency", "apis")})
"""Sections whose keys are free: one value each."""

_Leaves: TypeAlias = dict[KeyPath, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What became of a new configuration.

    Attributes:
        config: the one in force now: the former one with the live keys of the new one.
        live: the keys that were taken over, dotted.
        restart: those that are as before until a restart.
    """

    config: SidecarConfig
    live: tuple[str, ...]
    restart: tuple[str, ...]


class Entangled(Exception):
    """The live keys of the new configuration make no sense without the others: only a restart can take it over."""


def changes(former: SidecarConfig, new: SidecarConfig) -> Changes:
    """Compares two configurations, key by key.

    Raises:
        Entangled: see there; the message says which rule the mixture breaks.
    """
    tree = former.model_dump(mode="json")
    before, after = dict(_leaves((), tree)), dict(_leaves((), new.model_dump(mode="json")))
    differing = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    if len(former.listeners) != len(new.listeners):
        differing = [("listeners",), *(path for path in differing if path[0] != "listeners")]
    live = [path for path in differing if is_live(path)]
    for path in live:
        _put(tree, path, after[path])
    config, broken = judge(SidecarConfig, tree)
    if config is None:
        raise Entangled("; ".join(f"{dotted(path)}: {reason}" for path, reason in broken))
    restart = [path for path in differing if path not in live]
    return Changes(config=config, live=tuple(map(dotted, live)), restart=tuple(map(dotted, restart)))


def is_live(path: KeyPath) -> bool:
    """Whether a running sidecar can take this key over."""
    return any(
        len(pattern) == len(path) and all(part in ("*", str(at)) for part, at in zip(pattern, path, strict=True))
        for pattern in _LIVE
    )


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, Mapping) and tuple(map(str, path)) not in _WHOLE:
        for key, entry in value.items():
            yield from _leaves((*path, key), entry)
    elif path == ("listeners",):
        for index, entry in enumerate(value):
            yield from _leaves((*path, index), entry)
    else:
        yield path, value


def _put(tree: Any, path: KeyPath, value: Any) -> None:
    for part in path[:-1]:
        tree = tree[part]
    tree[path[-1]] = value
