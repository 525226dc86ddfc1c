"""What CreateTopics, CreatePartitions and DeleteTopics commit; what they answer is compared with Kafka elsewhere."""

from typing import Any

import pytest

from backend.metadata.client import Client
from backend.metadata.controller import WriteContext, WriteRequest, decide
from backend.metadata.records import (
    ConfigRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from backend.metadata.writes import Outcome
from codec.api_keys import ApiKey
from tests.support.memory_backend import MemoryBackend, broker

NEW_ID = b"n" * 16


def outcome(backend: MemoryBackend, api_key: ApiKey, version: int, body: dict[str, Any]) -> Outcome:
    request = WriteRequest(api_key=api_key, api_version=version, body=body, client=Client(), broker_id=1)
    context = WriteContext(now_ms=0, new_uuid=lambda: NEW_ID, num_partitions=2, replication_factor=3)
    return decide(request, backend.image, context)


def topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [],
        "configs": [],
        **more,
    }


def create(backend: MemoryBackend, *topics: dict[str, Any], only: bool = False) -> Outcome:
    return outcome(backend, ApiKey.CREATE_TOPICS, 7, {"topics": list(topics), "validate_only": only})


def kinds(records: tuple[Record, ...]) -> list[type[Record]]:
    return [type(record) for record in records]


def test_a_topic_is_its_record_then_its_configuration_then_its_partitions() -> None:
    configs = [{"name": "retention.ms", "value": "5"}]
    records = create(MemoryBackend(), topic("t", 2, 2, configs=configs)).records
    assert kinds(records) == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    assert records[0] == TopicRecord(name="t", topic_id=NEW_ID)
    for index, record in enumerate(records[2:]):
        assert isinstance(record, PartitionRecord)
        assert (record.partition_id, record.topic_id) == (index, NEW_ID)
        assert (len(record.replicas), record.isr, record.leader) == (2, record.replicas, record.replicas[0])
        assert (record.leader_epoch, record.partition_epoch) == (0, 0)


def test_the_controllers_defaults_count() -> None:
    records = create(MemoryBackend(), topic("t", -1, -1)).records
    assert [len(r.replicas) for r in records if isinstance(r, PartitionRecord)] == [3, 3]


def test_what_is_refused_or_only_validated_commits_nothing() -> None:
    backend = MemoryBackend()
    assert create(backend, topic("t"), only=True).records == ()
    assert create(backend, topic("a b")).records == ()
    assert kinds(create(backend, topic("a b"), topic("t")).records) == [TopicRecord, PartitionRecord]


def test_what_is_too_much_is_refused_before_it_is_made() -> None:
    refused = create(MemoryBackend(), topic("t"), topic("huge", 2**31 - 1))
    assert refused.records == ()
    assert [result["error_code"] for result in refused.response["topics"]] == [44, 44]
    grown = {"name": "t", "count": 2**31 - 1, "assignments": None}
    backend = MemoryBackend()
    backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic("t")]})
    body = {"topics": [grown], "validate_only": False}
    assert outcome(backend, ApiKey.CREATE_PARTITIONS, 3, body).response["results"][0]["error_code"] == 44


@pytest.mark.parametrize(
    ("brokers", "isr"),
    [
        ((broker(1), broker(2), broker(3)), (1, 2, 3)),
        ((broker(1), broker(2, fenced=True), broker(3)), (1, 3)),
        ((broker(1, fenced=True), broker(2, fenced=True), broker(3)), (3,)),
    ],
)
def test_only_active_replicas_are_in_sync(brokers: tuple[RegisterBrokerRecord, ...], isr: tuple[int, ...]) -> None:
    assigned = topic("t", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1, 2, 3]}])
    record = create(MemoryBackend(brokers), assigned).records[1]
    assert isinstance(record, PartitionRecord)
    assert (record.replicas, record.isr, record.leader) == ((1, 2, 3), isr, isr[0])


def test_nobody_active_is_refused_in_kafkas_words() -> None:
    backend = MemoryBackend((broker(1, fenced=True), broker(2)))
    assigned = topic("t", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1]}])
    (result,) = create(backend, assigned).response["topics"]
    assert result["error_code"] == 39
    assert result["error_message"] == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown."
    )
    fenced = MemoryBackend((broker(1, fenced=True),))
    (result,) = create(fenced, topic("t")).response["topics"]
    assert result["error_code"] == 38
    assert result["error_message"] == "Unable to replicate the partition 1 time(s): All brokers are currently fenced."


def test_new_partitions_follow_the_old_ones() -> None:
    backend = MemoryBackend()
    backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic("t", 2, 2)]})
    body = {"topics": [{"name": "t", "count": 4, "assignments": None}], "validate_only": False}
    records = outcome(backend, ApiKey.CREATE_PARTITIONS, 3, body).records
    assert [r.partition_id for r in records if isinstance(r, PartitionRecord)] == [2, 3]
    assert outcome(backend, ApiKey.CREATE_PARTITIONS, 3, {**body, "validate_only": True}).records == ()


def test_a_deletion_is_one_record_a_topic() -> None:
    backend = MemoryBackend()
    backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic("t"), topic("u")]})
    ids = {name: found.topic_id for name, found in backend.image.topics.by_name.items()}
    asked = [{"name": "t", "topic_id": bytes(16)}, {"name": None, "topic_id": ids["u"]}]
    records = outcome(backend, ApiKey.DELETE_TOPICS, 6, {"topics": asked}).records
    assert set(records) == {RemoveTopicRecord(topic_id=ids["t"]), RemoveTopicRecord(topic_id=ids["u"])}
