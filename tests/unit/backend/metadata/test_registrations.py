"""Who leads and who is in sync as brokers come and go, told as a story of one partition after the other."""

from typing import Final

import pytest

from backend.metadata.image import Image
from backend.metadata.records import (
    Batch,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from backend.metadata.registrations import fence, register, unfence

TOPIC_ID: Final = bytes(range(16))


class Story:
    """A cluster of brokers 1 to 3 with one partition."""

    def __init__(self, replicas: tuple[int, ...], leader: int) -> None:
        self.image = Image.empty("c")
        for broker_id in (1, 2, 3):
            self.register(broker_id)
            self.unfence(broker_id)
        self.commit(
            [
                TopicRecord(name="t", topic_id=TOPIC_ID),
                PartitionRecord(
                    partition_id=0,
                    topic_id=TOPIC_ID,
                    replicas=replicas,
                    isr=replicas,
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                ),
            ]
        )

    def commit(self, records: list[Record]) -> int:
        """Apply the records; returns how many there are."""
        batch = Batch(base_offset=self.image.highest_offset + 1, leader_epoch=1, records=tuple(records))
        self.image = self.image.apply(batch)
        return len(records)

    def register(self, broker_id: int) -> int:
        point = BrokerEndpoint(name="PLAINTEXT", host="h", port=broker_id)
        return self.commit(
            register(
                self.image,
                broker_id=broker_id,
                incarnation_id=TOPIC_ID,
                end_points=(point,),
                log_dir=TOPIC_ID,
                features=(),
            )
        )

    def fence(self, broker_id: int) -> int:
        return self.commit(fence(self.image, broker_id))

    def unfence(self, broker_id: int) -> int:
        return self.commit(unfence(self.image, broker_id))

    def now(self) -> tuple[int, tuple[int, ...], int]:
        """Leader, in-sync replicas, leader epoch."""
        (partition,) = self.image.topics.by_name["t"].partitions
        return partition.leader, partition.isr, partition.leader_epoch


def test_the_leadership_goes_to_the_next_replica_that_is_in_sync() -> None:
    story = Story((2, 3, 1), leader=2)
    story.fence(2)
    assert story.now() == (3, (3, 1), 1)
    story.fence(3)
    assert story.now() == (1, (1,), 2)


def test_a_follower_that_goes_leaves_the_leader_alone() -> None:
    story = Story((2, 3, 1), leader=2)
    story.fence(3)
    assert story.now() == (2, (2, 1), 0)


def test_the_last_one_in_sync_stays_so_that_only_it_may_lead_again() -> None:
    story = Story((1, 2), leader=1)
    story.fence(2)
    story.fence(1)
    assert story.now() == (-1, (1,), 1)
    story.unfence(2)
    assert story.now() == (-1, (1,), 1)
    story.unfence(1)
    assert story.now() == (1, (1, 2), 2)


def test_a_replica_that_returns_is_in_sync_again_and_does_not_take_over() -> None:
    story = Story((1, 2), leader=1)
    story.fence(1)
    story.unfence(1)
    assert story.now() == (2, (2, 1), 1)


def test_partitions_of_others_are_left_alone() -> None:
    story = Story((1, 2), leader=1)
    assert story.fence(3) == 1
    assert story.unfence(3) == 1
    assert story.now() == (1, (1, 2), 0)


def test_who_is_fenced_already_or_unknown_changes_nothing() -> None:
    story = Story((1, 2), leader=1)
    assert fence(story.image, 9) == unfence(story.image, 9) == unfence(story.image, 1) == []
    story.fence(1)
    assert fence(story.image, 1) == []


@pytest.mark.parametrize("left_before", [True, False])
def test_a_new_process_has_a_new_epoch_which_is_the_offset_of_its_record(left_before: bool) -> None:
    story = Story((1, 2), leader=1)
    if left_before:
        story.fence(1)
    records = register(story.image, broker_id=1, incarnation_id=TOPIC_ID, end_points=(), log_dir=TOPIC_ID, features=())
    before = story.image.highest_offset
    story.commit(records)
    assert isinstance(records[-1], RegisterBrokerRecord)
    assert records[-1].broker_epoch == before + len(records) == story.image.highest_offset
    assert any(isinstance(record, BrokerRegistrationChangeRecord) for record in records) != left_before
    assert story.image.cluster.brokers[1].fenced
    assert story.now()[0] == 2
