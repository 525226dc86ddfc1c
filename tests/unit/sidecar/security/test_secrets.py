"""Secrets are planted wherever one can be, everything that can go wrong with them does, and none is ever shown."""

import asyncio
import gc
import logging
from base64 import b64encode
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from config.sidecar import Ssl
from config.tls import client_context, server_context
from sidecar import logs
from sidecar.net import broker_connection
from sidecar.net.sasl import Carried, login
from tests.support.certificates import Authority, encrypted
from tests.support.fake_broker import FakeCluster
from tests.support.fake_login import FakeSasl
from tests.support.kafka.ports import free_ports
from tests.support.sidecar_app import serving
from tests.support.state_client import StateClient

OWN, KEY, ADMIN, CLIENT, WRONG, BEARER = (
    f"{name}-hunter2-{number}" for number, name in enumerate(("own", "key", "admin", "client", "wrong", "bearer"))
)
SECRETS = (OWN, KEY, ADMIN, CLIENT, WRONG, BEARER)
PATHS = ("/metrics", "/livez", "/readyz", "/brokers", "/head", "/sessions", "/held", "/config", "/none")
PATIENCE_S = 20.0


def planted(folder: Path, name: str, secret: str) -> str:
    file = folder / name
    file.write_text(secret)
    return str(file)


async def everything(admin: str) -> str:
    """All that the admin listener shows to somebody who may see it."""
    shown = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {ADMIN}"}) as session:
        for path in PATHS:
            async with session.get(f"http://{admin}{path}") as answer:
                shown.append(await answer.text())
    return "\n".join(shown)


async def log_in(client: StateClient, mechanism: str, message: bytes) -> None:
    await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})
    await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message})


@pytest.mark.row("5.8")
async def test_no_secret_is_ever_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    authority = Authority(tmp_path)
    own, broker = authority.sign("sidecar"), authority.sign("broker")
    trusts = Ssl(ca_file=authority.ca_file)
    sasl = FakeSasl(passwords={"tidegate": OWN, "alice": CLIENT}, tokens={BEARER: "carol"})
    tls = server_context(Ssl(cert_file=broker.cert_file, key_file=broker.key_file), "none")
    files = {
        "cert_file": str(own.cert_file),
        "key_file": str(encrypted(own.key_file, KEY)),
        "key_password_file": planted(tmp_path, "key-password", KEY),
    }
    password_file = planted(tmp_path, "password", OWN)
    who = {"mechanism": "PLAIN", "username": "tidegate", "password_file": password_file}
    security = {"protocol": "SASL_SSL", "ssl": {"ca_file": str(authority.ca_file)}, "sasl": who}
    admin = f"127.0.0.1:{free_ports(1)[0]}"
    unexpected: list[Any] = []

    async def breaks(connection: Any, credentials: Any) -> int:
        if isinstance(credentials, Carried) and not unexpected:
            unexpected.append(credentials)
            raise RuntimeError("a bug of ours, in the middle of a login")
        return await login(connection, credentials)

    monkeypatch.setattr(broker_connection, "login", breaks)
    async with FakeCluster(2, tls=tls, sasl=sasl) as cluster:
        section = {"security": security, "probe": {"idle_interval_ms": 20, "min_interval_ms": 1, "timeout_ms": 2000}}
        async with serving(
            str(cluster.brokers[1].address),
            listener={"security": {"protocol": "SSL", "ssl": files}},
            cluster=section,
            admin={"bind": admin, "token_file": planted(tmp_path, "admin-token", ADMIN)},
            consistency={"level": "linearizable", "wait_timeout_ms": 300},
        ) as sidecar:
            cluster.commit(seen_by=(2,))
            for mechanism, message in (
                ("PLAIN", f"\0alice\0{CLIENT}".encode()),
                ("OAUTHBEARER", f"n,,\x01auth=Bearer {BEARER}\x01\x01".encode()),
                ("PLAIN", f"\0alice\0{WRONG}".encode()),
            ):
                client = await StateClient.open(sidecar.nodes[1], client_context(trusts))
                await log_in(client, mechanism, message)
                cluster.brokers[2].handlers[ApiKey.SASL_AUTHENTICATE] = lambda ask: {
                    "error_code": ErrorCode.SASL_AUTHENTICATION_FAILED,
                    "error_message": "not here",
                    "auth_bytes": b"",
                }
                # It waits for a channel that a bug, or a refusal, keeps from being opened, and is closed in the end.
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await client.ask(ApiKey.METADATA, 12, {"topics": [], "allow_auto_topic_creation": False})
                await client.close()
            gc.collect()
            planted(tmp_path, "password", "")
            cluster.brokers[2].handlers.pop(ApiKey.SASL_AUTHENTICATE)
            async with asyncio.timeout(PATIENCE_S):
                while "goes on with what the file held before" not in caplog.text:
                    sidecar.app.driver.links.reset_probe(next(iter(sidecar.app.driver.core.cluster.addresses)))
                    await asyncio.sleep(0.02)
            shown = await everything(admin)
    lines = [form.format(record) for record in caplog.records for form in (logs.TextFormatter(), logs.JsonFormatter())]
    text = "\n".join((*lines, shown, repr(sidecar.app.driver.identities._by_login), repr(unexpected)))
    assert "a bug of ours, in the middle of a login" in text, "with its traceback"
    assert "Traceback" in text
    assert "SASL OAUTHBEARER login failed: not here" in text
    assert str(tmp_path / "admin-token") in shown, "names of files are no secrets"
    for secret in SECRETS:
        assert secret not in text
        assert b64encode(secret.encode()).decode() not in text
