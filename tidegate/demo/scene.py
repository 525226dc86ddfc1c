"""Starts what the demo shows, in this process and on free loopback ports: a cluster that lags, and a sidecar before it.

Knows the two app modules by what they offer everybody, and the configuration. Nothing of the workload.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final, final

from backend import app as backend_app
from backend.app import Backend, embedded
from config.judge import judge
from config.sidecar import SidecarConfig
from config.values import HostPort
from sidecar import app as sidecar_app

LOOPBACK: Final = "127.0.0.1"
CONTROLLERS: Final = 3
BROKERS: Final = 3
LAGGING: Final = BROKERS
"""The broker that is late."""
READY_TIMEOUT_S: Final = 15.0
DRAIN_TIMEOUT_MS: Final = 2000
"""Somebody's client may still be connected when the demo ends."""

_FIRST_PORT, _LAST_PORT = 20_000, 30_000
"""Below the ports that systems give to outgoing connections."""
_TRIES: Final = 5
_PORTS: Final = 3 + BROKERS


class SceneFailed(Exception):
    """The demo cannot start; the text says why."""


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster and a sidecar that run.

    Attributes:
        bootstrap: where clients of the sidecar connect to.
        admin: the sidecar's admin listener, `HOST:PORT`; `backend_admin` is that of the cluster.
        brokers: the brokers themselves, in order of their ids; `nodes` is where the sidecar stands for each.
    """

    backend: Backend
    bootstrap: str
    admin: str
    backend_admin: str
    brokers: tuple[tuple[str, int], ...]
    nodes: tuple[tuple[str, int], ...]

    def lags(self) -> dict[int, int]:
        """How many records each broker is behind the head, by node id."""
        head = self.backend.head_offset
        return {node_id: max(0, head - broker.publication.offset) for node_id, broker in self.backend.brokers.items()}


@contextlib.asynccontextmanager
async def scene(lag_ms: int) -> AsyncIterator[Scene]:
    """A scene that plays until the context is left.

    Args:
        lag_ms: how late the last broker shows what was committed.

    Raises:
        SceneFailed: It cannot start.
    """
    async with contextlib.AsyncExitStack() as stack:
        for tries_left in reversed(range(_TRIES)):
            first_port = _free_ports()
            try:
                yielded = await _start(stack, first_port)
                break
            except (backend_app.StartError, sidecar_app.StartError) as error:
                # Somebody took a port between the look and the use.
                await stack.aclose()
                if not tries_left:
                    raise SceneFailed(str(error)) from error
        yielded.backend.broker(LAGGING).replay_delay_ms = lag_ms
        yield yielded


async def _start(stack: contextlib.AsyncExitStack, first_port: int) -> Scene:
    bootstrap, admin, backend_admin, *nodes = range(first_port, first_port + _PORTS)
    cluster = replace(embedded(controllers=CONTROLLERS, brokers=BROKERS), admin=(LOOPBACK, backend_admin))
    backend = await stack.enter_async_context(Backend(cluster))
    config, faults = judge(
        SidecarConfig,
        {
            "cluster": {"bootstrap_servers": backend.bootstrap_servers},
            "listeners": [{"bind": f"{LOOPBACK}:{bootstrap}", "node_ports": f"{nodes[0]}-{nodes[-1]}"}],
            "limits": {"drain_timeout_ms": DRAIN_TIMEOUT_MS},
            "admin": {"bind": f"{LOOPBACK}:{admin}"},
        },
    )
    assert config is not None, faults
    await _start_sidecar(stack, config)
    return Scene(
        backend=backend,
        bootstrap=str(HostPort(LOOPBACK, bootstrap)),
        admin=str(HostPort(LOOPBACK, admin)),
        backend_admin=str(HostPort(LOOPBACK, backend_admin)),
        brokers=tuple(broker.address for broker in backend.brokers.values()),
        nodes=tuple((LOOPBACK, port) for port in nodes),
    )


async def _start_sidecar(stack: contextlib.AsyncExitStack, config: SidecarConfig) -> None:
    ready = asyncio.Event()
    app = sidecar_app.App(config, lambda _line: ready.set())
    running = asyncio.create_task(app.run())

    async def end() -> None:
        app.stop()
        with contextlib.suppress(sidecar_app.StartError):
            await running

    stack.push_async_callback(end)
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((running, waiting), timeout=READY_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if running.done():
        running.result()
    if not ready.is_set():
        raise SceneFailed(
            f"the sidecar is not ready after {READY_TIMEOUT_S:.0f} s: {'; '.join(app.readiness().reasons)}"
        )


def _free_ports() -> int:
    """The first of `_PORTS` consecutive ports that nobody uses.

    Raises:
        SceneFailed: There seem to be none.
    """
    for _ in range(100):
        first = random.randrange(_FIRST_PORT, _LAST_PORT - _PORTS)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + _PORTS):
                stack.enter_context(socket.socket()).bind((LOOPBACK, port))
            return first
    raise SceneFailed(f"no {_PORTS} consecutive free ports from {_FIRST_PORT} to {_LAST_PORT} on {LOOPBACK}")
