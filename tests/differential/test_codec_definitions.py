"""Our tables and numbers against Kafka's own: the definitions and classes inside the jars of Kafka 3.9 and 4.4."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.registry import (
    known_versions,
    request_header_version,
    request_table,
    response_header_version,
    response_table,
)
from codec.schema import Message
from tests.differential.definitions import Definition, definitions, versions_of
from tests.differential.shapes import kafkas_shapes, our_shapes

pytestmark = pytest.mark.kafka

VERSIONS: Final = ("3.9.1", "4.4.0")
Locate = Callable[[str], Path]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_table_has_kafkas_fields(version: str, kafka_jars: Locate) -> None:
    compared = 0
    for definition in definitions(kafka_jars(version), version):
        table = table_of(definition)
        if table is None:
            continue
        valid = versions_of(definition["validVersions"])
        assert valid is not None
        for api_version in range(valid.first, valid.last + 1):
            where = f"{definition['name']} v{api_version} of Kafka {version}"
            assert api_version in table.versions, where
            flexible = versions_of(definition["flexibleVersions"])
            assert table.is_flexible(api_version) == (flexible is not None and api_version in flexible), where
            assert our_shapes(table.body.fields, api_version) == kafkas_shapes(definition, definition, api_version), (
                where
            )
            compared += 1
    assert compared > 200


def test_the_tables_have_all_versions_and_no_more(kafka_jars: Locate) -> None:
    valid: dict[int, set[int]] = {}
    for version in VERSIONS:
        for definition in definitions(kafka_jars(version), version):
            accepted = versions_of(definition["validVersions"]) if table_of(definition) else None
            if accepted:
                valid.setdefault(definition["apiKey"], set()).update(range(accepted.first, accepted.last + 1))
    assert valid == {key: set(known_versions(key) or ()) for key in ApiKey if known_versions(key)}


def test_a_request_and_its_answer_have_the_same_versions() -> None:
    for key in ApiKey:
        if known_versions(key):
            assert request_table(key).versions == response_table(key).versions
            assert request_table(key).flexible == response_table(key).flexible


JAVA_NUMBERS: Final = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

public class Numbers {
    public static void main(String[] args) {
        for (Errors error : Errors.values())
            System.out.println("error " + error.name() + " " + error.code() + " "
                + (error.exception() instanceof RetriableException));
        for (ApiKeys key : ApiKeys.values()) {
            System.out.println("key " + key.name() + " " + key.id);
            ApiMessageType type = ApiMessageType.fromApiKey(key.id);
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(true); v++)
                System.out.println("header " + key.id + " " + v + " " + type.requestHeaderVersion(v) + " "
                    + type.responseHeaderVersion(v));
        }
    }
}
"""


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory, kafka_jars: Locate) -> Callable[[str, str], list[list[str]]]:
    """What Kafka's own classes say: a version and a kind of line to the words on those lines."""
    source = tmp_path_factory.mktemp("java") / "Numbers.java"
    source.write_text(JAVA_NUMBERS)
    said: dict[str, list[list[str]]] = {}

    def ask(version: str, kind: str) -> list[list[str]]:
        if version not in said:
            command = ["java", "-Xmx128m", "-cp", f"{kafka_jars(version)}/*", str(source)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
            said[version] = [line.split() for line in done.stdout.splitlines()]
        return [words[1:] for words in said[version] if words and words[0] == kind]

    return ask


@pytest.mark.parametrize("version", VERSIONS)
def test_header_versions_are_kafkas(version: str, numbers: Callable[[str, str], list[list[str]]]) -> None:
    lines = numbers(version, "header")
    assert len(lines) > 200
    for key, api_version, request_version, response_version in (map(int, line) for line in lines):
        assert request_header_version(key, api_version) == request_version, (key, api_version)
        assert response_header_version(key, api_version) == response_version, (key, api_version)


def test_error_codes_are_kafkas(numbers: Callable[[str, str], list[list[str]]]) -> None:
    kafkas = {(name, int(code), retriable == "true") for name, code, retriable in numbers("4.4.0", "error")}
    assert {(error.name, error.value, error.retriable) for error in ErrorCode} == kafkas


@pytest.mark.parametrize("version", VERSIONS)
def test_api_keys_are_kafkas(version: str, numbers: Callable[[str, str], list[list[str]]]) -> None:
    kafkas = {(name, int(key)) for name, key in numbers(version, "key")}
    ours = {(key.name, key.value) for key in ApiKey}
    renamed = {("LIST_CLIENT_METRICS_RESOURCES", 74)} if version == "3.9.1" else set()
    assert kafkas - ours == renamed
    if version == "4.4.0":
        assert ours == kafkas


def table_of(definition: Definition) -> Message | None:
    key = definition.get("apiKey")
    if key is None or known_versions(key) is None:
        return None
    return request_table(key) if definition["type"] == "request" else response_table(key)
