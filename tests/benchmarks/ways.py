"""The ways from a client to a broker that are compared: none in between, HAProxy, a bare relay, the sidecar."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.processes import running
from tests.support.kafka.ports import HOST, free_ports
from tests.support.sidecar import SidecarProcess

DIRECT: Final = "direct"
HAPROXY: Final = "HAProxy"
HAPROXY_LARGE: Final = "HAProxy 128 KiB"
RELAY: Final = "relay"
SIDECAR: Final = "sidecar"

HAPROXY_THREADS: Final = 2
LARGE_BUFFER_BYTES: Final = 131072


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where a client connects, and the process in between; None for none."""

    port: int
    pid: int | None = None


def missing() -> str | None:
    """Why HAProxy's columns are left out, or None."""
    return None if shutil.which("haproxy") else "haproxy is not installed: its columns and all ratios are left out"


@contextmanager
def ways(broker_port: int) -> Iterator[Mapping[str, Way]]:
    """All ways to one broker, each proxy in a process of its own."""
    with ExitStack() as stack:
        found = {DIRECT: Way(port=broker_port)}
        port, large_port, relay_port = free_ports(3)
        if missing() is None:
            for name, at, buffer_bytes in ((HAPROXY, port, None), (HAPROXY_LARGE, large_port, LARGE_BUFFER_BYTES)):
                found[name] = stack.enter_context(haproxy(at, broker_port, buffer_bytes))
        command = [sys.executable, "-m", "tests.benchmarks.relay", str(relay_port), str(broker_port)]
        found[RELAY] = Way(port=relay_port, pid=stack.enter_context(running(command, relay_port)).pid)
        found[SIDECAR] = stack.enter_context(sidecar(broker_port))
        yield found


@contextmanager
def sidecar(broker_port: int) -> Iterator[Way]:
    """The sidecar with its default settings in front of one broker."""
    with SidecarProcess(f"{HOST}:{broker_port}") as process:
        (node,) = process.nodes.values()
        yield Way(port=node.port, pid=process.pid)


@contextmanager
def haproxy(port: int, broker_port: int, buffer_bytes: int | None) -> Iterator[Way]:
    """HAProxy that forwards bytes; its default buffers, or these."""
    tune = "" if buffer_bytes is None else f"    tune.bufsize {buffer_bytes}\n"
    text = f"""global
    nbthread {HAPROXY_THREADS}
    maxconn 4096
{tune}
defaults
    mode tcp
    timeout connect 5s
    timeout client 600s
    timeout server 600s

listen broker
    bind {HOST}:{port}
    server broker {HOST}:{broker_port}
"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "haproxy.cfg"
        file.write_text(text)
        with running(["haproxy", "-db", "-q", "-f", str(file)], port) as process:
            yield Way(port=port, pid=process.pid)
