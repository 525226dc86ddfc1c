"""Reads Kafka's definitions where Kafka ships them: JSON with comments, inside the clients and metadata jars.

They stay there; nothing of them is kept in this repository.
"""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from codec.schema import Versions

Definition = Mapping[str, Any]

_MESSAGES: Final = "common/message/"
_METADATA: Final = "common/metadata/"
_COMMENT_LINE: Final = re.compile(r"^\s*//.*$", re.MULTILINE)
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def definitions(libs: Path, version: str) -> list[Definition]:
    """Every definition in the clients' jar of that version: requests, answers, control records."""
    return _read(libs / f"kafka-clients-{version}.jar", _MESSAGES)


def metadata_definitions(libs: Path, version: str) -> list[Definition]:
    """Every definition of a metadata record of that version."""
    return _read(libs / f"kafka-metadata-{version}.jar", _METADATA)


def _read(path: Path, folder: str) -> list[Definition]:
    with zipfile.ZipFile(path) as jar:
        names = sorted(n for n in jar.namelist() if n.startswith(folder) and n.endswith(".json"))
        return [json.loads(_COMMENT_LINE.sub("", jar.read(name).decode())) for name in names]


def versions_of(text: str | None) -> Versions | None:
    """A range of versions, or None for none."""
    return None if text in (None, "none") else Versions.parse(text or "")


def snake_case(name: str) -> str:
    """Kafka's CamelCase as we write it."""
    return _WORD_START.sub("_", name).lower()


def fields_of(definition: Definition, of: Definition) -> list[Definition]:
    """The fields of a message, or of a field that is a struct or an array of structs."""
    if "fields" in of:
        return list(of["fields"])
    type_name = of.get("type", "").removeprefix("[]")
    return [
        f for common in definition.get("commonStructs", []) if common["name"] == type_name for f in common["fields"]
    ]


def paths(definition: Definition) -> Iterator[tuple[str, ...]]:
    """The path of every field, in snake_case, at every depth."""

    def walk(of: Definition, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for field in fields_of(definition, of):
            path = (*at, snake_case(field["name"]))
            yield path
            yield from walk(field, path)

    return walk(definition, ())


def default_of(field: Definition) -> Any:
    """A field's default as the codec writes it: `()` for an empty array or a struct with its own defaults."""
    text, kind = field.get("default"), field["type"]
    if text == "null":
        return None
    if kind.startswith("[]") or kind[0].isupper():
        return ()
    match kind:
        case "bool":
            return str(text).lower() == "true"
        case "string":
            return text or ""
        case "bytes" | "records":
            return b""
        case "uuid":
            return bytes(16)
        case "float64":
            return float(text or 0)
        case _:
            return int(str(text or 0), 0)
