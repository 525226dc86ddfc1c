"""TLS and every login of the sidecar's own on real Kafka, and clients of three families over TLS through the sidecar.

The same reads that other tests make in the clear: right after a write through another node, beside a lagging broker.
"""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.certificates import Authority, Identity
from tests.support.kafka import KafkaCluster
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin

pytestmark = [pytest.mark.kafka, pytest.mark.row("5.1"), pytest.mark.row("5.4")]

LAG_MS = 500
TIMEOUT_S = 30.0
LIFETIME_S = 6
"""Of a token: short, so that the logins of the sidecar must be renewed while the test runs."""


def token(principal: str, lifetime_s: float = 3600) -> str:
    """An unsigned token, which Kafka's own validator for tests accepts."""
    now_s = time.time()
    parts = ({"alg": "none"}, {"sub": principal, "iat": now_s, "exp": now_s + lifetime_s})
    coded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{'.'.join(coded)}."


@pytest.fixture
def own(tmp_path: Path) -> Identity:
    """The sidecar's certificate towards clients, of an authority of its own."""
    return Authority(tmp_path).sign("sidecar")


def to_clients(own: Identity, **listener: Any) -> dict[str, Any]:
    files = {"cert_file": str(own.cert_file), "key_file": str(own.key_file)}
    return {"security": {"protocol": "SSL", "ssl": files}, **listener}


@contextmanager
def sidecar(bootstrap: str, security: dict[str, Any], listener: dict[str, Any]) -> Iterator[SidecarProcess]:
    settings = {"cluster": {"security": security}, "consistency": {"wait_timeout_ms": 15_000}}
    with SidecarProcess(bootstrap, settings=settings, listener=listener) as process:
        yield process


def trusts(own: Identity, **config: Any) -> dict[str, Any]:
    """Settings of librdkafka."""
    ca_file = str(own.cert_file.parent / "authority.pem")
    return {"security.protocol": "SSL", "ssl.ca.location": ca_file, **config}


def round_trip(bootstrap: str, settings: dict[str, Any], topic: str) -> None:
    """Creates a topic, writes to it at once, and reads that back in a group."""
    client = {"bootstrap.servers": bootstrap, **settings}
    admin = AdminClient(client)
    admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=3)])[topic].result(TIMEOUT_S)
    assert set(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == {0, 1, 2}
    producer = Producer({**client, "acks": "all"})
    for number in range(30):
        producer.produce(topic, str(number).encode(), partition=number % 3)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**client, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[int] = set()
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(found) < 30 and time.monotonic() < deadline_s:
        for message in consumer.consume(30, timeout=1.0):
            assert message.error() is None, message.error()
            found.add(int(message.value() or b""))
    consumer.close()
    assert found == set(range(30))
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)


def test_clients_without_credentials_stand_beside_a_cluster_with_mutual_tls(
    kafka: KafkaCluster, own: Identity, topic_name: str
) -> None:
    mine = kafka.authority.sign("tidegate")
    files = {"cert_file": str(mine.cert_file), "key_file": str(mine.key_file)}
    security = {"protocol": "SSL", "ssl": {"ca_file": str(kafka.authority.ca_file), **files}}
    kafka.lag(LAG_MS)
    with sidecar(kafka.tls_bootstrap, security, to_clients(own, identity="sidecar")) as process:
        round_trip(str(process.bootstrap), trusts(own), topic_name)
        admin = SidecarAdmin(process.admin)
        assert admin.metric("tidegate_requests_total", decision="route") > 0
        assert admin.get("/readyz")[1]["guarantee"] == "full", "CN=tidegate may describe the quorum"


def test_sasl_over_tls_on_both_sides(kafka: KafkaCluster, own: Identity, tmp_path: Path, topic_name: str) -> None:
    """The sidecar with tokens that expire while it runs, clients with passwords that it repeats elsewhere."""
    file = tmp_path / "token"
    file.write_text(token("tidegate", LIFETIME_S))
    security = {
        "protocol": "SASL_SSL",
        "ssl": {"ca_file": str(kafka.authority.ca_file)},
        "sasl": {"mechanism": "OAUTHBEARER", "token_file": str(file)},
    }
    as_alice = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"}
    started_s = time.monotonic()
    with sidecar(kafka.sasl_tls_bootstrap, security, to_clients(own)) as process:
        file.write_text(token("tidegate"))
        round_trip(str(process.bootstrap), trusts(own, **as_alice, **{"security.protocol": "SASL_SSL"}), topic_name)
        admin = SidecarAdmin(process.admin)
        time.sleep(max(0.0, started_s + LIFETIME_S + 1 - time.monotonic()))
        ended = {
            cause: admin.metric("tidegate_connections_closed_total", side="broker", cause=cause)
            for cause in ("closed", "login")
        }
        assert ended == {"closed": 0, "login": 0}, "the logins of the probes were renewed in time"
        assert {row["state"] for row in admin.rows("/brokers")} == {"up"}


async def test_aiokafka_over_tls(kafka: KafkaCluster, own: Identity, topic_name: str) -> None:
    from config.sidecar import Ssl
    from config.tls import client_context

    context = client_context(Ssl(ca_file=own.cert_file.parent / "authority.pem"))
    with SidecarProcess(kafka.bootstrap, listener=to_clients(own)) as process:
        common: dict[str, Any] = {
            "bootstrap_servers": str(process.bootstrap),
            "security_protocol": "SSL",
            "ssl_context": context,
        }
        created = AdminClient({"bootstrap.servers": kafka.bootstrap})
        created.create_topics([NewTopic(topic_name, num_partitions=1, replication_factor=3)])[topic_name].result()
        async with AIOKafkaProducer(**common, acks="all") as producer:
            await asyncio.gather(*[producer.send_and_wait(topic_name, b"%d" % number) for number in range(10)])
        async with AIOKafkaConsumer(topic_name, **common, auto_offset_reset="earliest") as consumer:
            async with asyncio.timeout(TIMEOUT_S):
                assert sorted([(await consumer.getone()).value for _ in range(10)]) == [b"%d" % n for n in range(10)]


def test_java_console_tools_over_tls(kafka: KafkaCluster, own: Identity, tmp_path: Path, topic_name: str) -> None:
    settings = tmp_path / "client.properties"
    authority = own.cert_file.parent / "authority.pem"
    settings.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={authority}\n")
    with SidecarProcess(kafka.bootstrap, listener=to_clients(own)) as process:
        made = kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", str(process.bootstrap), "--command-config", str(settings)),
            *("--create", "--topic", topic_name),
        )
        assert made.stdout.strip() == f"Created topic {topic_name}.", made.stderr
