"""`tidegate demo` as a user starts it: what it counts, what it prints where, and how it ends."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

COMMAND = (sys.executable, "-P", "-m", "tidegate", "demo")
READS_MIN = 300
FIRST_LINE_S = 5.0
"""How soon the demo must show something; on a machine that does other things too, three times that."""


@contextmanager
def demo(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_direct_reads_are_stale_and_those_through_the_sidecar_never() -> None:
    with demo("--seconds", "15", "--json") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    (line,) = out.splitlines()
    document = json.loads(line)
    assert document.keys() == {"direct", "sidecar", "seconds", "lag_ms", "read_ms_p50", "admin"}
    direct, sidecar = document["direct"], document["sidecar"]
    assert min(direct["reads"], sidecar["reads"]) >= READS_MIN
    # One broker in three is late, and workers are told at once of what they wrote.
    assert direct["stale"] >= direct["reads"] / 5
    assert sidecar["stale"] == 0
    assert (direct["failed"], sidecar["failed"]) == (0, 0)
    assert document["lag_ms"] == 500
    assert 15 <= document["seconds"] < 17
    assert all(document["read_ms_p50"][way] > 0 for way in ("direct", "sidecar"))
    assert errors.startswith("tidegate demo: broker 3 shows every change 500 ms late; ")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_the_last_line_and_code_0(signum: signal.Signals) -> None:
    begun_s = time.monotonic()
    with demo("--lag-ms", "300") as process:
        assert process.stdout is not None
        assert "broker 3 shows every change 300 ms late" in process.stdout.readline()
        assert time.monotonic() - begun_s < 3 * FIRST_LINE_S
        assert "through the sidecar: " in process.stdout.readline()
        process.send_signal(signum)
        out, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
    last = out.splitlines()[-1]
    assert " 0 stale" in last.partition("through the sidecar")[2]


@pytest.mark.parametrize(
    "arguments", [("--seconds", "0"), ("--lag-ms", "-1"), ("--lag-ms", "60001"), ("--seconds", "soon"), ("now",)]
)
def test_wrong_usage_starts_nothing(arguments: tuple[str, ...]) -> None:
    with demo(*arguments) as process:
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert "Error: " in errors
