"""Hypothesis strategies made from the codec's own tables: values of any message in any version.

Small on purpose: few elements, short strings, but every field of the version is there, nulls where they are allowed,
and in flexible versions now and then tagged fields that no table knows.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from codec.control_records import CONTROL_TABLES
from codec.metadata_records import METADATA_TABLES
from codec.registry import known_versions, request_table, response_table
from codec.schema import Array, Field, Message, Scalar, Struct, Table

UNKNOWN_TAG_MIN: Final = 100

SCALARS: Final[Mapping[Scalar, st.SearchStrategy[Any]]] = {
    Scalar.BOOL: st.booleans(),
    Scalar.INT8: st.integers(-(2**7), 2**7 - 1),
    Scalar.INT16: st.integers(-(2**15), 2**15 - 1),
    Scalar.UINT16: st.integers(0, 2**16 - 1),
    Scalar.INT32: st.integers(-(2**31), 2**31 - 1),
    Scalar.UINT32: st.integers(0, 2**32 - 1),
    Scalar.INT64: st.integers(-(2**63), 2**63 - 1),
    Scalar.FLOAT64: st.floats(allow_nan=False),
    Scalar.UUID: st.binary(min_size=16, max_size=16),
    Scalar.STRING: st.text(max_size=6),
    Scalar.BYTES: st.binary(max_size=200),
    Scalar.RECORDS: st.binary(max_size=200),
}


def every_table() -> list[tuple[Message, int]]:
    """Each table that the codec has, in each version that it describes."""
    tables = []
    for api_key in range(128):
        for version in known_versions(api_key) or ():
            tables += [(request_table(api_key), version), (response_table(api_key), version)]
    return tables


def every_record() -> list[tuple[Table, int]]:
    """Each table of a metadata or control record, in each version that it describes."""
    tables = (*METADATA_TABLES.values(), *CONTROL_TABLES.values())
    return [(table, version) for table in tables for version in range(table.versions.first, table.versions.last + 1)]


@cache
def values(
    message: Table,
    version: int,
    scalars: tuple[tuple[str, st.SearchStrategy[Any]], ...] = (),
    *,
    unknown: bool = True,
) -> st.SearchStrategy[dict[str, Any]]:
    """Values of a body: what a decoder returns for its own encoding.

    Args:
        message: The table, of a message or of a record.
        version: A version that it describes.
        scalars: Pairs of a field name and what to draw for it in place of its type's strategy.
        unknown: Whether to add tagged fields that no table knows.
    """
    return _struct(message.body, version, message.is_flexible(version) and unknown, dict(scalars))


def messages(*, unknown: bool = True) -> st.SearchStrategy[tuple[Table, int, dict[str, Any]]]:
    """Any table, of messages and of records, in any of its versions, and a value of it."""
    return st.sampled_from([*every_table(), *every_record()]).flatmap(
        lambda of: values(of[0], of[1], unknown=unknown).map(lambda value: (of[0], of[1], value))
    )


def _struct(
    of: Struct, version: int, unknown: bool, scalars: Mapping[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    fields = {f.name: _field(f, version, unknown, scalars) for f in of.fields if version in f.versions}
    known = st.fixed_dictionaries(fields)
    if not unknown:
        return known
    tags = st.dictionaries(st.integers(UNKNOWN_TAG_MIN, 2**32 - 1), st.binary(max_size=5), min_size=1, max_size=2)
    return known | st.tuples(known, tags).map(lambda pair: pair[0] | {"unknown_tags": pair[1]})


def _field(
    field: Field, version: int, unknown: bool, scalars: Mapping[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[Any]:
    if field.name in scalars:
        return scalars[field.name]
    match field.type:
        case Array():
            element = field.type.element
            of: st.SearchStrategy[Any] = st.lists(
                _struct(element, version, unknown, scalars) if isinstance(element, Struct) else SCALARS[element],
                max_size=3,
            )
        case Struct():
            of = _struct(field.type, version, unknown, scalars)
        case _:
            of = SCALARS[field.type]
    return st.none() | of if field.nullable_in(version) else of
