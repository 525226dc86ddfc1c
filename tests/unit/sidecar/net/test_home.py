"""The connection of a client to its own broker: what is counted is what is open."""

import asyncio
import socket

import pytest
import uvloop

from sidecar.net.home import Home
from tests.support.fake_broker import FakeCluster
from tests.support.sidecar_app import serving

VISITS = 5
PATIENCE_S = 10.0


def test_a_home_that_is_closed_as_it_opens_is_not_counted_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Home.connection_made

    visited: asyncio.Queue[None] = asyncio.Queue()

    def made_and_closed(home: Home, transport: asyncio.BaseTransport) -> None:
        made(home, transport)
        home.close()
        visited.put_nowait(None)

    monkeypatch.setattr(Home, "connection_made", made_and_closed)

    async def visit() -> None:
        async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address)) as sidecar:
            counters = sidecar.app.driver.counters
            before = counters.broker_connections[1]
            for _ in range(VISITS):
                with socket.create_connection((sidecar.nodes[1].host, sidecar.nodes[1].port)):
                    await asyncio.wait_for(visited.get(), PATIENCE_S)
            async with asyncio.timeout(PATIENCE_S):
                while counters.broker_connections[1] > before:  # noqa: ASYNC110 - lies inside the code under test
                    await asyncio.sleep(0.005)
            assert counters.closed["broker", "ours"] == VISITS

    uvloop.run(visit())
