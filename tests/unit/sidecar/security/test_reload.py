"""Reloading while clients are served: what is obeyed at once, what is named for a restart, and what changes nothing."""

import asyncio
import contextlib
import logging
import os
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from codec.api_keys import ApiKey
from config.load import load_sidecar
from config.sidecar import Ssl
from config.tls import client_context
from sidecar import app as product
from sidecar import logs, reloading
from sidecar.app import App, serve
from sidecar.core.levels import Level
from tests.support.address import Address
from tests.support.certificates import Authority, Identity
from tests.support.fake_broker import FakeCluster
from tests.support.kafka.ports import free_ports
from tests.support.state_client import StateClient

PATIENCE_S = 20.0
METADATA = (ApiKey.METADATA, 12, {"topics": [], "allow_auto_topic_creation": False})

pytestmark = pytest.mark.row("6.2")


class Scene:
    """A sidecar with TLS towards clients, whose configuration and certificates are files."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.authority = Authority(folder)
        self.cert_file, self.key_file = folder / "cert", folder / "key"
        self.use(self.authority.sign("first"))
        self.file = folder / "sidecar.yaml"
        port, admin, first, last = free_ports(4)
        self.bootstrap, self.admin = Address("127.0.0.1", port), Address("127.0.0.1", admin)
        files = {"cert_file": str(self.cert_file), "key_file": str(self.key_file)}
        self.tree: dict[str, Any] = {
            "cluster": {"bootstrap_servers": [bootstrap]},
            "listeners": [
                {
                    "bind": str(self.bootstrap),
                    "node_ports": f"{min(first, last)}-{max(first, last)}",
                    "security": {"protocol": "SSL", "ssl": files},
                }
            ],
            "admin": {"bind": str(self.admin)},
            "limits": {"drain_timeout_ms": 0},
        }
        self.write()
        self.app: App

    def use(self, identity: Identity) -> None:
        self.cert_file.write_text(identity.cert_file.read_text())
        self.key_file.write_text(identity.key_file.read_text())

    def write(self, **sections: Any) -> None:
        self.tree.update(sections)
        self.file.write_text(yaml.safe_dump(self.tree))

    def trust(self) -> ssl.SSLContext:
        return client_context(Ssl(ca_file=self.authority.ca_file))

    async def name(self) -> str:
        """Whose certificate is shown to a new client."""
        _, writer = await asyncio.open_connection(*self.bootstrap, ssl=self.trust())
        shown = writer.get_extra_info("peercert")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return str(dict(part[0] for part in shown["subject"])["commonName"])

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - logs and files have no event
                await asyncio.sleep(0.01)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "LOOKS_EVERY_S", 0.02)


@pytest.fixture
async def at(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Scene]:
    caplog.set_level(logging.INFO)
    async with FakeCluster(1) as cluster:
        scene = Scene(tmp_path, str(cluster.brokers[1].address))
        ready = asyncio.Event()
        scene.app = App(load_sidecar(scene.file), lambda line: ready.set(), scene.file)
        task = asyncio.create_task(scene.app.run())
        async with asyncio.timeout(PATIENCE_S):
            await ready.wait()
        yield scene
        scene.app.stop()
        scene.app.stop()
        await task


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tidegate.reload"]


@pytest.mark.row("5.1")
async def test_new_clients_get_the_new_certificate_and_old_ones_stay(
    at: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    async with await StateClient.open(at.bootstrap, at.trust()) as client:
        assert (await client.ask(*METADATA)).body["cluster_id"] == "fake"
        assert await at.name() == "first"
        at.use(at.authority.sign("second"))
        at.app.reload()
        assert await at.name() == "second"
        assert (await client.ask(*METADATA)).body["cluster_id"] == "fake"
    assert said(caplog) == ["reloaded (SIGHUP): certificates and tokens were read again"]


@pytest.mark.row("5.1")
@pytest.mark.usefixtures("quick")
async def test_a_file_that_has_changed_and_stands_still_is_read_by_itself(
    at: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    at.use(at.authority.sign("second"))
    await at.until(lambda: len(said(caplog)) == 1)
    assert await at.name() == "second"
    assert said(caplog)[0].startswith(f"reloaded ({at.cert_file}, {at.key_file} changed)")
    at.write(limits={"drain_timeout_ms": 0, "connections": 77})
    await at.until(lambda: len(said(caplog)) == 3)
    assert at.app.driver.limits.connections == 77
    assert said(caplog)[2] == "changed: limits.connections"


async def test_what_can_change_does_and_what_needs_a_restart_is_named(
    at: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    token = at.file.with_name("token")
    token.write_text("a-token")
    at.write(
        consistency={"level": "eventual", "scope": "connection", "wait_timeout_ms": 77},
        limits={"drain_timeout_ms": 0, "sessions": 7, "held_requests": 3},
        admin={"bind": str(at.admin), "token_file": str(token)},
        state_file=str(at.file.with_name("state")),
    )
    at.app.reload()
    core = at.app.driver.core
    assert core.gate.settings.policy.level is Level.EVENTUAL
    assert core.gate._ledger._policy.level is Level.EVENTUAL
    assert (core.gate.settings.wait_timeout_ms, core.sessions._sessions_max) == (77, 7)
    assert core.gate.holds._requests_max == 3
    assert said(caplog)[1].startswith("changed: consistency.level, consistency.wait_timeout_ms, ")
    assert said(caplog)[2] == "changed in the file, and as before until a restart: consistency.scope, state_file"
    headers = {"Authorization": "Bearer a-token"}
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{at.admin}/config") as answer:
            assert answer.status == 401
        async with session.get(f"http://{at.admin}/config", headers=headers) as answer:
            shown = await answer.json()
    consistency = shown["consistency"]
    assert (consistency["level"], consistency["scope"], shown["state_file"]) == ("eventual", "service", None)


async def test_the_log_level_changes_where_it_is_configured(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    configured: list[tuple[str, str]] = []
    monkeypatch.setattr(logs, "configure", lambda level, form, out: configured.append((level, form)))
    at.app.reload()
    assert configured == []
    at.write(logging={"level": "debug", "format": "json"})
    at.app.reload()
    assert configured == [("debug", "json")]


@pytest.mark.parametrize("broken", ["configuration", "key", "entangled", "gone"])
async def test_a_bad_file_changes_nothing_and_says_why(
    at: Scene, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    before = at.app.config
    contexts = [listener.tls and listener.tls.context for listener in at.app._listeners]
    at.tree["limits"]["connections"] = 5
    if broken == "configuration":
        at.write(consistency={"level": "perfect"})
        words = f"{at.file}:"
    elif broken == "key":
        at.write()
        at.key_file.write_text(at.authority.sign("other").key_file.read_text())
        words = f"{at.key_file}: is not the private key of the first certificate in {at.cert_file}"
    elif broken == "entangled":
        security = {"protocol": "SSL", "ssl": {"ca_file": str(at.authority.ca_file)}}
        at.write(cluster={**at.tree["cluster"], "security": security})
        words = "this configuration needs a restart (cluster.security.ssl.ca_file: has no effect"
    else:
        at.file.unlink()
        words = f"{at.file}: cannot be read"
    at.app.reload()
    assert at.app.config is before
    assert at.app.driver.limits is before.limits
    assert [listener.tls and listener.tls.context for listener in at.app._listeners] == contexts
    (line,) = said(caplog)
    assert line.startswith(f"not reloaded, nothing has changed: {words}")
    assert await at.name() == "first"


async def test_sighup_reloads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with FakeCluster(1) as cluster:
        scene = Scene(tmp_path, str(cluster.brokers[1].address))
        ready = asyncio.Event()
        task = asyncio.create_task(serve(load_sidecar(scene.file), lambda line: ready.set(), scene.file))
        async with asyncio.timeout(PATIENCE_S):
            await ready.wait()
            scene.write(limits={"drain_timeout_ms": 0, "connections": 9})
            os.kill(os.getpid(), signal.SIGHUP)
            await scene.until(lambda: "changed: limits.connections" in said(caplog))
            os.kill(os.getpid(), signal.SIGTERM)
            await task


def test_without_a_file_what_arguments_name_is_read_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "h:1")
    config = load_sidecar(scene.file)
    assert list(reloading.files(config, None)) == [scene.cert_file, scene.key_file]
    obeyed: list[Any] = []

    class Party:
        def __init__(self) -> None:
            self.config = config

        def obey(self, config: Any, secured: Any) -> None:
            obeyed.append((config, secured))

    reloader = reloading.Reloader(Party(), None)
    scene.write(limits={"connections": 4})
    reloader.look()
    reloader.look()
    assert obeyed == []
    scene.use(scene.authority.sign("second"))
    reloader.look()
    assert obeyed == [], "it may be written still"
    reloader.look()
    assert [found for found, _ in obeyed] == [config]
    reloader.look()
    assert len(obeyed) == 1
