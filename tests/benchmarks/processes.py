"""Processes of a benchmark: started and ended, and what they use, as the kernel counts it."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.kafka.java import end_group
from tests.support.kafka.ports import HOST

START_TIMEOUT_S = 20.0


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[subprocess.Popen[str]]:
    """Run a server that listens on a port; it listens when the block begins and is gone when it has ended."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, text=True)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection((HOST, port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        yield process
    finally:
        end_group(process)


def cpu_s(pid: int) -> float:
    """The time that all threads of a process have spent on a processor so far."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        nanoseconds += int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def resident_mb(pid: int) -> float:
    """The memory of a process that is in memory now, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
