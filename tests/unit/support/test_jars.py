"""Whether real Kafka can run here, said in one sentence when it cannot."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.kafka import jars
from tests.support.kafka.errors import KafkaHarnessError

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A PATH with nothing on it but the scripts that a test installs, and an empty folder for the jars."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("TIDEGATE_KAFKA_DIR", str(tmp_path / "kafka"))

    def install(name: str, script: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    jars.missing.cache_clear()
    yield install
    jars.missing.cache_clear()


def test_without_java(install: Install) -> None:
    assert jars.missing("4.4.0") == "real Kafka needs Java 17 or later on the PATH"


def test_with_an_old_java(install: Install) -> None:
    install("java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    assert jars.missing("4.4.0") == 'real Kafka needs Java 17 or later, found openjdk version "11.0.2" 2019-01-15'


def test_maven_is_needed_until_the_jars_are_there(install: Install, tmp_path: Path) -> None:
    install("java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    assert jars.missing("4.4.0") == "Maven (mvn) is needed once to download Kafka 4.4.0"
    libs = tmp_path / "kafka" / "libs-4.4.0"
    libs.mkdir(parents=True)
    (libs / "kafka-clients-4.4.0.jar").touch()
    jars.missing.cache_clear()
    assert jars.missing("4.4.0") == "Maven (mvn) is needed once to download Kafka 4.4.0"
    (libs / "log4j-slf4j-impl-2.25.5.jar").touch()
    jars.missing.cache_clear()
    assert jars.missing("4.4.0") is None
    assert jars.jars("4.4.0") == libs


def test_maven_leaves_the_jars_in_place(install: Install, tmp_path: Path) -> None:
    install(
        "mvn",
        'for a in "$@"; do out="${a#-DoutputDirectory=}"; done; /bin/mkdir "$out"; : > "$out/kafka-clients-4.4.0.jar"',
    )
    libs = jars.jars("4.4.0")
    assert [file.name for file in libs.iterdir()] == ["kafka-clients-4.4.0.jar"]


def test_a_failed_download_leaves_nothing_and_says_what_maven_said(install: Install, tmp_path: Path) -> None:
    install("mvn", "echo no route to the repository; exit 1")
    with pytest.raises(KafkaHarnessError, match="no route to the repository"):
        jars.jars("4.4.0")
    assert [path.name for path in (tmp_path / "kafka").iterdir()] == ["libs-4.4.0.lock"]
