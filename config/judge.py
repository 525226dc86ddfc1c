"""A plain value against a model: the model, or every fault in our words.

What pydantic reports is translated here, and only here; what this version does not support yet is added. A fault is a
place and a reason: lines and files are the business of `load`.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from config import rules, unsupported
from config.document import Plain, children
from config.faults import KeyPath
from config.keys import ANY, catalogue, key_at, spelled
from config.rules import Broken

Model = TypeVar("Model", bound=BaseModel)
_SECRETS: Final = ("password", "key_password", "token")


def judge(
    model: type[Model], value: Plain, table: unsupported.Unsupported = unsupported.UNSUPPORTED
) -> tuple[Model | None, list[Broken]]:
    """Check `value` as a whole; `table` says what of the model this version does not support.

    Returns:
        The model and no faults, or None and the faults: places from the top of `value`, reasons without values. A key
        with a wrong value has no other fault, and one that is not supported yet is not asked to agree with others.
    """
    result: Model | None = None
    values: list[Broken] = []
    agreement: list[Broken] = []
    try:
        result = model.model_validate(value)
    except ValidationError as error:
        for details in error.errors(include_url=False, include_input=False):
            if details["type"] == rules.RULES_BROKEN:
                below = rules.broken_rules(details["ctx"])
                agreement.extend(((*details["loc"], *path), reason) for path, reason in below)
            else:
                values.append(_broken(model, details, table))
    wrong = {path for path, _ in values}
    later = [(path, reason) for path, reason in _unsupported((), value, table) if path not in wrong]
    refused = {path for path, _ in later}
    broken = [*values, *later, *(fault for fault in agreement if fault[0] not in refused)]
    return (None if broken else result), broken


def _unsupported(path: KeyPath, value: Plain, table: unsupported.Unsupported) -> Iterator[Broken]:
    accepted = unsupported.accepted_at(table, path)
    if accepted is not None and not unsupported.is_accepted(value, accepted):
        yield path, unsupported.reason(accepted)
    for at, entry in children(value, path):
        yield from _unsupported(at, entry, table)


def _broken(model: type[BaseModel], details: ErrorDetails, table: unsupported.Unsupported) -> Broken:
    path = details["loc"]
    if path and path[-1] == "[key]":
        return path[:-1], _unknown(model, path[:-1])
    if details["type"] == "missing":
        return _required_below(model, path), "required"
    return path, _reason(model, path, details["type"], details.get("ctx", {}), table)


def _required_below(model: type[BaseModel], path: KeyPath) -> KeyPath:
    """The first key without a default in a section that is missing as a whole; `path` itself if it is no section."""
    inside = (key for key in catalogue(model).values() if key.pattern[: len(path)] == path and ANY not in key.pattern)
    return next((key.pattern for key in inside if key.required and not key.is_section), path)


def _reason(
    model: type[BaseModel], path: KeyPath, kind: str, context: dict[str, Any], table: unsupported.Unsupported
) -> str:
    match kind:
        case "value_error":
            return str(context["error"])
        case "extra_forbidden":
            return _unknown(model, path)
        case "literal_error":
            # An entry of a list of words has no key of its own; its words are those of the list.
            key = key_at(model, path) or key_at(model, path[:-1])
            accepted = unsupported.accepted_at(table, path) or (key.choices if key else ())
            return f"must be {unsupported.listed([str(choice) for choice in accepted if choice is not None])}"
        case "model_type" | "dict_type":
            return "must be a section with keys of its own, or left out"
        case "tuple_type":
            return "must be a list"
        case _:
            raise AssertionError(f"the models report nothing else, but {kind} at {path}")


def _unknown(model: type[BaseModel], path: KeyPath) -> str:
    """Says what the author of an unknown key may have meant: a neighbour, or a key of that name elsewhere."""
    name = str(path[-1])
    section = key_at(model, path[:-1])
    neighbours = section.entry_names if section else ()
    if f"{name}_file" in neighbours and name in _SECRETS:
        return f"unknown key; secrets are read from files: use `{name}_file`"
    if close := get_close_matches(name, neighbours, n=1):
        return f"unknown key; did you mean `{close[0]}`?"
    elsewhere = [pattern for pattern in catalogue(model) if pattern and pattern[-1] == name]
    if len(elsewhere) == 1:
        return f"unknown key; did you mean `{spelled(elsewhere[0])}`?"
    return "unknown key"
