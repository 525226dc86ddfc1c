"""A cluster in a process: what it is made of, how it starts and ends, what it tells an operator."""

import asyncio
import json
import logging
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from backend import app
from backend.app import Backend, StartError, embedded, ready_line, settings_of
from backend.metadata.records import TopicRecord
from backend.storage.memory import MemoryStorage
from config.load import load_backend, parse_backend

EXAMPLE: Final = Path(__file__).parents[3] / "config" / "examples" / "backend.yaml"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def file_with(port: int, admin: int, controller: int | None = None, **keys: str) -> str:
    more = "\n".join(f"{key}: {value}" for key, value in keys.items())
    listen = f'listen: "127.0.0.1:{port}", controller_listen: "127.0.0.1:{controller or free_port()}"'
    return f"""
cluster_id: c
nodes:
  - {{id: 1, roles: [controller, broker], {listen}}}
admin: {{bind: "127.0.0.1:{admin}"}}
{more}
"""


def test_the_settings_of_the_example() -> None:
    settings = settings_of(load_backend(EXAMPLE))
    assert settings.cluster_id == "tidegate-example"
    assert sorted(settings.controllers) == [3001, 3002, 3003]
    assert settings.controllers[3001] == ("127.0.0.1", 9192)
    assert [(node.node_id, node.host, node.port, node.advertised_host) for node in settings.brokers] == [
        (1, "127.0.0.1", 9092, "127.0.0.1"),
        (2, "127.0.0.1", 9093, "127.0.0.1"),
        (3, "127.0.0.1", 9094, "127.0.0.1"),
    ]
    assert (settings.noop_interval_ms, settings.state_wait_ms, settings.admin) == (500, 3000, None)


def test_what_clients_are_told_may_differ_from_where_a_broker_listens() -> None:
    config = parse_backend(
        """
cluster_id: c
nodes:
  - {id: 7, roles: [broker], listen: "0.0.0.0:9092", advertised_host: kafka-7, replay_delay_ms: 5, publish_delay_ms: 6}
  - {id: 8, roles: [controller], controller_listen: "127.0.0.1:9093"}
defaults: {num_partitions: 3}
state_wait_ms: 0
""",
        "f",
        {},
    )
    settings = settings_of(config)
    (node,) = settings.brokers
    assert (node.host, node.advertised_host, node.replay_delay_ms, node.publish_delay_ms) == (
        "0.0.0.0",
        "kafka-7",
        5,
        6,
    )
    assert (settings.defaults.num_partitions, settings.state_wait_ms) == (3, 0)


async def test_an_embedded_cluster_serves_on_free_ports_and_ends() -> None:
    async with Backend(embedded()) as backend:
        assert backend.reasons() == []
        assert [backend.broker(node_id).publication.offset for node_id in (1, 2, 3)] == [backend.head_offset] * 3
        ports = [port for _, port in (broker.address for broker in backend.brokers.values())]
        assert len(set(ports)) == 3
        assert backend.bootstrap_servers == ",".join(f"127.0.0.1:{port}" for port in ports)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_the_delays_of_the_settings_are_in_force_once_it_has_started() -> None:
    settings = settings_of(
        parse_backend(file_with(free_port(), free_port()).replace("id: 1,", "id: 1, replay_delay_ms: 60000,"), "f", {})
    )
    async with asyncio.timeout(20), Backend(settings) as backend:
        assert backend.broker(1).replay_delay_ms.most_ms == 60_000
        assert backend.broker(1).is_serving


async def test_a_port_that_is_taken_ends_the_start_and_leaves_nothing_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        backend = Backend(settings_of(parse_backend(file_with(port, free_port()), "f", {})))
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use; free the"):
            await backend.start()
        backend = Backend(settings_of(parse_backend(file_with(free_port(), port), "f", {})))
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{port}: "):
            await backend.start()


async def test_a_start_that_hangs_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "START_TIMEOUT_S", 0.05)
    settings = replace(embedded(controllers=3, brokers=1), local=frozenset({1, 3001}))
    with pytest.raises(StartError, match=r"not ready after 0\.05 s: broker 1 does not serve; the log says more"):
        await Backend(settings).start()


async def test_the_admin_listener_tells_health_and_metrics() -> None:
    port, admin, controller = free_port(), free_port(), free_port()
    async with Backend(settings_of(parse_backend(file_with(port, admin, controller), "f", {}))) as backend:
        assert ready_line(backend) == (
            f"tidegate backend ready: bootstrap 127.0.0.1:{port}, brokers 1=127.0.0.1:{port}, "
            f"controllers 1=127.0.0.1:{controller}, admin 127.0.0.1:{admin}"
        )
        async with aiohttp.ClientSession(f"http://127.0.0.1:{admin}") as session:

            async def get(path: str) -> tuple[int, str]:
                async with session.get(path) as response:
                    return response.status, await response.text()

            assert await get("/livez") == (200, '{"status": "live"}')
            assert await get("/readyz") == (200, '{"ready": true, "reasons": []}')
            status, text = await get("/metrics")
            assert status == 200
            offset = backend.broker(1).publication.offset
            assert f'tidegate_backend_broker_visible_offset{{node_id="1"}} {offset:.1f}' in text.splitlines()
            assert 'tidegate_backend_broker_serving{node_id="1"} 1.0' in text.splitlines()
            await backend.broker(1).stop()
            status, text = await get("/readyz")
            assert (status, json.loads(text)["reasons"]) == (503, ["broker 1 does not serve"])
            _, text = await get("/metrics")
            assert 'tidegate_backend_broker_serving{node_id="1"} 0.0' in text.splitlines()
            assert "tidegate_backend_broker_lag_records{" not in text


def test_a_process_ends_with_0_on_a_signal() -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        os.kill(os.getpid(), signal.SIGTERM)

    assert asyncio.run(app.serve(parse_backend(file_with(free_port(), free_port()), "f", {}), say)) == 0
    assert said[0].startswith("tidegate backend ready: bootstrap 127.0.0.1:")


def test_a_node_that_cannot_go_on_ends_the_process_with_1(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(storage: MemoryStorage) -> None:
        raise OSError(28, "No space left on device")

    def say(line: str) -> None:
        monkeypatch.setattr(MemoryStorage, "sync", full)

    config = parse_backend(file_with(free_port(), free_port(), noop_interval_ms="1"), "f", {})
    assert asyncio.run(app.serve(config, say)) == 1
    assert "node 1: replica: OSError(28, 'No space left on device')" in caplog.text


async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    text = file_with(free_port(), free_port(), data_dir=str(tmp_path))
    async with Backend(settings_of(parse_backend(text, "f", {}))) as backend:
        offset = await backend.controller.append([TopicRecord(name="orders", topic_id=bytes([1] * 16))])
        epoch = backend.controllers[1].epoch
    async with Backend(settings_of(parse_backend(text, "f", {}))) as backend:
        image = backend.broker(1).publication.image
        assert "orders" in image.topics.by_name
        assert image.highest_offset > offset
        assert backend.controllers[1].epoch > epoch
    with pytest.raises(StartError, match=r"meta\.properties.* c\b.*another"):
        await Backend(settings_of(parse_backend(text.replace("cluster_id: c", "cluster_id: another"), "f", {}))).start()


async def test_a_damaged_file_is_named_and_nothing_starts(tmp_path: Path) -> None:
    text = file_with(free_port(), free_port(), data_dir=str(tmp_path))
    async with Backend(settings_of(parse_backend(text, "f", {}))):
        pass
    (segment,) = (tmp_path / "node-1" / "__cluster_metadata-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[30] ^= 1
    segment.write_bytes(content)
    with pytest.raises(StartError, match=r"00000000000000000000\.log is damaged at byte \d+: "):
        await Backend(settings_of(parse_backend(text, "f", {}))).start()


def test_a_port_that_is_taken_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert app.run(parse_backend(file_with(port, free_port()), "f", {})) == 2
    assert capsys.readouterr().err == (
        f"tidegate: cannot listen on 127.0.0.1:{port}: Address already in use; "
        "free the port or change it in the configuration\n"
    )


def test_whatever_a_callback_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    with caplog.at_level(logging.ERROR):
        app._unexpected(loop, {"message": "a callback", "exception": ValueError("x")})
    loop.close()
    assert caplog.messages == ["unexpected, please report: a callback"]
