"""The scene: it finds ports, lags as told, tries again when a port is lost, and leaves nothing behind."""

import asyncio
import socket

import pytest

from tidegate.demo import scene as module
from tidegate.demo.scene import LAGGING, LOOPBACK, SceneFailed, scene

LAG_MS = 300


def is_free(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) != 0


async def test_one_broker_lags_behind_and_the_others_do_not() -> None:
    async with scene(LAG_MS) as stage:
        brokers = stage.backend.brokers
        assert {n: broker.replay_delay_ms.most_ms for n, broker in brokers.items()} == {1: 0, 2: 0, 3: LAG_MS}
        assert set(stage.lags()) == {1, 2, 3}
        assert brokers[LAGGING].address == stage.brokers[-1]


async def test_the_sidecar_serves_a_port_for_each_broker_and_nothing_is_left_behind() -> None:
    async with scene(0) as stage:
        places = {*stage.brokers, *stage.nodes}
        assert len(places) == 6
        assert not any(is_free(place) for place in places)
    assert all(is_free(place) for place in places)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("lost", range(6), ids=["bootstrap", "admin", "backend admin", "node 1", "node 2", "node 3"])
async def test_a_port_that_somebody_takes_meanwhile_is_no_failure(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    taken, free = module._free_ports(), module._free_ports()
    offers = iter([taken, free])
    monkeypatch.setattr(module, "_free_ports", lambda: next(offers))
    with socket.create_server((LOOPBACK, taken + lost)):
        async with scene(0) as stage:
            assert stage.bootstrap == f"{LOOPBACK}:{free}"


async def test_ports_that_are_taken_every_time_are_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = module._free_ports()
    monkeypatch.setattr(module, "_free_ports", lambda: taken)
    with socket.create_server((LOOPBACK, taken)), pytest.raises(SceneFailed, match=f"cannot listen on .*:{taken}"):
        async with scene(0):
            pass
