"""Our tables against kafka-python's classes: the same values, written as the same bytes, read as the same values.

kafka-python builds its classes from copies of Kafka's own definitions when it is imported; encoder and decoder are its
own. What it cannot express, and how the comparison treats it:

    messages that only brokers, controllers and share consumers send, and
        delegation tokens        it has none of them: `UNKNOWN` names each
    ApiVersions v5               it ends at v4
    unknown tagged fields        it reads them but does not write them: none are drawn
    authorized operations        in Metadata and DescribeCluster a set of bit numbers under one name, None for
                                 -2**31: compared as such
    a UUID of zeros              it reads None: compared as such
    ApiVersions with an error    it reads v0 then, whatever was asked, as clients must: only error 0 is drawn
"""

import importlib
import pkgutil
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

import kafka.protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.api_message import ApiMessage

from codec.api_keys import ApiKey
from codec.compiled import decoder, encoder
from codec.schema import Array, Field, Message, Scalar, Struct
from tests.support.message_values import every_table, values

UNKNOWN: Final = {
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.ENVELOPE,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.SHARE_FETCH,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.UNREGISTER_CONTROLLER,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.VOTE,
}
"""The APIs for which kafka-python has no class."""
NEWER: Final = {("API_VERSIONS", "request", 5), ("API_VERSIONS", "response", 5)}
"""Versions that we have and kafka-python does not, of APIs that it has."""
BIT_SETS: Final = {"cluster_authorized_operations", "topic_authorized_operations"}
BIT_SET: Final = "authorized_operations"
NO_BIT_SET: Final = {31}
UUID_ZERO: Final = bytes(16)


def kafka_python_classes() -> dict[tuple[int, str], Any]:
    """Every message class of kafka-python, by API key and direction; `old` has the classes of its 2.x."""
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if module.name.split(".")[2] in {"admin", "consumer", "metadata", "producer", "sasl"}:
            importlib.import_module(module.name)
    return {(found.API_KEY, found.type): found for found in primary_classes(ApiMessage)}


def primary_classes(of: Any) -> Iterator[Any]:
    """Those that stand for all versions of a message."""
    for found in of.__subclasses__():
        if found._class_version is None:
            yield found
            yield from primary_classes(found)


def class_of(message: Message) -> Any:
    """The class that stands for all versions of the message."""
    return CLASSES[message.api_key, message.direction]


CLASSES: Final = kafka_python_classes()
SHARED: Final = [
    (message, version) for message, version in every_table() if (message.api_key, message.direction) in CLASSES
]
TABLES: Final = [(message, version) for message, version in SHARED if version <= class_of(message).max_version]


def test_kafka_python_lacks_only_what_is_named_here() -> None:
    """Otherwise the comparison below would prove little."""
    assert {message.api_key for message, _ in every_table()} - {message.api_key for message, _ in SHARED} == UNKNOWN
    lacking = [table for table in SHARED if table not in TABLES]
    assert {(message.api_key.name, message.direction, version) for message, version in lacking} == NEWER


@pytest.mark.parametrize(
    ("message", "version"), TABLES, ids=[f"{message.title} v{version}" for message, version in TABLES]
)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_kafka_python_writes_the_same_and_reads_the_same(message: Message, version: int, data: st.DataObject) -> None:
    value = data.draw(values(message, version, narrowed(message), unknown=False))
    body = encoder(message, version)(value)
    theirs = instance(class_of(message), message.body, value, version)
    assert theirs.encode() == body
    assert class_of(message).decode(body, version=version) == theirs
    assert decoder(message, version)(body, 0) == (value, len(body))


def instance(of: Any, struct: Struct, value: Mapping[str, Any], version: int) -> Any:
    """A value of ours as an object of one of their classes; it refuses fields that it does not have."""
    fields: dict[str, Any] = {}
    for field in struct.fields:
        if field.name not in value:
            continue
        if field.name in of.fields:
            fields[field.name] = converted(of, field, value[field.name], version)
        elif field.name in BIT_SETS:
            fields[BIT_SET] = bits(value[field.name])
    assert len(fields) == len(value)
    return of(version=version, **fields)


def bits(value: int) -> set[int] | None:
    found = {bit for bit in range(32) if value >> bit & 1}
    return None if found == NO_BIT_SET else found


def converted(of: Any, field: Field, value: Any, version: int) -> Any:
    """The value of one field as they have it."""
    if value is None:
        return None
    match field.type:
        case Struct():
            return instance(of.fields[field.name].data_class, field.type, value, version)
        case Array(Struct() as element):
            return [instance(of.fields[field.name].data_class, element, one, version) for one in value]
        case Array(Scalar() as element):
            return [scalar(element, one) for one in value]
        case Scalar():
            return scalar(field.type, value)


def scalar(of: Scalar, value: Any) -> Any:
    if of is Scalar.UUID:
        return None if value == UUID_ZERO else uuid.UUID(bytes=value)
    return value


def narrowed(message: Message) -> tuple[tuple[str, st.SearchStrategy[Any]], ...]:
    """What to draw for fields that they cannot read with every value."""
    if (message.api_key, message.direction) == (ApiKey.API_VERSIONS, "response"):
        return (("error_code", st.just(0)),)
    return ()
