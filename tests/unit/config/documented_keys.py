"""The tables of keys in docs/configuration.md, made from the models: the sidecar's and the backend's.

`python -m tests.unit.config.documented_keys` writes them into the page again, after a key has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel

from config.backend import BackendConfig
from config.keys import Key, catalogue, matches
from config.sidecar import SidecarConfig
from config.unsupported import BACKEND_UNSUPPORTED, UNSUPPORTED, Unsupported
from config.values import HostPort, PortRange

PAGE: Final = Path(__file__).parents[3] / "docs" / "configuration.md"
MODELS: Final[dict[str, tuple[type[BaseModel], Unsupported]]] = {
    "keys": (SidecarConfig, UNSUPPORTED),
    "backend keys": (BackendConfig, BACKEND_UNSUPPORTED),
}
"""Mark in the page to what stands there."""
_KINDS: Final = {
    bool: "`true`, `false`",
    HostPort: "`HOST:PORT`",
    PortRange: "`FIRST-LAST`",
    Path: "file name",
    str: "text",
}


def table(mark: str = "keys") -> str:
    """One heading a top level section, one row a key."""
    model, unsupported = MODELS[mark]
    lines: list[str] = []
    group = None
    for pattern, key in catalogue(model).items():
        if key.is_section:
            continue
        top = pattern[0] if len(pattern) > 1 else "others"
        if top != group:
            group = top
            lines += ["", f"### {top}", "", "| Key | Default | Unit | Accepts | Meaning |", "|---|---|---|---|---|"]
        lines.append(
            f"| {' | '.join((f'`{key}`', _default(key), key.unit, _accepts(key, unsupported), key.description))} |"
        )
    return "\n".join(lines).lstrip("\n") + "\n"


def documented_table(page: str, mark: str = "keys") -> str:
    """The table as the page has it."""
    return page.partition(_begin(mark))[2].partition(_end(mark))[0]


def _begin(mark: str) -> str:
    return f"<!-- {mark}: begin -->\n"


def _end(mark: str) -> str:
    return f"<!-- {mark}: end -->\n"


def _default(key: Key) -> str:
    return "required" if key.required else f"`{_yaml(key.default)}`"


def _yaml(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _accepts(key: Key, unsupported: Unsupported) -> str:
    accepted = next((values for pattern, values in unsupported.items() if matches(pattern, key.pattern)), None)
    if accepted is not None and len(accepted) == 1:
        return "the default only, so far"
    if key.choices:
        now = key.choices if accepted is None else tuple(choice for choice in key.choices if choice in accepted)
        later = [choice for choice in key.choices if choice not in now]
        return _quoted(now) + (f"; not yet {_quoted(later)}" if later else "")
    if key.bounds:
        return f"{key.bounds[0]} to {key.bounds[1]}"
    return _KINDS.get(key.kind, "list of `HOST:PORT`")


def _quoted(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def main() -> None:
    page = PAGE.read_text()
    for mark in MODELS:
        before, _, rest = page.partition(_begin(mark))
        after = rest.partition(_end(mark))[2]
        page = before + _begin(mark) + table(mark) + _end(mark) + after
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
