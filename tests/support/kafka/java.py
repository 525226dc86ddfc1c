"""Java programs against the jars of one Kafka version: its nodes, its console tools, and our own small programs.

Must not know of clusters or addresses. Every process that is started here leads its own process group, so that it can
be ended with all it started and a Ctrl-C at the terminal does not reach it out of turn.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tests.support.kafka.errors import KafkaHarnessError
from tests.support.kafka.jars import jars

JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto")
TOOL_TIMEOUT_S = 120.0
LOG4J2 = """Configuration:
  Appenders:
    Console: {name: STDERR, target: SYSTEM_ERR, PatternLayout: {Pattern: "[%d] %p %m (%c)%n%throwable"}}
  Loggers:
    Root: {level: WARN, AppenderRef: [{ref: STDERR}]}
"""
LOG4J1 = """log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class Java:
    """Starts Java programs of one Kafka version; logs of Kafka go to standard error at level WARN."""

    def __init__(self, version: str, folder: Path) -> None:
        """Fetch the jars if need be and write the log configuration.

        Args:
            version: Kafka's.
            folder: where the log configuration and compiled classes are kept.
        """
        self.version = version
        self._libs = jars(version)
        self._folder = folder
        (folder / "log4j2.yaml").write_text(LOG4J2)
        (folder / "log4j.properties").write_text(LOG4J1)

    def start(
        self,
        main_class: str,
        *args: str,
        stdin: int | IO[str] | None = subprocess.DEVNULL,
        stdout: int | IO[str] | None = subprocess.PIPE,
        stderr: int | IO[str] | None = subprocess.PIPE,
        classes: Path | None = None,
    ) -> subprocess.Popen[str]:
        """Start a program and return at once. Whoever calls must end it."""
        return subprocess.Popen(
            self._command(main_class, args, classes),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def run(
        self,
        main_class: str,
        *args: str,
        stdin: str | None = None,
        timeout_s: float = TOOL_TIMEOUT_S,
        classes: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its exit code is the caller's to judge.

        Raises:
            KafkaHarnessError: if it has not ended after `timeout_s`; the message has what it printed.
        """
        process = self.start(main_class, *args, stdin=subprocess.PIPE, classes=classes)
        try:
            stdout, stderr = process.communicate(stdin, timeout_s)
        except subprocess.TimeoutExpired:
            end_group(process)
            stdout, stderr = process.communicate()
            raise KafkaHarnessError(f"{main_class} did not end within {timeout_s} s:\n{stdout}{stderr}") from None
        except BaseException:
            end_group(process)
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def compile(self, source: Path) -> tuple[str, Path]:
        """Compile one Java file, once for each content.

        Returns:
            The main class, which is the name of the file, and the folder with its classes.

        Raises:
            KafkaHarnessError: if it does not compile.
        """
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
        classes = self._folder / f"classes-{source.stem}-{digest}"
        if not classes.exists():
            command = ["javac", "-nowarn", "-d", str(classes), "-cp", f"{self._libs}/*", str(source)]
            compiled = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
            if compiled.returncode:
                raise KafkaHarnessError(f"{source.name} does not compile:\n{compiled.stderr}")
        return source.stem, classes

    def _command(self, main_class: str, args: Sequence[str], classes: Path | None) -> list[str]:
        class_path = f"{self._libs}/*" if classes is None else f"{classes}{os.pathsep}{self._libs}/*"
        logging = (
            f"-Dlog4j2.configurationFile={self._folder / 'log4j2.yaml'}",
            f"-Dlog4j.configuration=file:{self._folder / 'log4j.properties'}",
        )
        return ["java", *JVM_FLAGS, *logging, "-cp", class_path, main_class, *args]


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill a process with everything in its group, stopped ones too, and collect it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
