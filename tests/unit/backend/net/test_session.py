"""Clients that have to say who they are, at a cluster on real sockets: SASL, TLS, certificates, access rules."""

import asyncio
import base64
import hashlib
import logging
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import scramp
import uvloop

from backend.app import Backend, embedded, security_of
from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.tokens import TokenSettings
from backend.net import session
from backend.net.security import Security
from codec import decode_response, encode_request
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.frames import frame
from codec.headers import RequestHeader, encode_request_header, response_body_offset
from config.backend import BackendSecurity
from config.sidecar import Ssl
from config.tls import client_context
from tests.support.certificates import Authority

TIMEOUT_S: Final = 10
USERS: Final = {"ann": "ann-secret", "bob": "bob-secret"}
SASL: Final = Security(protocol="SASL_PLAINTEXT", passwords=USERS, session_lifetime_ms=0)
ALL_TOPICS: Final = {"topics": None, "allow_auto_topic_creation": False}


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, cluster: Backend, tls: ssl.SSLContext | None = None) -> "Client":
        host, port = cluster.broker(1).address
        async with asyncio.timeout(TIMEOUT_S):
            return cls(*await asyncio.open_connection(host, port, ssl=tls))

    async def ask(self, api_key: ApiKey, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="t")
        answer = await self.say(encode_request_header(header) + encode_request(api_key, version, body))
        return decode_response(api_key, version, answer, response_body_offset(answer, api_key, version))

    async def say(self, payload: bytes) -> bytes:
        self._writer.write(frame(payload))
        async with asyncio.timeout(TIMEOUT_S):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return await self._reader.readexactly(size)

    async def log_in(self, user: str, password: str, version: int = 2) -> dict[str, Any]:
        await self.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        return await self.ask(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": f"\0{user}\0{password}".encode()})

    async def is_closed(self) -> bool:
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self._reader.read() == b""
            except (ConnectionError, ssl.SSLError):
                return True

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            return


def names(answer: Mapping[str, Any]) -> list[str]:
    return [topic["name"] for topic in answer["topics"]]


def topic(name: str) -> dict[str, Any]:
    return {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}]}


async def settled(cluster: Backend) -> None:
    await cluster.broker(1).publication.reach_effect(cluster.head_offset)


async def test_a_client_that_has_logged_in_is_served_and_others_are_not() -> None:
    async with Backend(embedded(brokers=1, security=SASL)) as cluster:
        client = await Client.to(cluster)
        offered = await client.ask(
            ApiKey.API_VERSIONS, 3, {"client_software_name": "t", "client_software_version": "1"}
        )
        assert {int(ApiKey.SASL_HANDSHAKE), int(ApiKey.METADATA)} <= {row["api_key"] for row in offered["api_keys"]}
        answer = await client.log_in("ann", "ann-secret")
        assert (answer["error_code"], answer["session_lifetime_ms"]) == (0, 0)
        assert [broker["node_id"] for broker in (await client.ask(ApiKey.METADATA, 12, ALL_TOPICS))["brokers"]] == [1]
        again = await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert again == {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
        await client.close()
        stranger = await Client.to(cluster)
        with pytest.raises(asyncio.IncompleteReadError):
            await stranger.ask(ApiKey.METADATA, 12, ALL_TOPICS)
        await stranger.close()


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_wrong_password_is_the_end_after_a_while(
    version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session, "FAILED_LOGIN_DELAY_S", 0.01)
    async with Backend(embedded(brokers=1, security=SASL)) as cluster:
        client = await Client.to(cluster)
        with caplog.at_level(logging.WARNING, "tidegate.listener"):
            answer = await client.log_in("ann", "guess", version)
            assert await client.is_closed()
        assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer["error_message"] == "Authentication failed: Invalid username or password"
        assert "closed: it cannot log in by PLAIN: user or password is wrong" in caplog.text
        assert "guess" not in caplog.text
        await client.close()


async def test_little_is_read_from_a_client_that_nobody_knows(caplog: pytest.LogCaptureFixture) -> None:
    async with Backend(embedded(brokers=1, security=SASL)) as cluster:
        stranger, client = await Client.to(cluster), await Client.to(cluster)
        large = bytes(session.LOGIN_BYTES_MAX + 1)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await stranger.say(large)
        assert f"the limit is {session.LOGIN_BYTES_MAX}" in caplog.text
        await client.log_in("ann", "ann-secret")
        many = {"topics": [{"name": "x" * 200} for _ in range(3000)], "allow_auto_topic_creation": False}
        answer = await client.ask(ApiKey.METADATA, 9, many)
        assert [topic["error_code"] for topic in answer["topics"]] == [3]
        await stranger.close()
        await client.close()


async def test_a_certificate_of_a_stranger_is_not_trusted(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "other").mkdir()
    eve = Authority(tmp_path / "other").sign("eve")
    files = Ssl(ca_file=authority.ca_file, cert_file=eve.cert_file, key_file=eve.key_file)
    security = secured(authority, "SSL", client_auth="required")
    async with Backend(embedded(brokers=1, security=security)) as cluster:
        client = await Client.to(cluster, client_context(files))
        assert await client.is_closed()
        await client.close()
    assert "closed: the client's certificate is not trusted: unable to get local issuer" in caplog.text


async def test_bare_tokens_follow_the_handshake_of_old() -> None:
    async with Backend(embedded(brokers=1, security=SASL)) as cluster:
        client = await Client.to(cluster)
        await client.ask(ApiKey.SASL_HANDSHAKE, 0, {"mechanism": "PLAIN"})
        assert await client.say(b"\0ann\0ann-secret") == b""
        assert names(await client.ask(ApiKey.METADATA, 1, ALL_TOPICS)) == []
        await client.close()


async def test_a_port_without_logins_says_so() -> None:
    async with Backend(embedded(brokers=1)) as cluster:
        client = await Client.to(cluster)
        for version in (0, 1):
            answer = await client.ask(ApiKey.SASL_HANDSHAKE, version, {"mechanism": "PLAIN"})
            assert answer == {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
        answer = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"x"})
        assert answer["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
        await client.close()


async def test_access_rules_and_credentials_count_once_they_are_in_effect() -> None:
    authorizer = AuthorizerSettings(super_users=frozenset({"User:ann"}))
    security = Security(protocol="SASL_PLAINTEXT", passwords=USERS, authorizer=authorizer)
    async with Backend(embedded(brokers=1, security=security)) as cluster:
        ann, bob = await Client.to(cluster), await Client.to(cluster)
        await ann.log_in("ann", "ann-secret")
        await bob.log_in("bob", "bob-secret")
        await ann.ask(ApiKey.CREATE_TOPICS, 5, topic("orders"))
        await settled(cluster)
        assert names(await bob.ask(ApiKey.METADATA, 12, ALL_TOPICS)) == []
        refused = await bob.ask(ApiKey.CREATE_TOPICS, 5, topic("bills"))
        assert refused["topics"][0]["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        cluster.broker(1).publish_delay_ms = 3_600_000
        rule = {"resource_type": 2, "resource_name": "orders", "resource_pattern_type": 3, "principal": "User:bob"}
        rule |= {"host": "127.0.0.1", "operation": 8, "permission_type": 3}
        await ann.ask(ApiKey.CREATE_ACLS, 3, {"creations": [rule]})
        await cluster.broker(1).publication.reach(cluster.head_offset)
        assert names(await bob.ask(ApiKey.METADATA, 12, ALL_TOPICS)) == []
        cluster.broker(1).publish_delay_ms = 0
        await settled(cluster)
        assert names(await bob.ask(ApiKey.METADATA, 12, ALL_TOPICS)) == ["orders"]
        await ann.close()
        await bob.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def secured(authority: Authority, protocol: Any, **more: Any) -> Security:
    broker = authority.sign("broker")
    files = Ssl(cert_file=broker.cert_file, key_file=broker.key_file, ca_file=authority.ca_file)
    return security_of(BackendSecurity.model_construct(protocol=protocol, ssl=files, **more))


async def test_a_certificate_is_a_name(authority: Authority) -> None:
    security = secured(authority, "SSL", client_auth="required", authorizer="standard", super_users=("User:CN=ann",))
    async with Backend(embedded(brokers=1, security=security)) as cluster:
        found = []
        for name in ("ann", "bob"):
            identity = authority.sign(name)
            files = Ssl(ca_file=authority.ca_file, cert_file=identity.cert_file, key_file=identity.key_file)
            client = await Client.to(cluster, client_context(files))
            answer = await client.ask(ApiKey.CREATE_TOPICS, 5, topic(f"of-{name}"))
            found.append(answer["topics"][0]["error_code"])
            await client.close()
        assert found == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_certificates_under_the_loop_of_production(authority: Authority) -> None:
    """A cluster that runs by itself runs on uvloop, whose TLS is another."""
    uvloop.run(test_a_certificate_is_a_name(authority))


async def test_who_shows_no_certificate_or_speaks_no_tls_is_sent_away_with_a_reason(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    security = secured(authority, "SSL", client_auth="required")
    async with Backend(embedded(brokers=1, security=security)) as cluster:
        with caplog.at_level(logging.WARNING, "tidegate.listener"):
            nameless = await Client.to(cluster, client_context(Ssl(ca_file=authority.ca_file)))
            assert await nameless.is_closed()
            plain = await Client.to(cluster)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await plain.ask(ApiKey.METADATA, 12, ALL_TOPICS)
            await nameless.close()
            await plain.close()
    assert "the client shows no certificate, and client_auth is required; give it one" in caplog.text
    assert "the client does not speak TLS; set its security.protocol to SSL or SASL_SSL" in caplog.text


async def test_a_login_under_tls(authority: Authority, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann:ann-secret\n")
    security = secured(authority, "SASL_SSL", client_auth="none", users_file=users)
    async with Backend(embedded(brokers=1, security=security)) as cluster:
        client = await Client.to(cluster, client_context(Ssl(ca_file=authority.ca_file)))
        assert (await client.log_in("ann", "ann-secret"))["error_code"] == 0
        assert names(await client.ask(ApiKey.METADATA, 12, ALL_TOPICS)) == []
        await client.close()


async def scram(cluster: Backend, user: str, password: str, extension: str = "") -> tuple[Client, int]:
    """A login by SCRAM-SHA-256, and the error code that it ends with."""
    client, login = await Client.to(cluster), scramp.ScramClient(["SCRAM-SHA-256"], user, password)
    await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
    message = login.get_client_first() + extension
    login.client_first_bare += extension
    first = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message.encode()})
    if first["error_code"]:
        return client, first["error_code"]
    login.set_server_first(first["auth_bytes"].decode())
    last = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": login.get_client_final().encode()})
    login.set_server_final(last["auth_bytes"].decode())
    return client, last["error_code"]


async def test_a_credential_of_the_log_logs_in_once_it_is_in_effect() -> None:
    async with Backend(embedded(brokers=1, security=SASL)) as cluster:
        client = await Client.to(cluster)
        await client.log_in("ann", "ann-secret")
        salt = b"salt of 16 bytes"
        upsertion = {"name": "sue", "mechanism": 1, "iterations": 4096, "salt": salt}
        upsertion["salted_password"] = hashlib.pbkdf2_hmac("sha256", b"sue-pw", salt, 4096)
        cluster.broker(1).publish_delay_ms = 3_600_000
        await client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [], "upsertions": [upsertion]})
        await cluster.broker(1).publication.reach(cluster.head_offset)
        await client.close()
        sue, error = await scram(cluster, "sue", "sue-pw")
        assert error == ErrorCode.SASL_AUTHENTICATION_FAILED
        await sue.close()
        cluster.broker(1).publish_delay_ms = 0
        await settled(cluster)
        sue, error = await scram(cluster, "sue", "sue-pw")
        assert error == 0
        assert names(await sue.ask(ApiKey.METADATA, 12, ALL_TOPICS)) == []
        await sue.close()


async def test_who_has_come_in_by_a_token_is_its_owner_and_asks_for_no_more_tokens() -> None:
    authorizer = AuthorizerSettings(super_users=frozenset({"User:ann"}))
    tokens = TokenSettings(secret="token secret")
    security = Security(protocol="SASL_PLAINTEXT", passwords=USERS, authorizer=authorizer, tokens=tokens)
    async with Backend(embedded(brokers=1, security=security)) as cluster:
        bob = await Client.to(cluster)
        await bob.log_in("bob", "bob-secret")
        token = await bob.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, {"max_lifetime_ms": -1})
        await settled(cluster)
        quorum = await bob.ask(ApiKey.DESCRIBE_QUORUM, 2, {"topics": []})
        assert quorum["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        by_token, error = await scram(
            cluster, token["token_id"], base64.b64encode(token["hmac"]).decode(), ",tokenauth=true"
        )
        assert error == 0
        described = [await each.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None}) for each in (bob, by_token)]
        assert [len(described[0]["tokens"]), described[1]["error_code"]] == [
            1,
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        ]
        refused = await by_token.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, {"max_lifetime_ms": -1})
        assert (refused["error_code"], refused["principal_name"]) == (
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "bob",
        )
        await bob.close()
        await by_token.close()
