"""Records to bytes and back, and images to snapshots and back: nothing is lost, and no kind is forgotten."""

from dataclasses import fields
from typing import Final, get_args

import pytest

from backend.metadata.errors import ReplayError
from backend.metadata.image import Image
from backend.metadata.records import (
    AccessControlEntryRecord,
    Batch,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from backend.metadata.serde import decode_record, encode_record
from backend.metadata.snapshots import PARTS, load, records_of
from codec import CodecError
from codec.log_records.transactions import TABLES as TRANSACTIONS
from codec.metadata_records import METADATA_TABLES, encode_metadata_record

ID: Final = bytes(range(16))
OTHER: Final = bytes(range(1, 17))
TABLES: Final = {table.title: table for table in METADATA_TABLES.values()}

STATE: Final[tuple[Record, ...]] = (
    FeatureLevelRecord(name="metadata.version", feature_level=33),
    RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=ID,
        broker_epoch=7,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=65535, security_protocol=3),),
        features=(BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=33),),
        rack="r",
        fenced=False,
        in_controlled_shutdown=True,
        log_dirs=(ID, OTHER),
        cordoned_log_dirs=(OTHER,),
    ),
    TopicRecord(name="orders", topic_id=ID),
    PartitionRecord(
        partition_id=0,
        topic_id=ID,
        replicas=(1, 2),
        isr=(2,),
        removing_replicas=(1,),
        adding_replicas=(3,),
        leader=2,
        leader_recovery_state=1,
        leader_epoch=4,
        partition_epoch=5,
        directories=(ID, OTHER),
        eligible_leader_replicas=(1,),
        last_known_elr=(3,),
    ),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=""),
    AccessControlEntryRecord(
        id=ID,
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    ),
    ClientQuotaRecord(
        entity=(
            EntityData(entity_type="client-id", entity_name=None),
            EntityData(entity_type="user", entity_name="a"),
        ),
        key="k",
        value=0.5,
    ),
    UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096),
    DelegationTokenRecord(
        owner="User:a",
        requester="User:b",
        renewers=("User:c", "User:d"),
        issue_timestamp=1,
        max_timestamp=1 << 40,
        expiration_timestamp=2,
        token_id="t",
    ),
)
CHANGES: Final[tuple[Record, ...]] = (
    UnregisterBrokerRecord(broker_id=1, broker_epoch=7),
    BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=7, fenced=-1, in_controlled_shutdown=1, log_dirs=(ID,), cordoned_log_dirs=()
    ),
    RemoveTopicRecord(topic_id=ID),
    PartitionChangeRecord(
        partition_id=3,
        topic_id=ID,
        isr=(),
        leader=-1,
        replicas=(1,),
        removing_replicas=(2,),
        adding_replicas=(),
        leader_recovery_state=0,
        directories=(OTHER,),
        eligible_leader_replicas=(),
        last_known_elr=(9,),
    ),
    PartitionChangeRecord(partition_id=0, topic_id=ID),
    RemoveAccessControlEntryRecord(id=ID),
    RemoveUserScramCredentialRecord(name="a", mechanism=2),
    RemoveDelegationTokenRecord(token_id="t"),
    NoOpRecord(),
    ConfigRecord(resource_type=4, resource_name="", name="k", value=None),
    ClientQuotaRecord(entity=(EntityData(entity_type="ip", entity_name=None),), key="k", remove=True),
)


@pytest.mark.parametrize("record", [*STATE, *CHANGES], ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    assert decode_record(encode_record(record)) == record


def test_every_kind_of_record_is_tried() -> None:
    assert {type(record) for record in (*STATE, *CHANGES)} == set(get_args(Record))


def test_what_an_old_version_lacks_takes_its_default() -> None:
    value = encode_metadata_record(
        TABLES["PartitionRecord"], 0, {"partition_id": 0, "topic_id": ID, "replicas": [1], "isr": [1], "leader": 1}
    )
    record = decode_record(value)
    assert isinstance(record, PartitionRecord)
    assert (record.replicas, record.directories, record.eligible_leader_replicas) == ((1,), (), None)


def test_a_record_that_the_backend_does_not_keep_is_named() -> None:
    value = encode_metadata_record(TRANSACTIONS[0], 0, {"name": "t"})
    with pytest.raises(ReplayError, match=f"{TRANSACTIONS[0].title} is not among the records"):
        decode_record(value)


def test_malformed_bytes_are_the_codecs_error() -> None:
    for cut in range(len(encode_record(STATE[2]))):
        with pytest.raises(CodecError):
            decode_record(encode_record(STATE[2])[:cut])


def test_a_snapshot_holds_every_part_of_an_image() -> None:
    parts = {field.name for field in fields(Image)} - {"cluster_id", "highest_offset", "highest_epoch"}
    assert set(PARTS) == parts
    image = Image.empty("c").apply(Batch(base_offset=40, leader_epoch=6, records=STATE))
    for name, write in PARTS.items():
        assert list(write(image)), f"nothing tries {name}"
    assert sorted(map(repr, records_of(image))) == sorted(map(repr, STATE))
    assert load("c", records_of(image), end_offset=40 + len(STATE), epoch=6) == image


def test_a_snapshot_whose_records_do_not_fit_is_refused() -> None:
    with pytest.raises(ReplayError, match=r"PartitionRecord, number 0 of a snapshot: no topic has the id"):
        load("c", [STATE[3]], end_offset=1, epoch=1)
