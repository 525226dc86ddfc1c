"""What real clients make of held reads that end with `on_timeout: error`, compared with docs/on-timeout.md.

The level is linearizable and every controller stands still, so that no read can be proven anywhere and every client
meets that ending, whichever broker it asks. All clients are connected before.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError as AiokafkaConnectionError
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError, RequestTimedOutError

from tests.support.kafka import KafkaCluster
from tests.support.kafka.java import end_group
from tests.support.sidecar import SidecarProcess

pytestmark = pytest.mark.kafka

JAVA = Path(__file__).parent / "java" / "HeldReads.java"
WAIT_TIMEOUT_MS = 500
CALL_S_MAX = 10.0
REASON = re.compile(r"Tidegate: the head of the metadata log could not be confirmed within \d+ ms; retry")
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


class JavaAdmin:
    """The program `HeldReads`, one call at a time."""

    def __init__(self, kafka: KafkaCluster, bootstrap: str, topic: str) -> None:
        self._process = kafka.start_java(JAVA, bootstrap, topic)

    def call(self, name: str) -> str:
        """How a call ended: `answered`, or the exception and its message."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line.startswith(f"{name}: "), line
        return line.removeprefix(f"{name}: ").strip()

    def close(self) -> None:
        end_group(self._process)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def bootstrap(kafka: KafkaCluster) -> Iterator[str]:
    settings = {"consistency": {"level": "linearizable", "wait_timeout_ms": WAIT_TIMEOUT_MS}}
    with SidecarProcess(kafka.bootstrap, settings=settings) as sidecar:
        yield str(sidecar.bootstrap)


@pytest.fixture
def librdkafka(bootstrap: str, topic_name: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.list_topics(timeout=CALL_S_MAX)
    return admin


@pytest.fixture
def producer(bootstrap: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.list_topics(timeout=CALL_S_MAX)
    return producer


@pytest.fixture
def kafka_python(bootstrap: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.describe_cluster()
    yield admin
    admin.close()


@pytest.fixture
async def aiokafka(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.list_topics()
    yield admin
    await admin.close()


@pytest.fixture
def java(kafka: KafkaCluster, bootstrap: str, topic_name: str) -> Iterator[JavaAdmin]:
    admin = JavaAdmin(kafka, bootstrap, topic_name)
    assert admin.call("describeClientQuotas") == "answered"
    yield admin
    admin.close()


async def error_of(call: Awaitable[Any]) -> Exception:
    """The error that a call ends with, in time."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what it is, the test decides
        await asyncio.wait_for(call, CALL_S_MAX)
    return caught.value


async def test_each_family_retries_or_gets_the_documented_error(
    kafka: KafkaCluster,
    topic_name: str,
    librdkafka: AdminClient,
    producer: Producer,
    kafka_python: KafkaAdminClient,
    aiokafka: AIOKafkaAdminClient,
    java: JavaAdmin,
) -> None:
    # No client has met this topic: who wants to use it has to ask.
    librdkafka.create_topics([NewTopic(topic_name, 1, 1)])[topic_name].result(CALL_S_MAX)
    for controller_id in kafka.controllers:
        kafka.stop(controller_id)

    listed, acls, described, also_listed, again_listed, quotas = await asyncio.gather(
        error_of(asyncio.to_thread(librdkafka.list_topics, timeout=3)),
        error_of(asyncio.to_thread(librdkafka.describe_acls(ANY_ACL).result, CALL_S_MAX)),
        error_of(asyncio.to_thread(kafka_python.describe_cluster)),
        error_of(aiokafka.list_topics()),
        error_of(aiokafka.list_topics()),
        asyncio.to_thread(java.call, "describeClientQuotas"),
    )
    assert isinstance(listed, KafkaException)
    assert listed.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
    assert isinstance(acls, KafkaException)
    assert acls.args[0].code() == KafkaError._TRANSPORT
    assert isinstance(described, RequestTimedOutError)
    assert REASON.search(str(described))
    assert isinstance(also_listed, AiokafkaConnectionError)
    assert isinstance(again_listed, AiokafkaConnectionError)
    assert quotas.startswith("TimeoutException: ")
    assert REASON.search(quotas)
    assert isinstance(await error_of(asyncio.to_thread(kafka_python.list_topics)), KafkaConnectionError)

    delivered: list[KafkaError | None] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        delivered.append(error)

    producer.produce(topic_name, b"record", on_delivery=on_delivery)
    assert producer.flush(2 * WAIT_TIMEOUT_MS / 1000) == 1
    configs = asyncio.create_task(asyncio.to_thread(java.call, "describeConfigs"))
    assert not (await asyncio.wait([configs], timeout=2 * WAIT_TIMEOUT_MS / 1000))[0]
    for controller_id in kafka.controllers:
        kafka.resume(controller_id)
    assert await asyncio.wait_for(configs, 60) == "answered"
    assert await asyncio.to_thread(producer.flush, 60) == 0
    assert delivered == [None]
