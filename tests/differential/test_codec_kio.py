"""Our tables against kio's generated classes: the same bytes, read into the same fields, written as the same bytes.

kio is generated from Kafka's own definitions by people we do not know, which makes it a good second opinion. It models
some fields more narrowly (known error codes, milliseconds as timedelta, times as datetime); values are drawn from what
it can hold.
"""

import dataclasses
import enum
import io
import sys
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from codec.api_keys import ApiKey
from codec.compiled import encoder
from codec.schema import Message
from tests.support.message_values import every_table, values

UUID_ZERO: Final = bytes(16)

NARROW: Final = {
    "error_code": st.sampled_from([int(code) for code in KioErrorCode]),
    "timedelta_i32": st.integers(0, 2**31 - 1),
    "timedelta_i64": st.integers(0, 2**40),
    "datetime_i64": st.integers(0, 2**40),
}
"""What kio can hold, by the kind of field that it says it has."""


def kio_has(message: Message, version: int) -> bool:
    versions = schema_name_map[api_key_map[message.api_key]] if message.api_key in api_key_map else {}
    kind = EntityType.request if message.direction == "request" else EntityType.response
    return version in versions and kind in versions[version]


TABLES: Final = [(message, version) for message, version in every_table() if kio_has(message, version)]


def test_kio_knows_most_of_our_tables() -> None:
    """Otherwise the comparison below would prove little."""
    unknown = {message.api_key for message, _ in every_table()} - {message.api_key for message, _ in TABLES}
    assert unknown == {ApiKey.UNREGISTER_CONTROLLER}
    assert len(TABLES) > 0.8 * len(every_table())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TABLES), st.data())
def test_kio_reads_the_same_and_writes_the_same(table: tuple[Message, int], data: st.DataObject) -> None:
    message, version = table
    schema = kio_class(message, version)
    value = data.draw(values(message, version, narrowed(schema), unknown=False))
    body = encoder(message, version)(value)
    entity, size = entity_reader(schema)(body, 0)
    assert size == len(body)
    assert_same(value, entity)
    written = io.BytesIO()
    entity_writer(schema)(written, entity)
    assert written.getvalue() == body


def kio_class(message: Message, version: int) -> Any:
    load: Callable[[int, int], Any] = load_request_schema if message.direction == "request" else load_response_schema
    return load(message.api_key, version)


@cache
def narrowed(schema: Any) -> tuple[tuple[str, st.SearchStrategy[Any]], ...]:
    """What to draw for the fields, by our names, that kio models more narrowly than Kafka."""
    found: dict[str, st.SearchStrategy[Any]] = {}
    for part in vars(sys.modules[schema.__module__]).values():
        if not isinstance(part, type) or not dataclasses.is_dataclass(part):
            continue
        for field in dataclasses.fields(part):
            kind = field.metadata.get("kafka_type")
            if kind in NARROW:
                found[field.name] = found[f"{field.name}_ms"] = NARROW[kind]
    return tuple(found.items())


def assert_same(ours: Any, kios: Any) -> None:
    """Compare field by field; kio drops the unit from the names of durations and times."""
    match ours:
        case dict():
            names = {f.name: f.name if f.name in ours else f"{f.name}_ms" for f in dataclasses.fields(kios)}
            assert set(names.values()) == set(ours)
            for kios_name, name in names.items():
                assert_same(ours[name], getattr(kios, kios_name))
        case list():
            assert len(ours) == len(kios)
            for one, other in zip(ours, kios, strict=True):
                assert_same(one, other)
        case _:
            assert ours == plain(kios) or (ours == UUID_ZERO and kios is None)


def plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return int(value.value)
        case timedelta():
            return round(value.total_seconds() * 1000)
        case datetime():
            return round(value.timestamp() * 1000)
        case uuid.UUID():
            return value.bytes
        case _:
            return value
