"""The sidecar under test, in the loop of the test, so that a test can look at its core and count its probes.

    async with serving(cluster.bootstrap_servers, consistency={"expose_state": True}) as sidecar:
        client = await StateClient.open(sidecar.nodes[1])

`tests.support.sidecar` runs the command instead, for tests that need the real thing from outside.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from config.sidecar import SidecarConfig
from sidecar.app import App
from sidecar.core.ids import NodeId, Seq
from tests.support.address import Address
from tests.support.kafka.ports import free_ports

NODE_PORTS = 4
START_TIMEOUT_S = 20.0
END_TIMEOUT_S = 20.0


class ServingSidecar:
    """A sidecar that serves.

    Attributes:
        app: all of it.
        nodes: where clients find each broker.
        probes: position probes sent so far.
        heads: questions about the head so far.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.nodes: dict[int, Address] = {}
        self.probes = 0
        self.heads = 0
        links = app.driver.links
        probe, probe_head = links.probe, links.probe_head

        def counted_probe(node_id: NodeId, asked: Seq) -> None:
            self.probes += 1
            probe(node_id, asked)

        def counted_head(node_id: NodeId, asked: Seq) -> None:
            self.heads += 1
            probe_head(node_id, asked)

        links.probe = counted_probe  # type: ignore[method-assign]
        links.probe_head = counted_head  # type: ignore[method-assign]


@contextlib.asynccontextmanager
async def serving(
    bootstrap: str, *, listener: Mapping[str, Any] | None = None, **sections: Mapping[str, Any]
) -> AsyncIterator[ServingSidecar]:
    """A sidecar in front of these brokers, with these sections of the configuration; ended at once afterwards.

    Args:
        listener: keys of its only listener besides the ports.
    """
    port, admin, *node_ports = free_ports(2 + NODE_PORTS)
    tree: dict[str, Any] = {
        "listeners": [
            {"bind": f"127.0.0.1:{port}", "node_ports": f"{node_ports[0]}-{node_ports[-1]}", **(listener or {})}
        ],
        "admin": {"bind": f"127.0.0.1:{admin}"},
        "limits": {"drain_timeout_ms": 0},
        **sections,
    }
    tree["cluster"] = {"bootstrap_servers": bootstrap.split(","), **sections.get("cluster", {})}
    lines: asyncio.Queue[str] = asyncio.Queue()
    app = App(SidecarConfig.model_validate(tree), lines.put_nowait)
    task = asyncio.create_task(app.run())
    try:
        sidecar = ServingSidecar(app)
        async with asyncio.timeout(START_TIMEOUT_S):
            await lines.get()
        for party in app.driver.listeners:
            for node_id in app.driver.core.cluster.addresses:
                at = party.ports.advertised(node_id)
                assert at is not None, "every broker has a port"
                sidecar.nodes[node_id] = Address(*at)
        yield sidecar
    finally:
        app.stop()
        app.stop()
        async with asyncio.timeout(END_TIMEOUT_S):
            await task
