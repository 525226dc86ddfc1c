"""How an image grows: what follows what, what is shared, and what a damaged log is answered with."""

import pytest

from backend.metadata.errors import ReplayError
from backend.metadata.image import Image
from backend.metadata.records import (
    Batch,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from tests.support.memory_backend import broker

ID = b"i" * 16
TOPIC = TopicRecord(name="t", topic_id=ID)
NO_OP = NoOpRecord()


def partition(index: int, topic_id: bytes = ID) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=(1, 2),
        isr=(1, 2),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )


def image_of(*records: Record) -> Image:
    return Image.empty("cluster").apply(Batch(base_offset=0, leader_epoch=1, records=records))


def test_an_empty_image_is_at_no_offset() -> None:
    image = Image.empty("cluster")
    assert (image.cluster_id, image.highest_offset, image.highest_epoch) == ("cluster", -1, -1)


def test_the_position_is_that_of_the_last_record() -> None:
    image = Image.empty("cluster").apply(Batch(base_offset=7, leader_epoch=3, records=(NO_OP, NO_OP)))
    assert (image.highest_offset, image.highest_epoch) == (8, 3)


def test_a_batch_without_records_changes_nothing() -> None:
    image = image_of(NO_OP)
    assert image.apply(Batch(base_offset=9, leader_epoch=9, records=())) is image


@pytest.mark.parametrize(("base_offset", "leader_epoch"), [(1, 1), (0, 1), (2, 0)])
def test_nothing_follows_itself(base_offset: int, leader_epoch: int) -> None:
    image = image_of(NO_OP, NO_OP)
    with pytest.raises(ReplayError, match=f"offset {base_offset} of epoch {leader_epoch} cannot follow offset 1"):
        image.apply(Batch(base_offset=base_offset, leader_epoch=leader_epoch, records=(NO_OP,)))


def test_what_a_batch_does_not_touch_is_shared() -> None:
    before = image_of(TOPIC, partition(0), broker(1))
    config = ConfigRecord(resource_type=2, resource_name="t", name="k", value="v")
    after = before.apply(Batch(base_offset=3, leader_epoch=1, records=(config,)))
    assert after.topics is before.topics
    assert after.cluster is before.cluster
    assert after.configs is not before.configs


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (TOPIC, "topic t exists already"),
        (TopicRecord(name="t", topic_id=bytes(16)), "topic t exists already"),
        (TopicRecord(name="u", topic_id=ID), "topic u exists already"),
        (RemoveTopicRecord(topic_id=bytes(16)), "no topic has the id 0000"),
        (partition(0, bytes(16)), "no topic has the id 0000"),
        (partition(2), "topic t has 1 partitions, none is 2"),
        (partition(-1), "topic t has 1 partitions, none is -1"),
        (PartitionChangeRecord(partition_id=1, topic_id=ID), "topic t has 1 partitions, none is 1"),
        (UnregisterBrokerRecord(broker_id=9, broker_epoch=0), "broker 9 is not registered with epoch 0"),
        (UnregisterBrokerRecord(broker_id=1, broker_epoch=5), "broker 1 is not registered with epoch 5"),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5), "broker 1 is not registered with epoch 5"),
        (RemoveAccessControlEntryRecord(id=ID), "no access rule has the id 6969"),
        (RemoveUserScramCredentialRecord(name="ann", mechanism=1), "user ann has no credential of mechanism 1"),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_its_offset(record: Record, reason: str) -> None:
    image = image_of(TOPIC, partition(0), broker(1))
    with pytest.raises(ReplayError, match=f"^{type(record).__name__} at offset 5: {reason}"):
        image.apply(Batch(base_offset=4, leader_epoch=1, records=(NO_OP, record)))


def test_a_leader_change_moves_both_epochs_of_a_partition_and_any_change_its_own() -> None:
    shrunk = PartitionChangeRecord(partition_id=0, topic_id=ID, isr=(1,))
    led = PartitionChangeRecord(partition_id=0, topic_id=ID, leader=-1, leader_recovery_state=1)
    image = image_of(TOPIC, partition(0), shrunk, led)
    (found,) = image.topics.by_name["t"].partitions
    assert (found.isr, found.leader, found.leader_epoch, found.partition_epoch) == ((1,), -1, 1, 2)
    assert found.leader_recovery_state == 1
    assert not found.has_leader


def test_a_deleted_topic_takes_its_configuration_along_and_leaves_its_name() -> None:
    config = ConfigRecord(resource_type=2, resource_name="t", name="k", value="v")
    again = TopicRecord(name="t", topic_id=bytes(16))
    image = image_of(TOPIC, partition(0), config, RemoveTopicRecord(topic_id=ID), again)
    assert image.topics.by_name["t"].topic_id == bytes(16)
    assert image.topics.by_id(ID) is None
    assert not image.configs.of(2, "t")


def test_a_broker_changes_in_part() -> None:
    log_dir = b"d" * 16
    change = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=1, in_controlled_shutdown=1, log_dirs=(log_dir,), cordoned_log_dirs=()
    )
    found = image_of(broker(1), change).cluster.brokers[1]
    assert (found.fenced, found.in_controlled_shutdown) == (False, True)
    assert (found.log_dirs, found.cordoned_log_dirs) == ((log_dir,), ())


def test_nothing_shows_a_credential() -> None:
    record = UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"SALT", stored_key=b"STORED", server_key=b"SERVER", iterations=4096
    )
    image = image_of(record)
    shown = f"{record!r} {image.scram.credential('ann', 1)!r}"
    assert "ann" in shown
    assert not any(secret in shown for secret in ("SALT", "STORED", "SERVER"))
