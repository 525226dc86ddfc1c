"""The life of a sidecar on loopback, in front of a scripted cluster: start, admin answers, faults, drain."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse

from codec.api_keys import ApiKey
from config.sidecar import SidecarConfig
from sidecar.app import App, StartError
from sidecar.core.addresses import PortsExhausted
from sidecar.core.ids import NodeId
from sidecar.net.client import Client
from tests.support.address import Address
from tests.support.fake_broker import Ask, FakeCluster
from tests.support.kafka.ports import free_ports
from tests.support.raw_client import API_VERSIONS, RawClientError, RawConnection

NODE_PORTS = 4
PATIENCE_S = 20.0
ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
FAST = {"idle_interval_ms": 20, "min_interval_ms": 1, "timeout_ms": 500}


def settings(*bootstrap: Address, **sections: Any) -> SidecarConfig:
    """A configuration on free ports in front of these brokers."""
    port, admin, *node_ports = free_ports(2 + NODE_PORTS)
    tree: dict[str, Any] = {
        "cluster": {"bootstrap_servers": [str(address) for address in bootstrap], "probe": FAST},
        "listeners": [{"bind": f"127.0.0.1:{port}", "node_ports": f"{node_ports[0]}-{node_ports[-1]}"}],
        "admin": {"bind": f"127.0.0.1:{admin}"},
        "limits": {"drain_timeout_ms": 0},
        **sections,
    }
    return SidecarConfig.model_validate(tree)


class Running:
    """A sidecar that runs in this loop."""

    def __init__(self, config: SidecarConfig) -> None:
        self.config = config
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.app = App(config, self.lines.put_nowait)
        self.task = asyncio.create_task(self.app.run())
        self.bootstrap = Address(config.listeners[0].bind.host, config.listeners[0].bind.port)
        self.first_port = config.listeners[0].node_ports.first

    async def ready(self) -> str:
        """The ready line."""
        line = asyncio.create_task(self.lines.get())
        await asyncio.wait((line, self.task), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            self.task.result()
        assert line.done(), "it is not ready yet"
        return line.result()

    async def get(self, path: str, method: str = "GET") -> tuple[int, Any]:
        """Status and JSON of an admin path."""
        url = f"http://{self.config.admin.bind}{path}"
        async with aiohttp.ClientSession() as session, session.request(method, url) as answer:
            return answer.status, await answer.json()

    async def end(self) -> None:
        """Ends it at once."""
        self.app.stop()
        self.app.stop()
        await asyncio.wait_for(self.task, PATIENCE_S)


@contextlib.asynccontextmanager
async def running(config: SidecarConfig) -> AsyncIterator[Running]:
    sidecar = Running(config)
    try:
        yield sidecar
    finally:
        if not sidecar.task.done():
            await sidecar.end()


async def until(holds: Callable[[], bool]) -> None:
    """Lets the loop go on until it is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for lies inside the code under test
            await asyncio.sleep(0.005)


async def readiness(sidecar: Running, ready: bool) -> dict[str, Any]:
    """What `/readyz` says once it is, or is not, ready."""
    await until(lambda: sidecar.app.readiness().ready is ready)
    status, found = await sidecar.get("/readyz")
    assert status == (200 if ready else 503)
    assert isinstance(found, dict)
    return found


# Start


@pytest.mark.row("2.1")
@pytest.mark.row("2.3")
async def test_the_ready_line_names_all_ports_and_they_are_open() -> None:
    async with FakeCluster(2) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        first = sidecar.first_port
        assert await sidecar.ready() == (
            f"tidegate ready: bootstrap {sidecar.bootstrap}, nodes 1=127.0.0.1:{first} 2=127.0.0.1:{first + 1}, "
            f"admin {sidecar.config.admin.bind}"
        )
        for port in (sidecar.bootstrap.port, first, first + 1):
            async with await RawConnection.open(Address("127.0.0.1", port)) as client:
                assert await client.api_versions()
        assert await readiness(sidecar, True) == {"ready": True, "reasons": [], "guarantee": "full"}


@pytest.mark.row("6.6")
async def test_it_waits_for_a_cluster_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster(2)
    async with cluster:
        addresses = [broker.address for broker in cluster.brokers.values()]
    async with running(settings(*addresses)) as sidecar:
        await until(lambda: "cannot connect" in str(sidecar.app.discovery.fault))
        found = await readiness(sidecar, False)
        assert found["guarantee"] == "none"
        assert all(str(address) in found["reasons"][0] for address in addresses)
        assert found["reasons"][-1] == "no broker reachable"
        assert (await sidecar.get("/livez")) == (200, {"status": "live"})
        first, again = sidecar.app.discovery.rounds, 3
        await until(lambda: sidecar.app.discovery.rounds >= first + again)
        async with cluster:
            assert await sidecar.ready()
            await readiness(sidecar, True)
            await sidecar.end()
    assert len([r for r in caplog.records if "cannot describe the cluster" in r.message]) == 1


def occupied(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


async def test_a_taken_bootstrap_port_is_a_start_error() -> None:
    config = settings(Address("127.0.0.1", 9))
    with occupied(config.listeners[0].bind.port):
        async with running(config) as sidecar:
            with pytest.raises(
                StartError, match=r"^cannot listen on .*: Address already in use; change listeners\[0\]"
            ):
                await sidecar.task


async def test_a_taken_admin_port_is_a_start_error() -> None:
    config = settings(Address("127.0.0.1", 9))
    with occupied(config.admin.bind.port):
        async with running(config) as sidecar:
            with pytest.raises(StartError, match=r"^cannot listen on .*: .*in use; change admin\.bind"):
                await sidecar.task


async def test_a_taken_node_port_is_a_start_error() -> None:
    async with FakeCluster(2) as cluster:
        config = settings(cluster.brokers[1].address)
        with occupied(config.listeners[0].node_ports.first + 1):
            async with running(config) as sidecar:
                with pytest.raises(StartError, match=r"port of broker 2; free it or change listeners\[0\]\.node_ports"):
                    await sidecar.ready()


@pytest.mark.row("2.3")
async def test_a_node_port_that_is_taken_later_makes_it_unready_until_it_is_free() -> None:
    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        (listener,) = sidecar.app.driver.listeners
        with occupied(sidecar.first_port + 1):
            listener.serve(NodeId(2))
            found = await readiness(sidecar, False)
            assert "broker 2 on listener default: cannot listen on" in found["reasons"][0]
        await readiness(sidecar, True)


@pytest.mark.row("2.2")
async def test_a_broker_without_a_port_is_said_and_does_not_block() -> None:
    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        (listener,) = sidecar.app.driver.listeners
        with contextlib.suppress(PortsExhausted):
            listener.ports.assign(map(NodeId, range(2, 2 + NODE_PORTS)))
        listener.serve(NodeId(99))
        found = await readiness(sidecar, True)
        assert found["reasons"] == ["broker 99 has no port on listener default"]


# What it says


async def test_brokers_and_head() -> None:
    async with FakeCluster(2) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        core = sidecar.app.driver.core
        offset = cluster.commit(seen_by=(1,))
        await until(lambda: bool((head := core.cluster.view.head) and head.offset == offset))
        await until(lambda: core.cluster.view.brokers[NodeId(1)].visible == offset)
        status, rows = await sidecar.get("/brokers")
        assert status == 200
        assert [row["node_id"] for row in rows] == [1, 2]
        for row, lag, visible in zip(rows, (0, 1), (offset, offset - 1), strict=True):
            node_id = row["node_id"]
            assert row["address"] == str(cluster.brokers[node_id].address)
            assert row["port"] == sidecar.first_port + node_id - 1
            assert row["ports"] == {"default": row["port"]}
            assert (row["state"], row["visible_offset"], row["lag_records"]) == ("up", visible, lag)
            assert row["in_flight"] == 0
            assert 0 <= row["probe_age_ms"] < 1000 * PATIENCE_S
        assert rows[0]["lag_ms"] == 0
        assert rows[0]["effective_offset"] == offset - 1
        assert rows[1]["effective_offset"] is None
        _, head = await sidecar.get("/head")
        assert head.pop("age_ms") >= 0
        assert head == {"offset": offset, "leader_epoch": 1, "source": "describe_quorum"}


async def test_sessions_and_held_reads() -> None:
    async with FakeCluster(2) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        assert await sidecar.get("/sessions") == (200, [])
        assert await sidecar.get("/held") == (200, [])
        async with await RawConnection.open(sidecar.bootstrap) as client:
            await client.ask(ALL_TOPICS, MetadataResponse)
            offset = cluster.commit(seen_by=())
            (session,) = sidecar.app.driver.core.sessions
            await until(lambda: not session.bound.brokers)
            session.bound.visible = offset
            await client.send(ALL_TOPICS)
            held = sidecar.app.driver.core.gate.held
            await until(lambda: bool(held))
            status, (row,) = await sidecar.get("/held")
            assert status == 200
            assert 0 <= row.pop("held_ms") + row.pop("deadline_ms") <= 3000
            assert row == {"session": "service", "api": "Metadata", "waits_for": offset, "why": "broker behind"}
            _, (row,) = await sidecar.get("/sessions")
            assert row.pop("last_seen_ms") >= 0
            assert isinstance(row.pop("token"), str)
            assert row == {"session": "service", "pending": False, "clients": 1}
            cluster.brokers[2].position = offset
            assert await client.receive(MetadataResponse)


async def test_config_metrics_and_wrong_questions() -> None:
    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        status, config = await sidecar.get("/config")
        assert (status, config["admin"]["bind"]) == (200, str(sidecar.config.admin.bind))
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{sidecar.config.admin.bind}/metrics") as got,
        ):
            assert got.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert 'tidegate_broker_up{node_id="1"} 1.0' in await got.text()
        status, wrong = await sidecar.get("/metric")
        assert status == 404
        assert wrong["paths"] == [
            "/brokers", "/config", "/head", "/held", "/livez", "/metrics", "/readyz", "/sessions",
        ]  # fmt: skip
        assert await sidecar.get("/readyz", "POST") == (405, {"error": "/readyz is only read: use GET"})


async def test_a_refused_head_degrades_the_guarantee() -> None:
    async with FakeCluster(1) as cluster:
        cluster.refuses_quorum = True
        async with running(settings(cluster.brokers[1].address)) as sidecar:
            await sidecar.ready()
            await until(lambda: sidecar.app.readiness().guarantee == "degraded")
            found = await readiness(sidecar, True)
            assert "DescribeQuorum is refused" in found["reasons"][0]
            _, head = await sidecar.get("/head")
            assert head["source"] == "broker_max"


async def test_brokers_without_positions_are_served_with_no_promise() -> None:
    async with FakeCluster(1) as cluster:
        cluster.brokers[1].position = None
        async with running(settings(cluster.brokers[1].address)) as sidecar:
            await sidecar.ready()
            found = await readiness(sidecar, True)
            assert found["guarantee"] == "none"
            async with await RawConnection.open(sidecar.bootstrap) as client:
                assert (await client.ask(ALL_TOPICS, MetadataResponse)).brokers


@pytest.mark.row("6.6")
async def test_unready_while_no_broker_answers_and_ready_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        await cluster.brokers[1].stop()
        found = await readiness(sidecar, False)
        assert found == {"ready": False, "reasons": ["no broker reachable"], "guarantee": "none"}
        await until(lambda: "not ready: no broker reachable" in caplog.text)
        await cluster.brokers[1].start()
        await readiness(sidecar, True)
        await until(lambda: "ready again" in caplog.text)


# Answers that wait in line


@pytest.mark.row("3.7")
async def test_the_time_in_line_is_measured_for_those_that_waited() -> None:
    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()
        line = sidecar.app.driver.counters.head_of_line_seconds
        async with await RawConnection.open(sidecar.bootstrap) as client:
            await client.ask(ALL_TOPICS, MetadataResponse)
            assert sum(line.counts) == 0
            offset = cluster.commit(seen_by=())
            (session,) = sidecar.app.driver.core.sessions
            await until(lambda: not session.bound.brokers)
            session.bound.visible = offset
            await client.send(ALL_TOPICS)
            await client.send(API_VERSIONS)
            await until(lambda: len(cluster.brokers[1].asked_for(ApiKey.API_VERSIONS)) > 0 and sidecar_waits(sidecar))
            cluster.brokers[1].position = offset
            await client.receive(MetadataResponse)
            await client.receive(ApiVersionsResponse)
            assert sum(line.counts) == 1
            assert line.total > 0
            counters = sidecar.app.driver.counters
            parts = (counters.held_seconds, counters.upstream_seconds, counters.sidecar_seconds)
            whole = counters.request_seconds[ApiKey.METADATA].total
            assert sum(part[ApiKey.METADATA].total for part in parts) == pytest.approx(whole, abs=0.001)
            assert counters.held_seconds[ApiKey.METADATA].total > 0
            assert sum(part[ApiKey.API_VERSIONS].total for part in parts) + line.total == pytest.approx(
                counters.request_seconds[ApiKey.API_VERSIONS].total, abs=0.001
            )


def sidecar_waits(sidecar: Running) -> bool:
    return any(connection.waiting_bytes for connection in sidecar.app.driver.core.connections.values())


# End


@pytest.mark.row("6.1")
async def test_clients_are_served_while_it_drains(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    async with FakeCluster(1) as cluster:
        config = settings(cluster.brokers[1].address, limits={"drain_timeout_ms": 60_000})
        async with running(config) as sidecar:
            await sidecar.ready()
            async with await RawConnection.open(sidecar.bootstrap) as client:
                await client.api_versions()
                sidecar.app.stop()
                assert (await readiness(sidecar, False))["reasons"] == ["draining"]
                assert await client.ask(ALL_TOPICS, MetadataResponse)
                async with await RawConnection.open(sidecar.bootstrap) as another:
                    assert await another.api_versions()
                assert not sidecar.task.done()
            await asyncio.wait_for(sidecar.task, PATIENCE_S)
        assert "draining: 1 client connections are open" in caplog.text
        assert "is down" not in caplog.text


@pytest.mark.row("6.1")
async def test_answers_in_flight_leave_before_the_connection_closes() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:

        async def slow(ask: Ask) -> dict[str, Any]:
            if ask.client_id == "raw-client":
                asked.set()
                await go.wait()
            return cluster.metadata()

        await sidecar.ready()
        cluster.brokers[1].handlers[ApiKey.METADATA] = slow
        async with await RawConnection.open(sidecar.bootstrap) as client:
            await client.send(ALL_TOPICS)
            await asyncio.wait_for(asked.wait(), PATIENCE_S)
            sidecar.app.stop()
            (inside,) = sidecar.app.driver.clients
            assert isinstance(inside, Client)
            await until(lambda: inside._finished is not None)
            go.set()
            assert (await client.receive(MetadataResponse)).brokers
            with pytest.raises(RawClientError, match="closed"):
                await client.receive_frame()
        await asyncio.wait_for(sidecar.task, PATIENCE_S)
        assert sidecar.app.driver.counters.closed["client", "drained"] == 1


@pytest.mark.row("6.1")
async def test_a_second_stop_ends_at_once() -> None:
    never = asyncio.Event()
    async with FakeCluster(1) as cluster:
        config = settings(cluster.brokers[1].address, limits={"drain_timeout_ms": 3_600_000})
        async with running(config) as sidecar:

            async def silent(ask: Ask) -> dict[str, Any]:
                if ask.client_id == "raw-client":
                    await never.wait()
                return cluster.metadata()

            await sidecar.ready()
            cluster.brokers[1].handlers[ApiKey.METADATA] = silent
            async with await RawConnection.open(sidecar.bootstrap) as client:
                await client.send(ALL_TOPICS)
                await until(lambda: len(cluster.brokers[1].asked_for(ApiKey.METADATA)) > 1)
                await sidecar.end()
                with pytest.raises(RawClientError):
                    await client.receive_frame()
            assert sidecar.app.driver.counters.closed["client", "shutdown"] == 1


async def test_everything_that_was_opened_is_closed() -> None:
    async with FakeCluster(2) as cluster:
        before = asyncio.all_tasks()
        async with running(settings(cluster.brokers[1].address)) as sidecar:
            await sidecar.ready()
            async with await RawConnection.open(sidecar.bootstrap) as client:
                await client.ask(ALL_TOPICS, MetadataResponse)
            await sidecar.end()
        counters = sidecar.app.driver.counters
        assert counters.client_connections == 0
        assert not any(counters.broker_connections.values())
        inside = {task for b in cluster.brokers.values() for task in b._connections}
        assert not {task for task in asyncio.all_tasks() - before - inside if not task.done()}
        with occupied(sidecar.bootstrap.port), occupied(sidecar.first_port):
            pass


# The unexpected


async def test_the_unexpected_is_counted_each_time_and_shown_once(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeCluster(1) as cluster, running(settings(cluster.brokers[1].address)) as sidecar:
        await sidecar.ready()

        def broken() -> None:
            raise ZeroDivisionError("boom")

        loop = asyncio.get_running_loop()
        for _ in range(3):
            loop.call_soon(broken)
        await until(lambda: sidecar.app.driver.counters.internal_errors == 3)
        shown = [record for record in caplog.records if "boom" in record.message]
        assert len(shown) == 1
        assert shown[0].exc_info
        await readiness(sidecar, True)


async def test_discovery_goes_on_after_the_unexpected(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeCluster(1) as cluster:
        config = settings(cluster.brokers[1].address)
        async with running(config) as sidecar:
            original = sidecar.app.driver.handle
            calls = iter([True])

            def fail_once(event: Any) -> None:
                if next(calls, False):
                    raise ZeroDivisionError("boom")
                original(event)

            sidecar.app.driver.handle = fail_once  # type: ignore[method-assign]
            assert await sidecar.ready()
            assert sidecar.app.driver.counters.internal_errors == 1
            assert "unexpected, please report: discovery" in caplog.text


# The state file


@pytest.mark.row("2.2")
async def test_ports_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    async with FakeCluster(2) as cluster:
        config = settings(cluster.brokers[1].address, state_file=str(path))
        first = config.listeners[0].node_ports.first
        path.write_text(json.dumps({"version": 1, "listeners": {"default": {"1": first + 3}, "gone": {"7": 1}}}))
        async with running(config) as sidecar:
            assert f"1=127.0.0.1:{first + 3} 2=127.0.0.1:{first + 1}," in await sidecar.ready()
        expected = {"default": {"1": first + 3, "2": first + 1}, "gone": {"7": 1}}
        assert json.loads(path.read_text())["listeners"] == expected


async def test_a_broken_state_file_is_said_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state.json"
    path.write_text("precious")
    async with (
        FakeCluster(1) as cluster,
        running(settings(cluster.brokers[1].address, state_file=str(path))) as sidecar,
    ):
        await sidecar.ready()
    assert f"state_file {path} cannot be used: it is not JSON" in caplog.text
    assert (tmp_path / "state.json.unreadable").read_text() == "precious"
    assert json.loads(path.read_text())["listeners"] == {"default": {"1": sidecar.first_port}}


async def test_a_state_file_that_cannot_be_written_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "nowhere" / "state.json"
    async with (
        FakeCluster(1) as cluster,
        running(settings(cluster.brokers[1].address, state_file=str(path))) as sidecar,
    ):
        await sidecar.ready()
    assert f"state_file {path} cannot be written: No such file or directory" in caplog.text
