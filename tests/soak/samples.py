"""What a process holds, as the kernel and its own metrics tell, and whether that stays flat."""

import itertools
import os
import statistics
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from tests.support.sidecar_admin import SidecarAdmin

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
GROWTH_MAX: Final = 0.10
"""Growth of the median of memory from the second quarter of the run to the last; the first is for warming up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look.

    Attributes:
        rss_bytes: memory in use.
        descriptors: open files and sockets.
        listening: ports that are listened on.
        client_connections: as the sidecar counts them.
        broker_connections: as the sidecar counts them.
        held_requests: reads that wait now.
    """

    rss_bytes: int
    descriptors: int
    listening: frozenset[int]
    client_connections: int
    broker_connections: int
    held_requests: int


def look(pid: int, admin: SidecarAdmin) -> Sample:
    """The process now.

    Raises:
        OSError: It does not run, or its admin listener does not answer.
    """
    return Sample(
        rss_bytes=int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        listening=_listening(pid),
        client_connections=int(admin.metric("tidegate_client_connections")),
        broker_connections=int(admin.metric("tidegate_broker_connections")),
        held_requests=int(admin.metric("tidegate_held_requests")),
    )


@final
class Sampler:
    """Looks at regular times, until it is told to stop.

    Attributes:
        samples: in order.
    """

    def __init__(self, pid: int, admin: SidecarAdmin, interval_s: float) -> None:
        self.samples: list[Sample] = []
        self._pid = pid
        self._admin = admin
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")
        self._thread.start()

    def stop(self) -> None:
        """No further look."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self.samples.append(look(self._pid, self._admin))


def growth(values: Sequence[int]) -> float:
    """How much the median of the last quarter is above that of the second, as a fraction of the latter."""
    quarter = len(values) // 4
    if quarter == 0:
        raise ValueError("a run needs four samples or more to show growth")
    warm, last = statistics.median(values[quarter : 2 * quarter]), statistics.median(values[-quarter:])
    return last / warm - 1


def table(samples: Sequence[Sample], rows: int = 12) -> str:
    """Some of the samples, evenly spread, to be read by people."""
    step = max(1, len(samples) // rows)
    lines = ["    rss MB  descriptors  clients  brokers  held"]
    lines += [
        f"{s.rss_bytes / 1e6:10.1f}  {s.descriptors:11d}  {s.client_connections:7d}  {s.broker_connections:7d}"
        f"  {s.held_requests:4d}"
        for s in itertools.islice(samples, 0, None, step)
    ]
    return "\n".join(lines)


def _listening(pid: int) -> frozenset[int]:
    """Ports on which this process listens."""
    own = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            continue
    rows = itertools.chain.from_iterable(
        Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")
    )
    fields = (row.split() for row in rows)
    return frozenset(int(f[1].rpartition(":")[2], 16) for f in fields if f[3] == "0A" and f"socket:[{f[9]}]" in own)
