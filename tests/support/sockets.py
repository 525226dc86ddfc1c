"""Whom a process is connected to, as the kernel sees it. Linux only.

Sees every connection that lives longer than a few looks apart. A client that was told of a broker's address works there
until it is told of another, so that is long enough; a connection to bootstrap from can be over sooner.
"""

import contextlib
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

INTERVAL_S: Final = 0.02


def remote_ports(pid: int) -> set[int]:
    """The remote ports of all TCP connections of a process now; empty if it has ended."""
    own: set[str] = set()
    ports: set[int] = set()
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                own.add(os.readlink(descriptor))
        for table in ("tcp", "tcp6"):
            for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = row.split()
                if f"socket:[{fields[9]}]" in own:
                    ports.add(int(fields[2].rpartition(":")[2], 16))
    return ports - {0}


class ConnectionWatch:
    """Watches a process while the context is open.

    Attributes:
        ports: every remote port seen so far.
    """

    def __init__(self, pid: int) -> None:
        self.ports: set[int] = set()
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="connection watch")

    def look(self) -> None:
        """Look now."""
        self.ports |= remote_ports(self._pid)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL_S):
            self.look()
