"""How many bytes a type takes at a version: fixed sizes, their format characters, and lower bounds.

The lower bounds let a reader refuse an impossible count before it allocates. Shared by everything that is made from the
tables; knows no buffer.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from codec.schema import Array, Field, Scalar, Struct, Type

FORMAT: Final[dict[Scalar, str]] = {
    Scalar.BOOL: "?",
    Scalar.INT8: "b",
    Scalar.INT16: "h",
    Scalar.UINT16: "H",
    Scalar.INT32: "i",
    Scalar.UINT32: "I",
    Scalar.INT64: "q",
    Scalar.FLOAT64: "d",
    Scalar.UUID: "16s",
}
"""`struct` characters of the scalars whose size never varies."""

SIZE: Final[dict[Scalar, int]] = {
    Scalar.BOOL: 1,
    Scalar.INT8: 1,
    Scalar.INT16: 2,
    Scalar.UINT16: 2,
    Scalar.INT32: 4,
    Scalar.UINT32: 4,
    Scalar.INT64: 8,
    Scalar.FLOAT64: 8,
    Scalar.UUID: 16,
}
"""Bytes of the scalars whose size never varies."""


def minimum_size(of: Type, version: int, flexible: bool, *, nullable: bool = False) -> int:
    """The fewest bytes that a value of this type can take; at least 1 for everything that Kafka defines."""
    match of:
        case Scalar():
            if of in SIZE:
                return SIZE[of]
            if flexible:
                return 1
            return 2 if of is Scalar.STRING else 4
        case Array():
            return 1 if flexible else 4
        case Struct():
            if nullable:
                return 1
            size = sum(
                minimum_size(f.type, version, flexible, nullable=f.nullable_in(version)) for f in of.untagged(version)
            )
            return size + 1 if flexible else size


def fixed_format(field: Field) -> str | None:
    """The `struct` character of a field that always has the same size, else None."""
    return FORMAT.get(field.type) if isinstance(field.type, Scalar) else None


def runs(fields: Iterable[Field]) -> Iterator[tuple[Field, ...]]:
    """Cut fields in wire order into the longest runs of fixed size, and single fields of varying size."""
    run: list[Field] = []
    for field in fields:
        if fixed_format(field) is not None:
            run.append(field)
            continue
        if run:
            yield tuple(run)
            run = []
        yield (field,)
    if run:
        yield tuple(run)
