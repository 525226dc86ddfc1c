"""Our tables of metadata and control records against Kafka's own definitions, in the jars of Kafka 3.9 and 4.4."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from codec.control_records import CONTROL_TABLES, ControlType
from codec.metadata_records import METADATA_TABLES
from codec.schema import Record
from tests.differential.definitions import Definition, definitions, metadata_definitions, versions_of
from tests.differential.shapes import kafkas_shapes, our_shapes

pytestmark = pytest.mark.kafka

VERSIONS: Final = ("3.9.1", "4.4.0")
CONTROL_NAMES: Final = {table.title for table in CONTROL_TABLES.values()}

Locate = Callable[[str], Path]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_metadata_record_has_kafkas_fields(version: str, kafka_jars: Locate) -> None:
    records = {d["apiKey"]: d for d in metadata_definitions(kafka_jars(version), version)}
    assert len(records) >= 25
    for type_id, definition in records.items():
        assert METADATA_TABLES[type_id].title == definition["name"]
        compare(METADATA_TABLES[type_id], definition, version)


def test_every_control_record_has_kafkas_fields(kafka_jars: Locate) -> None:
    found = {version: control_definitions(kafka_jars(version), version) for version in VERSIONS}
    assert set(found["4.4.0"]) == CONTROL_NAMES
    for table in CONTROL_TABLES.values():
        for version, of in found.items():
            if table.title in of:
                compare(table, of[table.title], version)


def test_the_tables_have_all_versions_and_no_more(kafka_jars: Locate) -> None:
    kafkas: dict[str, set[int]] = {}
    for version in VERSIONS:
        of = (*metadata_definitions(kafka_jars(version), version), *control_of(kafka_jars(version), version))
        for definition in of:
            valid = versions_of(definition["validVersions"])
            assert valid is not None
            kafkas.setdefault(definition["name"], set()).update(range(valid.first, valid.last + 1))
    ours = {t.title: set(range(t.versions.first, t.versions.last + 1)) for t in tables()}
    assert ours == kafkas


def test_control_types_are_kafkas(kafka_jars: Locate) -> None:
    assert [table.type_id for table in CONTROL_TABLES.values()] == list(ControlType)


def tables() -> Iterable[Record]:
    return (*METADATA_TABLES.values(), *CONTROL_TABLES.values())


def control_of(libs: Path, version: str) -> list[Definition]:
    return [d for d in definitions(libs, version) if d["name"] in CONTROL_NAMES]


def control_definitions(libs: Path, version: str) -> Mapping[str, Definition]:
    return {definition["name"]: definition for definition in control_of(libs, version)}


def compare(table: Record, definition: Definition, version: str) -> None:
    valid, flexible = versions_of(definition["validVersions"]), versions_of(definition["flexibleVersions"])
    assert valid is not None
    for of in range(valid.first, valid.last + 1):
        where = f"{definition['name']} v{of} of Kafka {version}"
        assert of in table.versions, where
        assert table.is_flexible(of) == (flexible is not None and of in flexible), where
        assert our_shapes(table.body.fields, of) == kafkas_shapes(definition, definition, of), where
