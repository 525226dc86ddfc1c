"""What this version accepts less than the configurations of sidecar and backend define.

The models carry every key of the public interface from the start. A key that is listed here takes only the values
beside it; a version that implements more deletes rows. Checked on the plain values of a document by `load`; shown by
the JSON Schema and the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from config.document import Plain
from config.faults import KeyPath
from config.keys import Pattern, matches

_LEVELS: Final = ("eventual", "session", "linearizable")

_TABLE: Final[Mapping[str, tuple[Plain, ...]]] = {
    "cluster.head_source": ("describe_quorum", "broker_max"),
    "cluster.controllers": ([],),
    "listeners.*.session": (None,),
    "consistency.level": _LEVELS,
    "consistency.scope": ("connection", "client_id", "service"),
    "consistency.apis.*.level": (None, *_LEVELS),
    "consistency.write_barrier": ("committed",),
    "consistency.barrier_grace_ms": (1000,),
    "consistency.barrier_on_grace": ("release",),
    "consistency.serialize_writes": (False,),
    "consistency.gate_data_plane": (False,),
    "consistency.bounded.max_lag_records": (0,),
    "consistency.bounded.max_lag_ms": (0,),
    "fleet.url": (None,),
}

_BACKEND_TABLE: Final[Mapping[str, tuple[Plain, ...]]] = {
    "admin.token_file": (None,),
}

Unsupported: TypeAlias = Mapping[Pattern, tuple[Plain, ...]]
"""Key place to the values that this version accepts there."""


def _by_pattern(table: Mapping[str, tuple[Plain, ...]]) -> Unsupported:
    return {tuple(path.split(".")): accepted for path, accepted in table.items()}


UNSUPPORTED: Final = _by_pattern(_TABLE)
"""The sidecar's."""
BACKEND_UNSUPPORTED: Final = _by_pattern(_BACKEND_TABLE)
"""The backend's."""


def accepted_at(table: Unsupported, path: KeyPath) -> tuple[Plain, ...] | None:
    """The values that this version accepts at `path`; None where it accepts all that the models do."""
    return next((accepted for pattern, accepted in table.items() if matches(pattern, path)), None)


def is_accepted(value: Plain, accepted: tuple[Plain, ...]) -> bool:
    """Whether `value`, or what it means when it came as text, is among `accepted`."""
    return any(_same(value, candidate) for candidate in accepted)


def reason(accepted: tuple[Plain, ...]) -> str:
    """Why a value outside `accepted` is refused, and what to do."""
    if len(accepted) == 1:
        return f"not yet supported by this version; leave it out or set `{_yaml(accepted[0])}`"
    return f"not yet supported by this version; use {listed([_yaml(value) for value in accepted if value is not None])}"


def listed(words: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _same(value: Plain, candidate: Plain) -> bool:
    if isinstance(value, str) and not isinstance(candidate, str | list | None):
        return value == _yaml(candidate)
    return type(value) is type(candidate) and value == candidate


def _yaml(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case _:
            return str(value)
