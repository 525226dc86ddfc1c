"""The catalogue of keys that the models define, read from the models themselves.

Gives the fault texts their choices, the JSON Schema its limits and the documentation its table. `*` in a place stands
for any entry of a list or mapping. Knows pydantic's field descriptions; knows no document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from config.faults import KeyPath
from config.values import Whole

Pattern: TypeAlias = tuple[str, ...]
ANY: Final = "*"
_UNITS: Final = {"_ms": "ms", "_bytes": "bytes", "_records": "records"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a configuration.

    Attributes:
        pattern: its place, `*` for list entries and free keys.
        is_section: whether it holds keys of its own.
        required: whether it has no default.
        default: as YAML would give it; None for sections and required keys too.
        choices: the words it accepts, or a list of them, if it accepts only some.
        kind: the type of its value, without None; a section's model.
        bounds: the least and the greatest number, both accepted; None where it is no number.
        description: one sentence for users.
        entry_names: what the keys below may be called, if this is a section.
    """

    pattern: Pattern
    is_section: bool
    required: bool
    default: Any
    choices: tuple[str, ...]
    kind: Any
    bounds: tuple[int, int] | None
    description: str
    entry_names: tuple[str, ...]

    @property
    def unit(self) -> str:
        """`ms`, `bytes`, `records` or nothing, from the end of the name."""
        name = self.pattern[-1] if self.pattern else ""
        return next((unit for ending, unit in _UNITS.items() if f"_{name}".endswith(ending)), "")

    def __str__(self) -> str:
        return spelled(self.pattern)


def spelled(pattern: Pattern) -> str:
    """`("listeners", "*", "bind")` as `listeners[*].bind`, and `("apis", "*")` below a mapping alike."""
    return ".".join(pattern).replace(".*", "[*]")


@cache
def catalogue(model: type[BaseModel]) -> Mapping[Pattern, Key]:
    """Every key of `model` by its place, sections before what they hold, in the order of the model."""
    return {key.pattern: key for key in _section((), model, required=True, description="")}


def key_at(model: type[BaseModel], path: KeyPath) -> Key | None:
    """The key that `path` names in a document of `model`; None if there is no such key."""
    keys = catalogue(model)
    pattern: Pattern = ()
    for part in path:
        named = (*pattern, str(part))
        pattern = named if isinstance(part, str) and named in keys else (*pattern, ANY)
    return keys.get(pattern)


def matches(pattern: Pattern, path: KeyPath) -> bool:
    """Whether `path` is a place that `pattern` covers."""
    return len(pattern) == len(path) and all(p in (ANY, part) for p, part in zip(pattern, path, strict=True))


def _section(at: Pattern, model: type[BaseModel], *, required: bool, description: str) -> Iterator[Key]:
    yield Key(
        pattern=at,
        is_section=True,
        required=required,
        default=None,
        choices=(),
        kind=model,
        bounds=None,
        description=description or (model.__doc__ or ""),
        entry_names=tuple(model.model_fields),
    )
    for name, info in model.model_fields.items():
        yield from _field((*at, name), info)


def _field(at: Pattern, info: FieldInfo) -> Iterator[Key]:
    kind = _without_none(info.annotation)
    description = info.description or ""
    if _is_model(kind):
        yield from _section(at, kind, required=info.is_required(), description=description)
        return
    entry_names: tuple[str, ...] = ()
    entry: Any = None
    if get_origin(kind) is tuple:
        entry = get_args(kind)[0]
    elif get_origin(kind) is not Literal and len(get_args(kind)) == 2:
        names, entry = get_args(kind)
        entry_names = tuple(get_args(names))
    has_sections = _is_model(entry)
    yield Key(
        pattern=at,
        is_section=has_sections,
        required=info.is_required(),
        default=None if info.is_required() else _default(info),
        choices=_choices(kind) or _choices(entry),
        kind=kind,
        bounds=next(((mark.minimum, mark.maximum) for mark in info.metadata if isinstance(mark, Whole)), None),
        description=description,
        entry_names=entry_names,
    )
    if has_sections:
        yield from _section((*at, ANY), entry, required=False, description="")


def _choices(kind: Any) -> tuple[str, ...]:
    return tuple(get_args(kind)) if get_origin(kind) is Literal else ()


def _default(info: FieldInfo) -> Any:
    """The default as YAML would give it; of a list of sections, nothing: its entries have their own."""
    value = info.get_default(call_default_factory=True)
    if isinstance(value, tuple):
        return [] if any(isinstance(entry, BaseModel) for entry in value) else [str(entry) for entry in value]
    return value if isinstance(value, str | int | dict | NoneType) else str(value)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
