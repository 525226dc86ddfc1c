"""The JSON Schema of the two configurations, as narrow as what this version accepts.

Built from the models: references are written out, so that what `unsupported` says about one place does not touch
another place that shares the model. Every scalar may also hold `${NAME}`, and numbers and flags may be text, as in a
file. Rules between keys cannot be said in a schema; `tidegate check` knows them.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from config.backend import BackendConfig
from config.keys import ANY, Pattern, catalogue
from config.sidecar import SidecarConfig
from config.unsupported import BACKEND_UNSUPPORTED, UNSUPPORTED, Unsupported

Schema: TypeAlias = dict[str, Any]

_NULL: Final[Schema] = {"type": "null"}
_VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
_NUMBER_AS_TEXT: Final = r"^[+-]?[0-9]+$|\$\{[A-Za-z_][A-Za-z0-9_]*\}"


def sidecar_schema() -> Schema:
    """A JSON Schema (draft 2020-12) of the values in a sidecar's file that `tidegate check` accepts."""
    return _Writer(SidecarConfig, UNSUPPORTED).schema("Tidegate sidecar configuration")


def backend_schema() -> Schema:
    """The same for a backend's file."""
    return _Writer(BackendConfig, BACKEND_UNSUPPORTED).schema("Tidegate backend configuration")


class _Writer:
    """Writes the schema of one model."""

    def __init__(self, model: type[BaseModel], unsupported: Unsupported) -> None:
        self._keys = catalogue(model)
        self._unsupported = unsupported
        self._source: Schema = model.model_json_schema()
        self._definitions: dict[str, Schema] = self._source["$defs"]

    def schema(self, title: str) -> Schema:
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": title,
            **self._written_out((), self._source),
        }

    def _written_out(self, at: Pattern, source: Schema) -> Schema:
        """The schema of the key at `at`, with its description and default."""
        source = self._resolved(source)
        key = self._keys.get(at)
        described: Schema = {}
        if key is not None and key.description:
            described["description"] = key.description
        if key is not None and not (key.is_section or key.required):
            described["default"] = key.default
        return {**described, **self._accepted(at, source)}

    def _resolved(self, source: Schema) -> Schema:
        reference: str | None = source.get("$ref")
        return self._definitions[reference.removeprefix("#/$defs/")] if reference else source

    def _accepted(self, at: Pattern, source: Schema) -> Schema:
        """What values the key at `at` takes."""
        if at in self._unsupported:
            return _words(list(self._unsupported[at]))
        match source:
            case {"anyOf": [inner, {"type": "null"}]}:
                return _any(self._accepted(at, inner), _NULL)
            case {"properties": dict(properties)}:
                below = {name: self._written_out((*at, name), entry) for name, entry in properties.items()}
                required = {name: source[name] for name in ("required",) if name in source}
                return {"type": "object", "properties": below, **required, "additionalProperties": False}
            case {"propertyNames": {"enum": list(names)}, "additionalProperties": dict(entry)}:
                below = dict.fromkeys(names, self._written_out((*at, ANY), entry))
                return {"type": "object", "properties": below, "additionalProperties": False}
            case {"type": "array", "items": dict(entry)}:
                counts = {name: source[name] for name in ("minItems", "maxItems")}
                below = self._written_out((*at, ANY), entry)
                entries = {"type": "array", "items": below, **counts}
                return entries if "$ref" in entry else _any(entries, below)
            case {"enum": list(words)}:
                return _words(words)
            case {"type": "boolean"}:
                return _words([True, False])
            case {"type": "integer"}:
                return {**source, "type": ["integer", "string"], "pattern": _NUMBER_AS_TEXT}
            case _:
                return {name: value for name, value in source.items() if name in ("type", "pattern", "minLength")}


def _words(words: list[Any]) -> Schema:
    """Some values only, or a variable that may hold one of them, if any of them can be written as text."""
    as_text = [str(word).lower() for word in words if isinstance(word, int)]
    only: Schema = {"enum": [*words, *as_text]}
    return only if all(word is None or word == [] for word in words) else _any(only, _VARIABLE)


def _any(*schemas: Schema) -> Schema:
    """One of `schemas`, with the alternatives inside them flattened."""
    return {"anyOf": [part for schema in schemas for part in schema.get("anyOf", [schema])]}
