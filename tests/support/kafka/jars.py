"""Kafka's jars: fetched once with Maven into one folder, shared by every run.

Must not know what is done with them. Facts about Java and Maven that decide whether tests with real Kafka can run
at all also live here.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.support.kafka.errors import KafkaHarnessError

VERSIONS = ("4.4.0", "3.9.1")
JAVA_MAJOR_MIN = 17
DOWNLOAD_TIMEOUT_S = 900
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>tidegate.tests</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
{dependencies}
</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"
# Kafka 4 leaves the choice of a logger to its own distribution; without one its nodes die without a word.
LOGGERS = {"4.4.0": ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.5")}


def kafka_dir() -> Path:
    """The folder that keeps jars and templates: `TIDEGATE_KAFKA_DIR`, or `.kafka` at the top of the repository."""
    default = Path(__file__).resolve().parents[3] / ".kafka"
    return Path(os.environ.get("TIDEGATE_KAFKA_DIR") or default).resolve()


@cache
def missing(version: str) -> str | None:
    """Why real Kafka of this version cannot run here, or None when it can."""
    try:
        output = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return f"real Kafka needs Java {JAVA_MAJOR_MIN} or later on the PATH"
    found = re.search(r'version "(\d+)', output)
    if not found or int(found[1]) < JAVA_MAJOR_MIN:
        return f"real Kafka needs Java {JAVA_MAJOR_MIN} or later, found {output.splitlines()[0]}"
    if not _complete(kafka_dir() / f"libs-{version}", version) and shutil.which("mvn") is None:
        return f"Maven (mvn) is needed once to download Kafka {version}"
    return None


def jars(version: str) -> Path:
    """The folder with every jar that Kafka `version` needs; downloads it if it is not there yet.

    Safe when several processes ask at once. A download that fails halfway leaves nothing behind.

    Raises:
        KafkaHarnessError: if Maven cannot download the jars.
    """
    folder = kafka_dir()
    libs = folder / f"libs-{version}"
    if _complete(libs, version):
        return libs
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"libs-{version}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _complete(libs, version):
            _download(folder, libs, version)
    return libs


def _complete(libs: Path, version: str) -> bool:
    needed = [f"kafka-clients-{version}.jar"]
    if version in LOGGERS:
        needed.append("{1}-{2}.jar".format(*LOGGERS[version]))
    return all((libs / name).exists() for name in needed)


def _download(folder: Path, libs: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix="download-") as name:
        scratch = Path(name)
        pom = scratch / "pom.xml"
        artifacts = [("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-tools")]
        if version in LOGGERS:
            artifacts.append(LOGGERS[version])
        pom.write_text(POM.format(dependencies="\n".join(DEPENDENCY.format(*artifact) for artifact in artifacts)))
        command = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={scratch}/libs",
        ]
        try:
            subprocess.run(
                command,
                check=True,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=DOWNLOAD_TIMEOUT_S,
            )
        except subprocess.CalledProcessError as error:
            raise KafkaHarnessError(f"Maven could not download Kafka {version}:\n{error.stdout}") from error
        except subprocess.TimeoutExpired as error:
            raise KafkaHarnessError(f"Maven took over {DOWNLOAD_TIMEOUT_S} s to download Kafka {version}") from error
        if libs.exists():
            shutil.rmtree(libs)
        os.replace(scratch / "libs", libs)
