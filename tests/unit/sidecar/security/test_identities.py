"""Reads that are routed as whoever asks, on loopback: principals never mixed, and clients that notice nothing."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from sidecar.core.ids import NodeId
from sidecar.net import broker_connection, identities, links
from tests.support.fake_broker import Ask, FakeCluster
from tests.support.fake_login import FakeSasl
from tests.support.sidecar_app import ServingSidecar, serving
from tests.support.state_client import StateClient

PATIENCE_S = 20.0
PASSWORDS = {"tidegate": "own-secret", "alice": "alice-secret", "bob": "bob-secret"}
TOKENS = {"token-of-carol": "carol"}
METADATA = (ApiKey.METADATA, 12, {"topics": [], "allow_auto_topic_creation": False})

pytestmark = pytest.mark.row("5.4")


class Scene:
    """Two brokers that ask for a login, broker 1 one record behind, and a sidecar before them."""

    def __init__(self, cluster: FakeCluster, sidecar: ServingSidecar) -> None:
        self.cluster = cluster
        self.sidecar = sidecar
        self.identities = sidecar.app.driver.identities

    def asked_as(self, node_id: int) -> set[str | None]:
        """Who has asked this broker for its configuration, which the sidecar itself never does."""
        return {ask.principal for ask in self.cluster.brokers[node_id].asked_for(ApiKey.DESCRIBE_CONFIGS)}

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - what happens in the sidecar has no event
                await asyncio.sleep(0.005)

    async def login(self, message: bytes, mechanism: str = "PLAIN") -> StateClient:
        client = await StateClient.open(self.sidecar.nodes[1])
        await self.log_in(client, message, mechanism)
        return client

    async def log_in(self, client: StateClient, message: bytes, mechanism: str = "PLAIN") -> None:
        agreed = await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})
        assert agreed.body["error_code"] == ErrorCode.NONE
        accepted = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message})
        assert accepted.body["error_code"] == ErrorCode.NONE


def plain(username: str) -> bytes:
    return f"\0{username}\0{PASSWORDS[username]}".encode()


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


async def whoami(client: StateClient) -> str:
    """What a routed read of this client says that it is."""
    body = {"resources": [{"resource_type": 2, "resource_name": "t", "configuration_keys": None}]}
    answer = (await client.ask(ApiKey.DESCRIBE_CONFIGS, 4, body)).body
    return str(answer["results"][0]["error_message"])


def told(node_id: int) -> Callable[[Ask], Mapping[str, Any]]:
    """Answers with the principal that asked, and the broker."""

    def handler(ask: Ask) -> Mapping[str, Any]:
        result = {
            "error_code": ErrorCode.NONE,
            "error_message": f"{ask.principal} at {node_id}",
            "resource_type": 2,
            "resource_name": "t",
            "configs": [],
        }
        return {"results": [result]}

    return handler


@contextlib.asynccontextmanager
async def scene(folder: Path, *, behind: bool = True, **listener: Any) -> AsyncIterator[Scene]:
    sasl = FakeSasl(passwords=dict(PASSWORDS), tokens=dict(TOKENS))
    password_file = folder / "password"
    password_file.write_text(PASSWORDS["tidegate"])
    login = {"mechanism": "PLAIN", "username": "tidegate", "password_file": str(password_file)}
    async with FakeCluster(2, sasl=sasl) as cluster:
        for node_id, broker in cluster.brokers.items():
            broker.handlers[ApiKey.DESCRIBE_CONFIGS] = told(node_id)
        section = {
            "security": {"protocol": "SASL_PLAINTEXT", "sasl": login},
            "probe": {"idle_interval_ms": 20, "min_interval_ms": 1, "timeout_ms": 2000},
        }
        bootstrap = str(cluster.brokers[1].address)
        consistency = {"level": "linearizable", "wait_timeout_ms": 15_000}
        async with serving(bootstrap, listener=listener, cluster=section, consistency=consistency) as sidecar:
            if behind:
                cluster.commit(seen_by=(2,))
            yield Scene(cluster, sidecar)


async def test_every_client_reads_elsewhere_as_itself(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, contextlib.AsyncExitStack() as stack:
        messages = [(plain("alice"), "PLAIN"), (plain("bob"), "PLAIN"), (bearer("token-of-carol"), "OAUTHBEARER")]
        clients = [await stack.enter_async_context(await at.login(*login)) for login in messages * 2]
        for _ in range(3):
            answers = await asyncio.gather(*map(whoami, clients))
            assert answers == ["alice at 2", "bob at 2", "carol at 2"] * 2
        assert len(at.identities) == 3, "clients with the same login share one"
        channels = {ask.connection for ask in at.cluster.brokers[2].asked_for(ApiKey.DESCRIBE_CONFIGS)}
        assert len(channels) == 3
        assert at.asked_as(1) == set()


async def test_what_cannot_be_said_again_stays_with_its_own_broker_and_is_held_there(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, await StateClient.open(at.sidecar.nodes[1]) as client:
        at.identities.answered = lambda *_: None  # type: ignore[method-assign] # as if the mechanism were SCRAM
        await at.log_in(client, plain("alice"))
        reading = asyncio.create_task(whoami(client))
        await at.until(lambda: bool(at.sidecar.app.driver.core.gate.held))
        at.cluster.commit()
        assert await reading == "alice at 1"
        assert at.asked_as(2) == set()


async def test_a_login_that_is_refused_elsewhere_costs_the_client_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with scene(tmp_path) as at, await at.login(plain("alice")) as client:
        at.cluster.brokers[2].handlers[ApiKey.SASL_AUTHENTICATE] = lambda ask: {
            "error_code": ErrorCode.SASL_AUTHENTICATION_FAILED,
            "error_message": "expired",
            "auth_bytes": b"",
        }
        reading = asyncio.create_task(whoami(client))
        await at.until(lambda: len(at.identities) == 0)
        at.cluster.commit()
        assert await reading == "alice at 1"
        async with await at.login(plain("alice")) as another:
            assert len(at.identities) == 0, "it is not tried again at once"
            assert await whoami(another) == "alice at 1"
    assert "broker 2: SASL PLAIN login failed: expired" in caplog.text
    assert not any(secret in caplog.text for secret in PASSWORDS.values())


async def test_an_identity_ends_with_its_last_client(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        counters = at.sidecar.app.driver.counters
        async with await at.login(plain("alice")) as first:
            await whoami(first)
            own = counters.broker_connections[2] - 1
            async with await at.login(plain("alice")) as second:
                await whoami(second)
                assert counters.broker_connections[2] == own + 1
        await at.until(lambda: counters.broker_connections[2] == own)
        assert len(at.identities) == 0
        assert at.identities._talks == {}
        core = at.sidecar.app.driver.core
        assert {identity for _, identity in core.cluster.channels} <= {0}
        assert core.cluster.view.brokers[next(iter(core.cluster.addresses))].up


async def test_a_channel_that_nobody_uses_is_ended_and_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "CHANNEL_IDLE_S", 0.05)
    monkeypatch.setattr(links, "_RETRY_S_MAX", 0.05)
    async with scene(tmp_path) as at, await at.login(plain("alice")) as client:
        core = at.sidecar.app.driver.core
        assert await whoami(client) == "alice at 2"
        incarnation = core.cluster.view.brokers[NodeId(2)].incarnation
        await at.until(lambda: not core.cluster.channels)
        assert len(at.identities) == 1
        assert await whoami(client) == "alice at 2"
        assert core.cluster.view.brokers[NodeId(2)].incarnation == incarnation
        channels = [ask.connection for ask in at.cluster.brokers[2].asked_for(ApiKey.DESCRIBE_CONFIGS)]
        assert len(set(channels)) == 2


@pytest.mark.row("5.3")
async def test_a_client_that_logs_in_again_is_routed_with_what_it_said_last(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, await at.login(bearer("token-of-carol"), "OAUTHBEARER") as client:
        assert await whoami(client) == "carol at 2"
        assert at.cluster.sasl is not None
        at.cluster.sasl.tokens["newer-token"] = at.cluster.sasl.tokens.pop("token-of-carol")
        await at.log_in(client, bearer("newer-token"), "OAUTHBEARER")
        assert await whoami(client) == "carol at 2"
        asked = at.cluster.brokers[2].asked_for(ApiKey.DESCRIBE_CONFIGS)
        assert len({ask.connection for ask in asked}) == 2
        assert len(at.identities) == 1


async def test_a_failed_login_gives_no_identity(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, await StateClient.open(at.sidecar.nodes[1]) as client:
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        answer = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0wrong"})
        assert answer.body["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "OAUTHBEARER"})
        challenge = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": bearer("unknown")})
        assert challenge.body["error_code"] == ErrorCode.NONE
        assert challenge.body["auth_bytes"] != b""
        assert len(at.identities) == 0


async def test_the_sidecar_logs_in_for_clients_that_do_not(tmp_path: Path) -> None:
    async with scene(tmp_path, identity="sidecar") as at, await StateClient.open(at.sidecar.nodes[1]) as client:
        assert await whoami(client) == "tidegate at 2"
        groups = {"error_code": ErrorCode.NONE, "groups": []}
        at.cluster.brokers[1].handlers[ApiKey.LIST_GROUPS] = lambda ask: groups
        assert (await client.ask(ApiKey.LIST_GROUPS, 3, {})).body["error_code"] == ErrorCode.NONE
        assert [ask.principal for ask in at.cluster.brokers[1].asked_for(ApiKey.LIST_GROUPS)] == ["tidegate"]
        assert (await client.ask(ApiKey.API_VERSIONS, 3, {})).body["error_code"] == ErrorCode.NONE


@pytest.mark.row("5.3")
async def test_a_lent_login_is_renewed_by_another_connection_and_the_client_does_not_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_connection, "_RENEW_AT_LEAST_S", 0.05)
    async with scene(tmp_path, behind=False, identity="sidecar") as at:
        broker, core = at.cluster.brokers[1], at.sidecar.app.driver.core
        groups, asked = {"error_code": ErrorCode.NONE, "groups": []}, asyncio.Event()
        go = asyncio.Event()

        async def slow(ask: Ask) -> Mapping[str, Any]:
            asked.set()
            await go.wait()
            return groups

        broker.handlers[ApiKey.LIST_GROUPS] = slow
        assert at.cluster.sasl is not None
        at.cluster.sasl.lifetime_ms = 50
        async with await StateClient.open(at.sidecar.nodes[1]) as client:
            await client.send(ApiKey.LIST_GROUPS, 3, {})
            await asked.wait()
            (connection,) = core.connections.values()
            first = connection.home
            at.cluster.sasl.lifetime_ms = 0
            await asyncio.sleep(0.2)
            assert connection.home is first, "while an answer is outstanding"
            incarnation = core.cluster.view.brokers[connection.node_id].incarnation
            go.set()
            await client.receive()
            await at.until(lambda: connection.home not in (None, first))
            assert core.cluster.view.brokers[connection.node_id].incarnation == incarnation
            await client.ask(ApiKey.LIST_GROUPS, 3, {})
        served = [ask.connection for ask in broker.asked_for(ApiKey.LIST_GROUPS)]
        assert len(set(served)) == 2
        assert {ask.principal for ask in broker.asked_for(ApiKey.LIST_GROUPS)} == {"tidegate"}


@pytest.mark.parametrize("version", [0, 1])
async def test_a_login_where_the_sidecar_has_done_it_is_answered_as_by_a_broker_without_sasl(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    async with scene(tmp_path, identity="sidecar") as at, await StateClient.open(at.sidecar.nodes[1]) as client:
        refused = (await client.ask(ApiKey.SASL_HANDSHAKE, version, {"mechanism": "PLAIN"})).body
        assert refused == {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
        late = (await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": plain("alice")})).body
        assert late["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
        assert await whoami(client) == "tidegate at 2", "and it can go on"
        for broker in at.cluster.brokers.values():
            said = [ask.body for ask in broker.asked_for(ApiKey.SASL_AUTHENTICATE)]
            assert {body and body["auth_bytes"] for body in said} == {plain("tidegate")}
    assert "set its security.protocol to PLAINTEXT, or to SSL if the listener speaks TLS" in caplog.text
    assert PASSWORDS["alice"] not in caplog.text


@pytest.mark.parametrize("seed", range(20 if os.environ.get("TIDEGATE_NIGHTLY") else 2))
async def test_a_storm_of_logins_mixes_nobody_up(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients come, read, log in again and go, while logins elsewhere are refused and channels break at random."""
    monkeypatch.setattr(identities, "REFUSED_MS", 0.0)
    random = Random(seed)
    users = {f"user-{number}": f"secret-{number}" for number in range(6)}
    routed = 0

    async def live(at: Scene) -> None:
        nonlocal routed
        for _ in range(4):
            user = random.choice(sorted(users))
            message = f"\0{user}\0{users[user]}".encode()
            async with await StateClient.open(at.sidecar.nodes[random.choice((1, 2))]) as client:
                await at.log_in(client, message)
                for _ in range(random.randint(1, 6)):
                    if random.random() < 0.2:
                        await at.log_in(client, message)
                    who, _, where = (await whoami(client)).partition(" at ")
                    assert who == user
                    routed += where == "2"

    async def spoil(at: Scene) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.005, 0.03))
            known = at.identities
            match random.choice(("commit", "commit", "commit", "refuse", "break")):
                case "commit":
                    at.cluster.commit(seen_by=random.choice(((1, 2), (2,), (1,))))
                    at.cluster.brokers[1].position = at.cluster.brokers[2].position = at.cluster.offset
                case "refuse" if known._by_identity:
                    known.refused(random.choice(list(known._by_identity)), "a storm")
                case "break":
                    for link in at.sidecar.app.driver.links._links.values():  # type: ignore[attr-defined]
                        for channel in list(link._channels.values())[:1]:
                            channel.close("closed")

    async with scene(tmp_path) as at:
        assert at.cluster.sasl is not None
        at.cluster.sasl.passwords |= users
        spoiling = asyncio.create_task(spoil(at))
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(live(at) for _ in range(12)))
        spoiling.cancel()
        await at.until(lambda: len(at.identities) == 0)
        assert routed > 10
        assert {identity for _, identity in at.sidecar.app.driver.core.cluster.channels} <= {0}
        assert at.sidecar.app.driver.counters.internal_errors == 0
