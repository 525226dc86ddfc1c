"""Clients that log in to the embedded cluster: by PLAIN, SCRAM and a token, under TLS, with few rights.

One cluster that enforces access rules serves all: root is a super user by PLAIN, carol has a SCRAM credential, and may
see and do what the rules say.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiokafka.admin
import aiokafka.helpers
import confluent_kafka
import kafka
import pytest
from confluent_kafka import admin as confluent
from kafka.errors import KafkaError, TopicAuthorizationFailedError

from backend.app import embedded, security_of
from backend.metadata.authorizer import AuthorizerSettings
from backend.net.security import Security
from config.backend import BackendSecurity
from config.sidecar import Ssl
from tests.support.backend import BackendThread
from tests.support.certificates import Authority
from tests.support.sidecar import SidecarProcess

TIMEOUT_S: Final = 30.0
SESSION_LIFETIME_MS: Final = 1500
SCRAM: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the brokers' certificates."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cluster(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackendThread]:
    """Topics `hers` and `theirs`; carol may describe and alter the first."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "users").write_text("root:root-secret\n")
    (folder / "tokens").write_text("token secret\n")
    broker = authority.sign("broker")
    security = BackendSecurity(
        protocol="SASL_SSL",
        ssl=Ssl(cert_file=broker.cert_file, key_file=broker.key_file),
        users_file=folder / "users",
        delegation_token_secret_file=folder / "tokens",
        authorizer="standard",
        super_users=("User:root",),
    )
    with BackendThread(embedded(security=security_of(security))) as running:
        prepare(running, authority.ca_file)
        yield running


def prepare(cluster: BackendThread, ca_file: Path) -> None:
    admin = confluent.AdminClient(librdkafka(cluster, ca_file, "PLAIN", "root", "root-secret"))
    for future in admin.create_topics([confluent.NewTopic(name, 1, 1) for name in ("hers", "theirs")]).values():
        future.result(TIMEOUT_S)
    upsertions = [
        confluent.UserScramCredentialUpsertion("carol", confluent.ScramCredentialInfo(mechanism, 4096), b"carol-secret")
        for mechanism in (confluent.ScramMechanism.SCRAM_SHA_256, confluent.ScramMechanism.SCRAM_SHA_512)
    ]
    for upsertion in upsertions:
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(TIMEOUT_S)
    allow = (confluent.AclOperation.ALTER, confluent.AclPermissionType.ALLOW)
    rule = (confluent.ResourceType.TOPIC, "hers", confluent.ResourcePatternType.LITERAL, "User:carol", "*", *allow)
    for future in admin.create_acls([confluent.AclBinding(*rule)]).values():
        future.result(TIMEOUT_S)
    cluster.settle()


def librdkafka(cluster: BackendThread, ca_file: Path, mechanism: str, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(ca_file),
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


@pytest.mark.parametrize("mechanism", SCRAM.values())
def test_confluent_kafka(cluster: BackendThread, authority: Authority, mechanism: str) -> None:
    settings = librdkafka(cluster, authority.ca_file, mechanism, "carol", "carol-secret")
    admin = confluent.AdminClient(settings)
    assert list(admin.list_topics(timeout=TIMEOUT_S).topics) == ["hers"]
    assert code(admin.create_topics([confluent.NewTopic("new", 1, 1)])) == "TOPIC_AUTHORIZATION_FAILED"
    assert code(admin.create_partitions([confluent.NewPartitions("theirs", 2)])) == "TOPIC_AUTHORIZATION_FAILED"
    assert code(admin.create_partitions([confluent.NewPartitions("hers", 1)])) == "INVALID_PARTITIONS"
    rule = (confluent.ResourceType.TOPIC, "hers", confluent.ResourcePatternType.LITERAL, "User:carol", "*")
    more = confluent.AclBinding(*rule, confluent.AclOperation.ALL, confluent.AclPermissionType.ALLOW)
    assert code(admin.create_acls([more])) == "CLUSTER_AUTHORIZATION_FAILED"


def code(futures: Any) -> str:
    (future,) = futures.values()
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        future.result(TIMEOUT_S)
    return str(caught.value.args[0].name())


def test_confluent_kafka_learns_why_it_cannot_log_in(cluster: BackendThread, authority: Authority) -> None:
    said: list[str] = []
    settings = librdkafka(cluster, authority.ca_file, "SCRAM-SHA-512", "carol", "wrong")
    admin = confluent.AdminClient({**settings, "error_cb": lambda error: said.append(error.name())})
    while not said:
        admin.poll(TIMEOUT_S)
    assert said[0] == "_AUTHENTICATION"


@pytest.mark.parametrize("mechanism", SCRAM.values())
def test_kafka_python(cluster: BackendThread, authority: Authority, mechanism: str) -> None:
    admin = kafka.KafkaAdminClient(
        bootstrap_servers=cluster.bootstrap,
        security_protocol="SASL_SSL",
        ssl_cafile=str(authority.ca_file),
        sasl_mechanism=mechanism,
        sasl_plain_username="carol",
        sasl_plain_password="carol-secret",
    )
    try:
        assert admin.list_topics() == ["hers"]
        with pytest.raises(TopicAuthorizationFailedError):
            admin.create_topics({"new": {"num_partitions": 1, "replication_factor": 1}})
        with pytest.raises(KafkaError, match=r"(?i)cluster"):
            admin.describe_user_scram_credentials(["carol"])
    finally:
        admin.close()


async def with_aiokafka(cluster: BackendThread, ca_file: Path, mechanism: str) -> list[str]:

    admin = aiokafka.admin.AIOKafkaAdminClient(
        bootstrap_servers=cluster.bootstrap,
        security_protocol="SASL_SSL",
        ssl_context=aiokafka.helpers.create_ssl_context(cafile=str(ca_file)),
        sasl_mechanism=mechanism,
        sasl_plain_username="carol",
        sasl_plain_password="carol-secret",
    )
    await admin.start()
    try:
        return list(await admin.list_topics())
    finally:
        await admin.close()


@pytest.mark.parametrize("mechanism", SCRAM.values())
def test_aiokafka(cluster: BackendThread, authority: Authority, mechanism: str) -> None:
    assert asyncio.run(with_aiokafka(cluster, authority.ca_file, mechanism)) == ["hers"]


def test_a_session_ends_and_clients_renew_it_unasked(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """librdkafka logs in again well before the end of a session, on the same connection."""
    security = Security(
        protocol="SASL_PLAINTEXT", passwords={"root": "root-secret"}, session_lifetime_ms=SESSION_LIFETIME_MS
    )
    with BackendThread(embedded(brokers=1, security=security)) as cluster:
        said: list[str] = []
        settings = librdkafka(cluster, authority.ca_file, "PLAIN", "root", "root-secret")
        settings |= {"security.protocol": "SASL_PLAINTEXT", "error_cb": lambda error: said.append(str(error))}
        del settings["ssl.ca.location"]
        admin = confluent.AdminClient(settings)
        for _ in range(4):
            admin.list_topics(timeout=TIMEOUT_S)
            admin.poll(SESSION_LIFETIME_MS / 2000)
        assert (said, caplog.text) == ([], "")


def test_who_logs_in_through_the_sidecar_reads_what_it_has_written(tmp_path: Path) -> None:
    """The sidecar has its own login for its questions; the client's passes through to a broker that lags."""
    (tmp_path / "password").write_text("root-secret\n")
    sasl = {"mechanism": "PLAIN", "username": "root", "password_file": str(tmp_path / "password")}
    settings = {
        "cluster": {"security": {"protocol": "SASL_PLAINTEXT", "sasl": sasl}},
        "limits": {"drain_timeout_ms": 1000},
    }
    security = Security(
        protocol="SASL_PLAINTEXT",
        passwords={"root": "root-secret"},
        authorizer=AuthorizerSettings(super_users=frozenset({"User:root"})),
    )
    with BackendThread(embedded(security=security)) as cluster:
        for node_id in cluster.nodes:
            cluster.lag(node_id, 200)
        with SidecarProcess(cluster.bootstrap, settings=settings) as sidecar:
            client = librdkafka(cluster, tmp_path, "PLAIN", "root", "root-secret")
            client |= {"security.protocol": "SASL_PLAINTEXT", "bootstrap.servers": str(sidecar.bootstrap)}
            del client["ssl.ca.location"]
            admin = confluent.AdminClient(client)
            for number in range(3):
                for future in admin.create_topics([confluent.NewTopic(f"topic-{number}", 1, 1)]).values():
                    future.result(TIMEOUT_S)
                assert f"topic-{number}" in admin.list_topics(timeout=TIMEOUT_S).topics
