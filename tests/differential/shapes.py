"""Fields in one version, as a table of ours and a definition of Kafka's can both say them."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from codec.schema import Array, Field, Struct
from tests.differential.definitions import Definition, default_of, fields_of, snake_case, versions_of

RENAMED: Final = {
    ("ListClientMetricsResourcesResponse", "client_metrics_resources"): "config_resources",
    ("ListClientMetricsResourcesResponse", "name"): "resource_name",
    ("VoteRequest", "candidate_epoch"): "replica_epoch",
    ("VoteRequest", "candidate_id"): "replica_id",
    ("VoteRequest", "candidate_directory_id"): "replica_directory_id",
}
"""Fields of 3.9 that a later Kafka renamed; the bytes are the same."""


class Shape(NamedTuple):
    """One field in one version, as both sides can say it."""

    name: str
    type: str
    nullable: bool
    tag: int | None
    default: Any
    parts: tuple["Shape", ...]


def our_shapes(fields: Iterable[Field], version: int) -> list[Shape]:
    shapes = []
    for field in fields:
        if version in field.versions:
            element = field.type.element if isinstance(field.type, Array) else field.type
            inner = our_shapes(element.fields, version) if isinstance(element, Struct) else []
            kind = "struct" if isinstance(element, Struct) else element.value
            name = f"[]{kind}" if isinstance(field.type, Array) else kind
            nullable = field.nullable_in(version)
            shapes.append(Shape(field.name, name, nullable, field.tag, field.default, tuple(inner)))
    return shapes


def kafkas_shapes(definition: Definition, of: Definition, version: int) -> list[Shape]:
    shapes = []
    for field in fields_of(definition, of):
        exists, nullable = versions_of(field["versions"]), versions_of(field.get("nullableVersions"))
        if exists is None or version not in exists:
            continue
        tagged = versions_of(field.get("taggedVersions"))
        inner = kafkas_shapes(definition, field, version)
        kind = field["type"].removeprefix("[]")
        name = ("[]" if field["type"].startswith("[]") else "") + ("struct" if inner else kind)
        snake = snake_case(field["name"])
        shapes.append(
            Shape(
                name=RENAMED.get((definition["name"], snake), snake),
                type=name,
                nullable=nullable is not None and version in nullable,
                tag=int(field["tag"]) if tagged is not None and version in tagged else None,
                default=default_of(field),
                parts=tuple(inner),
            )
        )
    return shapes
