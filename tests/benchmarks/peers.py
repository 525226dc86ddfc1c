"""The stub broker and the client of the proxy's benchmark: C, so that they cost next to nothing beside a proxy.

Both are compiled with gcc when first wanted, into `build/bench`. `missing` says what is not there to do so.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.processes import running

SOURCES: Final = Path(__file__).parent / "native"
BUILD: Final = Path(__file__).resolve().parents[2] / "build" / "bench"


_NO_ANSWER: Final = 3
"""The client's exit code."""


class LoadError(Exception):
    """The client did not get its answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one run of the client found.

    Attributes:
        answers: all that came.
        answer_bytes: how large one of them was on average.
        rate: answers a second, without the first fifth of the time.
        p50_us, p99_us: how long an answer took.
    """

    answers: int
    answer_bytes: float
    rate: float
    p50_us: float
    p99_us: float


def missing() -> str | None:
    """Why neither can be built, or None."""
    return None if shutil.which("gcc") else "gcc is needed to compile the stub broker and the client"


@contextmanager
def stub(port: int, answers: Mapping[tuple[int, int], bytes]) -> Iterator[int]:
    """A broker on a port that answers each (API key, version) with these bytes behind the correlation id."""
    with tempfile.NamedTemporaryFile() as file:
        for (key, version), answer in answers.items():
            file.write(key.to_bytes(2, "big") + version.to_bytes(2, "big") + len(answer).to_bytes(4, "big") + answer)
        file.flush()
        with running([str(_built("stub")), str(port), file.name], port) as process:
            yield process.pid


def load(port: int, request: bytes, *, connections: int, in_flight: int, seconds: float) -> Found | None:
    """Send a whole frame again and again, so many at a time on each connection; None when no answer came in time.

    Raises:
        LoadError: A connection broke, or an answer came out of order.
    """
    with tempfile.NamedTemporaryFile() as file:
        file.write(request)
        file.flush()
        command = [str(_built("load")), str(port), str(connections), str(in_flight), str(seconds), file.name]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60 + seconds, check=False)
    if ended.returncode == _NO_ANSWER:
        return None
    if ended.returncode != 0:
        raise LoadError(ended.stderr.strip())
    received, answers, counted, counted_s, p50_us, p99_us = map(float, ended.stdout.split())
    return Found(
        answers=int(answers), answer_bytes=received / answers, rate=counted / counted_s, p50_us=p50_us, p99_us=p99_us
    )


def _built(name: str) -> Path:
    source, program = SOURCES / f"{name}.c", BUILD / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)], check=True)
    return program
