"""Ends what a test run started, also when that run is killed: a process of its own that outlives its parent briefly.

Speaks lines on standard input: `watch PGID`, `forget PGID`, `remove FOLDER`. At end of file, which the kernel delivers
however the parent ends, it kills every watched process group and deletes the folders. Runs as a plain script; standard
library only.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys


class Watchdog:
    """The parent's end of the watchdog process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def watch(self, process_group: int) -> None:
        """Kill this process group when the parent ends."""
        self._say(f"watch {process_group}")

    def forget(self, process_group: int) -> None:
        """The group has ended and its number may be used again by others."""
        self._say(f"forget {process_group}")

    def remove(self, folder: str) -> None:
        """Delete this folder when the parent ends."""
        self._say(f"remove {folder}")

    def close(self) -> None:
        """Kill and delete everything now."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def main() -> None:
    """Read orders until the parent is gone, then clean up after it."""
    groups: set[int] = set()
    folders: list[str] = []
    for line in sys.stdin:
        order, _, value = line.rstrip("\n").partition(" ")
        match order:
            case "watch":
                groups.add(int(value))
            case "forget":
                groups.discard(int(value))
            case "remove":
                folders.append(value)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
