"""TLS on both sides of a sidecar on loopback: who is let in, who is trusted, and what is said to those who are not."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from codec.api_keys import ApiKey
from config.faults import ConfigError
from config.sidecar import ClusterSecurity, Ssl
from config.tls import client_context, server_context
from config.values import HostPort
from sidecar.net import tls_server
from sidecar.net.access import ClientTls
from sidecar.net.broker_connection import BrokerUnavailable, connect
from sidecar.survey import surveying
from tests.support.address import Address
from tests.support.certificates import Authority, Identity
from tests.support.fake_broker import FakeCluster
from tests.support.sidecar_app import ServingSidecar, serving
from tests.support.state_client import StateClient

METADATA = (ApiKey.METADATA, 12, {"topics": [], "allow_auto_topic_creation": False})
PATIENCE_S = 20.0
TIMEOUT_MS = 10_000

pytestmark = pytest.mark.row("5.1")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def own(authority: Authority) -> Identity:
    """The sidecar's certificate."""
    return authority.sign("sidecar")


def trusting(authority: Authority, identity: Identity | None = None) -> ssl.SSLContext:
    """What a client needs."""
    cert_file, key_file = (None, None) if identity is None else (identity.cert_file, identity.key_file)
    return client_context(Ssl(ca_file=authority.ca_file, cert_file=cert_file, key_file=key_file))


def secured(own: Identity, **security: Any) -> dict[str, Any]:
    """The listener section."""
    ca_file = security.pop("ca_file", None)
    files = {"cert_file": str(own.cert_file), "key_file": str(own.key_file), "ca_file": ca_file and str(ca_file)}
    return {"security": {"protocol": "SSL", "ssl": files, **security}}


def to_cluster(authority: Authority, identity: Identity | None = None, **ssl_keys: Any) -> dict[str, Any]:
    """The cluster section."""
    files = {} if identity is None else {"cert_file": str(identity.cert_file), "key_file": str(identity.key_file)}
    return {"security": {"protocol": "SSL", "ssl": {"ca_file": str(authority.ca_file), **files, **ssl_keys}}}


@contextlib.asynccontextmanager
async def brokers(context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[FakeCluster, str]]:
    async with FakeCluster(2, tls=context) as cluster:
        yield cluster, ",".join(str(broker.address) for broker in cluster.brokers.values())


async def ask(sidecar: ServingSidecar, context: ssl.SSLContext | None, node_id: int = 1) -> dict[str, Any]:
    async with await StateClient.open(sidecar.nodes[node_id], context) as client:
        return (await client.ask(*METADATA)).body


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is counted has no event
            await asyncio.sleep(0.01)


async def test_clients_speak_tls_where_the_listener_does(authority: Authority, own: Identity) -> None:
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=secured(own)) as sidecar:
        answer = await ask(sidecar, trusting(authority))
        assert {broker["port"] for broker in answer["brokers"]} == {address.port for address in sidecar.nodes.values()}
        counters = sidecar.app.driver.counters
        await until(lambda: not counters.client_connections)
        assert dict(counters.closed)["client", "client_closed"] == 1


async def test_many_requests_and_large_ones_pass_over_tls(authority: Authority, own: Identity) -> None:
    body = {"topics": [{"name": "t" * 200} for _ in range(500)], "allow_auto_topic_creation": False}
    async with brokers(server_context(_files(own), "none")) as (cluster, bootstrap):
        plain = {"level": "eventual"}
        sidecar_at = serving(bootstrap, listener=secured(own), cluster=to_cluster(authority), consistency=plain)
        async with sidecar_at as sidecar, await StateClient.open(sidecar.nodes[1], trusting(authority)) as client:
            for _ in range(20):
                await client.send(ApiKey.METADATA, 12, body)
            for _ in range(20):
                assert (await client.receive()).body["cluster_id"] == "fake"
        sent = [ask.body for broker in cluster.brokers.values() for ask in broker.asked_for(ApiKey.METADATA)]
        assert sum(found is not None and len(found["topics"]) == 500 for found in sent) == 20


def _files(identity: Identity) -> Ssl:
    return Ssl(cert_file=identity.cert_file, key_file=identity.key_file)


async def test_a_client_without_a_certificate_is_told_why_where_one_is_required(
    authority: Authority, own: Identity, caplog: pytest.LogCaptureFixture
) -> None:
    listener = secured(own, client_auth="required", ca_file=authority.ca_file)
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=listener) as sidecar:
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await ask(sidecar, trusting(authority))
        stranger = Authority(own.cert_file.parent, "stranger")
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await ask(sidecar, trusting(authority, stranger.sign("mallory")))
        assert (await ask(sidecar, trusting(authority, authority.sign("app"))))["cluster_id"] == "fake"
        assert sidecar.app.driver.counters.closed["client", "tls"] == 2
    assert "the client shows no certificate, and client_auth is required: give it one" in caplog.text
    assert "the client's certificate is not trusted: " in caplog.text


async def test_a_client_that_does_not_trust_us_is_told_how(
    authority: Authority, own: Identity, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority(own.cert_file.parent, "stranger")
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=secured(own)) as sidecar:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(_shake_hands, sidecar.nodes[1], trusting(stranger))
        await until(lambda: sidecar.app.driver.counters.closed["client", "tls"] == 1)
    assert "the client does not trust our certificate (TLSV1_ALERT_UNKNOWN_CA)" in caplog.text


def _shake_hands(address: Address, context: ssl.SSLContext) -> None:
    """By a blocking client, which says why it hangs up."""
    with socket.create_connection(address) as plain, context.wrap_socket(plain, server_hostname=address.host):
        pass


@pytest.mark.row("5.6")
@pytest.mark.parametrize(
    ("first_bytes", "cause", "words"),
    [
        (
            b"\0\0\0\x0c\0\x12\0\x03\0\0\0\1\xff\xff\0\0",
            "plain",
            "the client does not speak TLS: set its security.protocol",
        ),
        (b"GET / HTTP/1.1\r\n\r\n", "http", "an HTTP request came to a Kafka port"),
    ],
)
async def test_what_is_no_tls_is_recognised(
    own: Identity, caplog: pytest.LogCaptureFixture, first_bytes: bytes, cause: str, words: str
) -> None:
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=secured(own)) as sidecar:
        reader, writer = await asyncio.open_connection(*sidecar.nodes[1])
        writer.write(first_bytes)
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                await reader.read()
        writer.close()
        await until(lambda: sidecar.app.driver.counters.closed["client", cause] == 1)
    assert words in caplog.text


@pytest.mark.row("6.5")
async def test_a_handshake_that_does_not_end_is_ended(
    own: Identity, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_server, "HANDSHAKE_TIMEOUT_S", 0.2)
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=secured(own)) as sidecar:
        reader, writer = await asyncio.open_connection(*sidecar.nodes[1])
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.read() == b""
        writer.close()
        await until(lambda: sidecar.app.driver.counters.closed["client", "tls"] == 1)
    assert "the TLS handshake took longer than 0.2 s" in caplog.text


async def test_handshakes_under_way_count_as_connections(own: Identity) -> None:
    limits = {"connections": 2, "drain_timeout_ms": 0}
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=secured(own), limits=limits) as sidecar:
        halves = [await asyncio.open_connection(*sidecar.nodes[1]) for _ in range(3)]
        await until(lambda: sidecar.app.driver.counters.closed["client", "too_many_connections"] == 1)
        for _, writer in halves:
            writer.close()


async def test_brokers_are_dialled_over_tls_by_probes_and_for_clients(authority: Authority, own: Identity) -> None:
    context = server_context(_files(own), "none")
    async with brokers(context) as (_, bootstrap), serving(bootstrap, cluster=to_cluster(authority)) as sidecar:
        assert (await ask(sidecar, None))["cluster_id"] == "fake"
        assert sidecar.app.readiness().guarantee == "full"


@pytest.mark.row("5.4")
async def test_brokers_that_ask_for_a_certificate_get_ours_for_clients_too(authority: Authority, own: Identity) -> None:
    files = Ssl(ca_file=authority.ca_file, cert_file=own.cert_file, key_file=own.key_file)
    mutual = {"listener": {"identity": "sidecar"}, "cluster": to_cluster(authority, own)}
    async with brokers(server_context(files, "required")) as (_, bootstrap), serving(bootstrap, **mutual) as sidecar:
        assert (await ask(sidecar, None))["cluster_id"] == "fake"


async def test_a_look_at_a_cluster_without_a_sidecar_speaks_tls_too(authority: Authority, own: Identity) -> None:
    security = ClusterSecurity.model_validate(to_cluster(authority)["security"])
    async with brokers(server_context(_files(own), "none")) as (cluster, _):
        servers = [HostPort(*broker.address) for broker in cluster.brokers.values()]
        async with surveying(servers, security) as surveyor:
            survey = await surveyor.look()
    assert survey.answered
    assert [standing.offset for standing in survey.brokers] == [100, 100]


async def test_the_name_that_was_dialled_is_told_and_looked_for(authority: Authority, tmp_path: Path) -> None:
    named = authority.sign("broker", ips=(), names=["localhost"])
    context, names = server_context(_files(named), "none"), []

    def note(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        names.append(name)

    context.sni_callback = note
    async with FakeCluster(1, tls=context) as cluster:
        cluster.host = "localhost"
        port = cluster.brokers[1].address.port
        async with serving(f"localhost:{port}", cluster=to_cluster(authority)) as sidecar:
            assert (await ask(sidecar, None))["cluster_id"] == "fake"
        assert set(names) == {"localhost"}
        tls = ClientTls(context=client_context(Ssl(ca_file=authority.ca_file)), server_hostname="127.0.0.1")
        assert "the certificate is not for 127.0.0.1" in await refusal(port, tls)
        lax = client_context(Ssl(ca_file=authority.ca_file, verify_hostname=False))
        connection = await connect(
            "127.0.0.1",
            port,
            tls=ClientTls(context=lax, server_hostname="127.0.0.1"),
            credentials=None,
            timeout_ms=TIMEOUT_MS,
            frame_bytes_max=1 << 20,
        )
        connection.close()


async def refusal(port: int, tls: ClientTls | None) -> str:
    with pytest.raises(BrokerUnavailable) as caught:
        await connect("127.0.0.1", port, tls=tls, credentials=None, timeout_ms=TIMEOUT_MS, frame_bytes_max=1 << 20)
    assert caught.value.cause in ("tls", "closed")
    return str(caught.value)


@pytest.mark.row("5.6")
async def test_what_goes_wrong_with_a_broker_is_explained(authority: Authority, own: Identity) -> None:
    tls = ClientTls(context=trusting(authority), server_hostname="127.0.0.1")
    async with brokers() as (cluster, _):
        assert "set cluster.security.protocol to PLAINTEXT" in await refusal(cluster.brokers[1].address.port, tls)
    stranger = Authority(own.cert_file.parent, "stranger")
    async with brokers(server_context(_files(stranger.sign("broker")), "none")) as (cluster, _):
        message = await refusal(cluster.brokers[1].address.port, tls)
        assert message.startswith("the certificate is not trusted: ")
        assert message.endswith("name its authority in cluster.security.ssl.ca_file")
    files = Ssl(ca_file=authority.ca_file, cert_file=own.cert_file, key_file=own.key_file)
    with demanding(server_context(files, "required")) as port:
        assert await refusal(port, tls) == (
            "the broker does not take our certificate (TLSV13_ALERT_CERTIFICATE_REQUIRED); "
            "see cluster.security.ssl.cert_file"
        )
    async with brokers(server_context(files, "required")) as (cluster, _):
        assert (await refusal(cluster.brokers[1].address.port, tls)).endswith("see cluster.security.ssl.cert_file")


@contextlib.contextmanager
def demanding(context: ssl.SSLContext) -> Iterator[int]:
    """A blocking server that takes one connection and shakes hands: it says why it refuses, as Kafka does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True).recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(server.getsockname()[1])
        thread.join()


async def test_a_start_with_a_bad_file_is_refused(own: Identity) -> None:
    own.key_file.write_text("no key")
    listener: Mapping[str, Any] = secured(own)
    with pytest.raises(ConfigError) as caught:
        async with serving("127.0.0.1:9", listener=listener):
            pass
    assert str(caught.value) == f"{own.key_file}: holds no private key in PEM (a block with PRIVATE KEY)"


async def test_nothing_unexpected_is_logged(
    authority: Authority, own: Identity, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a client that hangs up half way nor the end of the sidecar is an error of ours."""
    async with brokers() as (_, bootstrap), serving(bootstrap, listener=secured(own)) as sidecar:
        counters = sidecar.app.driver.counters
        _, gone = await asyncio.open_connection(*sidecar.nodes[1])
        gone.close()
        _, half = await asyncio.open_connection(*sidecar.nodes[1])
        client = await StateClient.open(sidecar.nodes[1], trusting(authority))
        await until(lambda: counters.client_connections == 1 and counters.closed["client", "client_reset"] == 1)
    half.close()
    await client.close()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert counters.client_connections == 0
    assert counters.internal_errors == 0
