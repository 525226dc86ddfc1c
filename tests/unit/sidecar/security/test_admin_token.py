"""The admin listener with a token: who sees what, and what is said to everybody else."""

import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from config.faults import ConfigError
from tests.support.address import Address
from tests.support.fake_broker import FakeCluster
from tests.support.kafka.ports import free_ports
from tests.support.sidecar_app import ServingSidecar, serving

TOKEN = "a token for admins"
PATHS = ("/metrics", "/brokers", "/head", "/sessions", "/held", "/config", "/no/such/path")

pytestmark = pytest.mark.row("5.9")


def admin_section(folder: Path, host: str = "127.0.0.1", token: str = TOKEN) -> dict[str, Any]:
    file = folder / "token"
    file.write_text(f"{token}\n")
    (port,) = free_ports(1)
    return {"bind": f"{host}:{port}", "token_file": str(file)}


async def get(sidecar: ServingSidecar, path: str, authorization: str | None = None) -> tuple[int, str]:
    address = Address("127.0.0.1", sidecar.app.config.admin.bind.port)
    headers = {} if authorization is None else {"Authorization": authorization}
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}", headers=headers) as answer:
        if answer.status == 401:
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        return answer.status, await answer.text()


async def test_all_but_health_wants_the_token(tmp_path: Path) -> None:
    section = admin_section(tmp_path)
    async with FakeCluster(1) as cluster, serving(str(cluster.brokers[1].address), admin=section) as sidecar:
        for path in PATHS:
            for wrong in (None, TOKEN, "Bearer", f"Bearer {TOKEN}x", "Bearer \udcff"):
                status, text = await get(sidecar, path, wrong)
                assert (status, "admin.token_file" in text, TOKEN in text) == (401, True, False), (path, wrong)
            status, text = await get(sidecar, path, f"Bearer {TOKEN}")
            assert (status, TOKEN in text) == (404 if path == "/no/such/path" else 200, False)
        assert await get(sidecar, "/livez") == (200, '{"status": "live"}')
        assert await get(sidecar, "/readyz") == (200, '{"ready": true}')
        assert "guarantee" in (await get(sidecar, "/readyz", f"Bearer {TOKEN}"))[1]


async def test_an_open_admin_listener_without_a_token_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    section = admin_section(tmp_path, "0.0.0.0")
    async with FakeCluster(1) as cluster:
        bootstrap = str(cluster.brokers[1].address)
        async with serving(bootstrap, admin=section):
            pass
        async with serving(bootstrap, admin={"bind": f"127.0.0.1:{free_ports(1)[0]}"}):
            pass
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
        del section["token_file"]
        async with serving(bootstrap, admin=section) as sidecar:
            assert (await get(sidecar, "/config"))[0] == 200
    assert "sees what the sidecar knows; set admin.token_file, or bind loopback" in caplog.text


async def test_a_missing_token_is_a_start_error(tmp_path: Path) -> None:
    section = admin_section(tmp_path, token="")
    with pytest.raises(ConfigError, match="is empty; it must hold a secret"):
        async with serving("127.0.0.1:9", admin=section):
            pass
