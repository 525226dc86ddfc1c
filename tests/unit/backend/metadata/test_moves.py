"""Reassignments, elections, features and registrations where the comparison with Kafka does not reach: brokers away."""

from collections.abc import Sequence
from typing import Any

import pytest

from backend.metadata import elections, reassignments
from backend.metadata.features import METADATA_VERSION
from backend.metadata.records import BrokerFeature, FeatureLevelRecord, RegisterBrokerRecord
from backend.metadata.registrations import fence, unfence
from backend.metadata.topics import Partition
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from tests.support.memory_backend import FRESH, MemoryBackend, broker

UNCLEAN = {"name": "unclean.leader.election.enable", "value": "true"}


class Story:
    """Three brokers and topic `t` with one partition."""

    def __init__(self, *replicas: int, configs: Sequence[dict[str, str]] = ()) -> None:
        self.backend = MemoryBackend()
        topic = {
            "name": "t",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": list(replicas)}],
            "configs": list(configs),
        }
        self.backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic]})

    @property
    def partition(self) -> Partition:
        return self.backend.image.topics.by_name["t"].partitions[0]

    def fence(self, broker_id: int) -> None:
        self.backend.commit(fence(self.backend.image, broker_id))

    def unfence(self, broker_id: int) -> None:
        self.backend.commit(unfence(self.backend.image, broker_id))

    def move(self, *replicas: int) -> int:
        return self._alter(list(replicas))

    def stop(self) -> int:
        return self._alter(None)

    def elect(self, kind: int) -> int:
        wanted = [{"topic": "t", "partitions": [0]}]
        answer = self.backend.ask(ApiKey.ELECT_LEADERS, 2, {"election_type": kind, "topic_partitions": wanted})
        return int(answer["replica_election_results"][0]["partition_result"][0]["error_code"])

    def moving(self, topics: Any = None) -> list[dict[str, Any]]:
        answer = self.backend.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": topics})
        return [partition for topic in answer["topics"] for partition in topic["partitions"]]

    def unregister(self, broker_id: int) -> int:
        return int(self.backend.ask(ApiKey.UNREGISTER_BROKER, 0, {"broker_id": broker_id})["error_code"])

    def _alter(self, replicas: list[int] | None) -> int:
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "replicas": replicas}]}]
        answer = self.backend.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, {"topics": topics})
        return int(answer["responses"][0]["partitions"][0]["error_code"])


def test_a_move_to_a_broker_that_is_away_waits_for_it() -> None:
    story = Story(1, 2)
    story.fence(3)
    assert story.move(3, 1) == 0
    assert story.moving() == [
        {"partition_index": 0, "replicas": [3, 1, 2], "adding_replicas": [3], "removing_replicas": [2]}
    ]
    assert story.moving([{"name": "t", "partition_indexes": [0, 7]}]) == story.moving()
    assert (story.partition.leader, story.partition.isr) == (1, (1, 2))
    story.unfence(3)
    assert story.moving() == []
    assert (story.partition.replicas, set(story.partition.isr), story.partition.leader) == ((3, 1), {1, 3}, 1)
    assert story.partition.adding_replicas == story.partition.removing_replicas == ()


def test_a_move_that_waits_can_be_stopped() -> None:
    story = Story(1, 2)
    story.fence(3)
    story.move(3, 1)
    assert story.stop() == 0
    assert (story.partition.replicas, story.partition.isr, story.partition.leader) == ((1, 2), (1, 2), 1)
    assert story.stop() == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize("unclean", [False, True])
def test_a_move_whose_old_replicas_are_not_in_sync_is_stopped_at_the_price_of_data_only(unclean: bool) -> None:
    story = Story(1, configs=[UNCLEAN] if unclean else [])
    story.fence(2)
    story.move(3, 2)
    story.fence(1)
    assert (story.partition.leader, story.partition.isr) == (3, (3,))
    if unclean:
        assert story.stop() == 0
        assert (story.partition.replicas, story.partition.isr, story.partition.leader) == ((1,), (1,), -1)
    else:
        assert story.stop() == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert story.moving() != []


def test_one_partition_moved_twice_in_a_request_ends_where_the_last_move_says() -> None:
    story = Story(1, 2)
    moves = [{"partition_index": 0, "replicas": [1, 3]}, {"partition_index": 0, "replicas": [2, 3]}]
    topics = [{"name": "t", "partitions": moves}]
    story.backend.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, {"topics": topics})
    assert (story.partition.replicas, set(story.partition.isr), story.partition.leader) == ((2, 3), {2, 3}, 2)


@pytest.mark.parametrize(("replicas", "epochs"), [((1, 3), 1), ((1, 2, 3), 0), ((2, 1), 0), ((3,), 1)])
def test_the_leader_epoch_grows_when_a_replica_goes_or_another_one_leads(
    replicas: tuple[int, ...], epochs: int
) -> None:
    story = Story(1, 2)
    assert story.move(*replicas) == 0
    assert (story.partition.replicas, story.partition.leader_epoch) == (replicas, epochs)


def test_a_preferred_leader_that_is_away_is_not_elected() -> None:
    story = Story(1, 2)
    story.fence(1)
    assert story.elect(0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert story.partition.leader == 2
    story.unfence(1)
    assert story.partition.leader == 2
    assert story.elect(0) == 0
    assert story.partition.leader == 1


def test_an_unclean_election_takes_who_is_not_in_sync_and_all_is_well_at_once() -> None:
    story = Story(1, 2, 3)
    for broker_id in (2, 3, 1):
        story.fence(broker_id)
    assert (story.partition.leader, story.partition.isr) == (-1, (1,))
    assert story.elect(1) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    story.unfence(3)
    story.unfence(2)
    assert story.partition.leader == -1
    assert story.elect(0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert story.elect(1) == 0
    assert (story.partition.leader, story.partition.isr, story.partition.leader_recovery_state) == (2, (2, 3), 0)


def test_a_broker_that_is_unregistered_leads_nothing_any_more() -> None:
    story = Story(3, 1)
    assert story.unregister(3) == 0
    assert (story.partition.leader, story.partition.isr, story.partition.replicas) == (1, (1,), (3, 1))
    assert sorted(story.backend.image.cluster.brokers) == [1, 2]
    assert story.unregister(3) == ErrorCode.BROKER_ID_NOT_REGISTERED


def update(backend: MemoryBackend, level: int, kind: int) -> str | None:
    updates = [{"feature": METADATA_VERSION, "max_version_level": level, "upgrade_type": kind}]
    answer = backend.ask(ApiKey.UPDATE_FEATURES, 1, {"feature_updates": updates})
    message: str | None = answer["error_message"]
    return message


def test_a_level_that_brought_no_record_can_be_taken_back() -> None:
    backend = MemoryBackend([*FRESH, FeatureLevelRecord(name=METADATA_VERSION, feature_level=31)])
    assert update(backend, 30, 2) is None
    assert backend.image.features[METADATA_VERSION] == 30
    assert "Refusing to perform" in (update(backend, 29, 2) or "")
    assert update(backend, 33, 1) is None


def test_a_level_that_a_broker_does_not_support_is_not_finalized() -> None:
    old = broker(2)
    feature = BrokerFeature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=25)
    registration = {name: getattr(old, name) for name in old.__slots__} | {"features": (feature,)}
    backend = MemoryBackend([FeatureLevelRecord(name=METADATA_VERSION, feature_level=25), broker(1)])
    backend.commit([RegisterBrokerRecord(**registration)])
    assert "Broker 2 only supports versions 7-25" in (update(backend, 30, 1) or "")
    assert backend.image.features[METADATA_VERSION] == 25


def test_what_would_be_too_many_records_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(1, 2)
    more = {"name": "t", "count": 3, "assignments": [{"broker_ids": [1, 2]}] * 2}
    story.backend.ask(ApiKey.CREATE_PARTITIONS, 3, {"topics": [more]})
    monkeypatch.setattr(reassignments, "RECORDS_PER_WRITE_MAX", 2)
    monkeypatch.setattr(elections, "RECORDS_PER_WRITE_MAX", 2)
    wanted = [{"partition_index": index, "replicas": [2, 1]} for index in range(3)]
    asked = {"topics": [{"name": "t", "partitions": wanted}]}
    answer = story.backend.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, asked)
    assert answer["error_code"] == ErrorCode.POLICY_VIOLATION
    assert story.partition.replicas == (1, 2)
    for index in range(3):
        one = {"topics": [{"name": "t", "partitions": wanted[index : index + 1]}]}
        story.backend.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, one)
    before = story.backend.image.topics.by_name["t"].partitions
    assert [(partition.leader, partition.replicas) for partition in before] == [(1, (2, 1))] * 3
    answer = story.backend.ask(ApiKey.ELECT_LEADERS, 2, {"election_type": 0, "topic_partitions": None})
    assert answer["error_code"] == ErrorCode.POLICY_VIOLATION
    assert story.backend.image.topics.by_name["t"].partitions == before
