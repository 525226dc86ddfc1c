"""Nodes of the backend are killed with SIGKILL under a load of writes and linearizable reads, and started again.

A third of a minute here, ten minutes in the nightly run, which prints how long the cluster was without a leader.
"""

import asyncio
import os
import random
import statistics
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.backend_processes import BackendProcesses
from tests.support.kills import Client, History, final_values, kill_and_start, read, write

NIGHTLY: Final = bool(os.environ.get("TIDEGATE_NIGHTLY"))
SECONDS: Final = 600 if NIGHTLY else 18
PAUSE_S: Final = (2.0, 5.0) if NIGHTLY else (1.0, 3.0)
WRITERS: Final = 6
READERS: Final = 4
WITHOUT_LEADER_S_MAX: Final = 10.0
SETTLE_S: Final = 60
SEED: Final = 20261130


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 240)
async def test_nothing_acknowledged_is_lost_and_no_linearizable_read_goes_back(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with BackendProcesses(tmp_path, settings={"read_consistency": "linearizable"}) as cluster:
        cluster.start(*cluster.controllers, *cluster.brokers)
        await asyncio.to_thread(cluster.wait_ready, *cluster.controllers, *cluster.brokers)
        history, stop = History(), asyncio.Event()
        addresses = [*cluster.brokers.values()]
        clients = [Client(addresses, number) for number in range(WRITERS + READERS)]
        load = [asyncio.create_task(write(history, clients[n], n, stop)) for n in range(WRITERS)]
        load += [asyncio.create_task(read(history, client, stop)) for client in clients[WRITERS:]]
        deaths = await kill_and_start(cluster, rng, time.monotonic() + SECONDS, PAUSE_S)
        async with asyncio.timeout(SETTLE_S):
            await history.commit_after(time.monotonic())
            stop.set()
            await asyncio.gather(*load)
            floors = dict(history.floors)
            for address in addresses:
                values = await final_values(address, floors)
                history.saw(values, floors, f"in the end, the broker at {address}")
        await asyncio.gather(*(client.close() for client in clients))
        assert history.faults == []
        await asyncio.to_thread(cluster.wait_ready, *cluster.controllers, *cluster.brokers)
        for node_id in (*cluster.controllers, *cluster.brokers):
            assert "ERROR" not in cluster.log(node_id), cluster.log(node_id)[-4000:]
            assert await asyncio.to_thread(cluster.stop, node_id) == 0
    waits_s = history.waits_s(deaths)
    leaders = sum(led for _, led in deaths)
    print(  # noqa: T201 -- what the nightly run is for
        f"{history.acknowledged} writes acknowledged, {history.unknown} unknown, {history.reads} reads; "
        f"{len(deaths)} nodes killed, {leaders} of them leaders; "
        f"next commit after {statistics.median(waits_s):.2f} s (median), {waits_s[-1]:.2f} s (worst)"
    )
    assert history.acknowledged > SECONDS
    assert history.reads > SECONDS
    assert len(waits_s) >= 2
    assert waits_s[-1] < WITHOUT_LEADER_S_MAX
