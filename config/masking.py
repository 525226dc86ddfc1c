"""A configuration as plain values that may be shown to anybody who reaches the admin listener.

Secrets live in files, so the names of the files are fine; what may hold one is the user part of an address.
"""

from __future__ import annotations

import re
from typing import Any

from config.sidecar import SidecarConfig

_LOGIN = re.compile(r"(?<=://)[^/?#]*(?=@)")
MASK = "***"


def masked(config: SidecarConfig) -> dict[str, Any]:
    """Every key with its value in force, fit for JSON; the login in an address is replaced by `***`."""
    return {key: _masked(value) for key, value in config.model_dump(mode="json").items()}


def _masked(value: Any) -> Any:
    match value:
        case dict():
            return {key: _masked(entry) for key, entry in value.items()}
        case list():
            return [_masked(entry) for entry in value]
        case str():
            return _LOGIN.sub(MASK, value)
        case _:
            return value
