"""Kafka's own Java classes as an oracle: one process a version of Kafka, asked line by line.

Knows nothing of our codec. The order of things to ask for, and the answers, are described in `java/Oracle.java`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.support.kafka.java import Java, end_group

SOURCE = Path(__file__).parent / "java" / "Oracle.java"


class Seen(NamedTuple):
    """What Java read, and the bytes it wrote from that."""

    encoded: bytes
    value: Any


class JavaError(Exception):
    """Java refused the bytes."""


class Oracle:
    """A running oracle; to be closed."""

    def __init__(self, version: str, folder: Path) -> None:
        """Compile the program against the jars of this version and start it."""
        self.version = version
        java = Java(version, folder)
        source = folder / SOURCE.name
        text = SOURCE.read_text()
        if version.startswith("3."):
            # Kafka 4.3 moved its record classes.
            text = text.replace("common.record.internal.", "common.record.")
        source.write_text(text)
        main_class, classes = java.compile(source)
        self._log = (folder / "oracle.log").open("w")
        self._process = java.start(main_class, stdin=subprocess.PIPE, stderr=self._log, classes=classes)

    def message(self, kind: str, number: int, version: int, encoded: bytes) -> Seen | None:
        """Have a `request`, `response`, `request-header`, `response-header` or `metadata` record read and written.

        Returns:
            None when this Kafka does not have this API or type in this version.

        Raises:
            JavaError: Java cannot read the bytes.
        """
        return self._seen(f"{kind} {number} {version} {encoded.hex()}")

    def records(self, encoded: bytes) -> Seen:
        """Have batches read; what comes back are batches of Java's own with the same records.

        Raises:
            JavaError: Java cannot read the bytes.
        """
        seen = self._seen(f"records {encoded.hex()}")
        assert seen is not None
        return seen

    def versions(self, api_key: int) -> range:
        """The versions of an API that this Kafka can read."""
        answer = self._ask(f"versions {api_key}")
        if answer == "none":
            return range(0)
        first, last = map(int, answer.split())
        return range(first, last + 1)

    def _seen(self, order: str) -> Seen | None:
        outcome, _, rest = self._ask(order).partition(" ")
        if outcome == "none":
            return None
        if outcome != "ok":
            raise JavaError(rest)
        encoded, _, value = rest.partition(" ")
        return Seen(bytes.fromhex(encoded), json.loads(value))

    def _ask(self, order: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer.endswith("\n"):
            raise AssertionError(f"the oracle ended: {Path(self._log.name).read_text()}")
        return answer.rstrip("\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        end_group(self._process)
        self._log.close()
