"""What a test run starts must end with it, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kafka.watchdog import Watchdog

# Prints a line when it runs, then waits for a signal; holds its standard output open as long as it lives.
SLEEPER = "import signal; print('up', flush=True); signal.pause()"
START = f"""
import os, signal, subprocess, sys
from tests.support.kafka.watchdog import Watchdog
watchdog = Watchdog()
watchdog.remove(sys.argv[1])
watchdog.watch(subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], start_new_session=True).pid)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def sleeper() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == "up\n"
    return process


def test_closing_ends_what_is_watched_and_spares_what_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    watched, forgotten = sleeper(), sleeper()
    watchdog = Watchdog()
    watchdog.remove(str(folder))
    for process in (watched, forgotten):
        watchdog.watch(process.pid)
    watchdog.forget(forgotten.pid)
    watchdog.close()
    assert watched.wait(20) == -signal.SIGKILL
    assert not folder.exists()
    assert forgotten.poll() is None
    os.killpg(forgotten.pid, signal.SIGKILL)
    forgotten.wait(20)


@pytest.mark.parametrize("end", ["returns", "killed"])
def test_nothing_survives_the_run(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    root = Path(__file__).parents[3]
    # Ends only when the last process that holds this standard output, watchdog and sleeper among them, has ended.
    subprocess.run(
        [sys.executable, "-c", START, str(folder), end], cwd=root, stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert not folder.exists()
