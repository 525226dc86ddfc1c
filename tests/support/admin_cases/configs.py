"""IncrementalAlterConfigs, AlterConfigs, DescribeConfigs and ListConfigResources."""

from collections.abc import Iterator
from typing import Any, Final

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    Body,
    Case,
)
from tests.support.admin_cases.topics import create, topic


def _alter(name: str, of: int, resource: str, *ops: tuple[str, int, str | None], **more: Any) -> Case:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in ops]
    resources = [{"resource_type": of, "resource_name": resource, "configs": configs}]
    return _alter_all(name, *resources, **more)


def _alter_all(name: str, *resources: Body, version: int = 1, only: bool = False) -> Case:
    body = {"resources": list(resources), "validate_only": only}
    return Case(f"alter configs: {name}", ApiKey.INCREMENTAL_ALTER_CONFIGS, version, body)


def describe(
    name: str, of: int, resource: str, *keys: str, version: int = 4, synonyms: bool = True, all_keys: bool = False
) -> Case:
    """DescribeConfigs of one resource; no keys mean an empty list, which is all of them, as null is."""
    return Case(
        f"describe configs: {name}",
        ApiKey.DESCRIBE_CONFIGS,
        version,
        {
            "resources": [
                {
                    "resource_type": of,
                    "resource_name": resource,
                    "configuration_keys": None if all_keys else list(keys),
                }
            ],
            "include_synonyms": synonyms,
            "include_documentation": False,
        },
    )


def topic_configs() -> Iterator[Case]:
    """The configuration of topics."""
    for version in (1, 2, 3, 4):
        yield describe(f"topic, v{version}", TOPIC, "set", all_keys=True, version=version)
    yield describe("topic without synonyms", TOPIC, "set", all_keys=True, synonyms=False)
    yield describe("empty list of keys", TOPIC, "set")
    yield describe("two keys and an unknown one", TOPIC, "set", "retention.ms", "segment.bytes", "nope")
    yield describe("unknown topic", TOPIC, "nobody")
    yield describe("invalid topic", TOPIC, "a b")
    yield _alter("set", TOPIC, "set", ("retention.ms", SET, "1234"), ("preallocate", SET, "TRUE"))
    yield _alter("set, v0", TOPIC, "set", ("flush.ms", SET, " 17 "), version=0)
    yield _alter("set a ratio", TOPIC, "set", ("min.cleanable.dirty.ratio", SET, ".25"))
    yield describe("what was set", TOPIC, "set", "retention.ms", "preallocate", "flush.ms", "min.cleanable.dirty.ratio")
    yield _alter("append", TOPIC, "set", ("cleanup.policy", APPEND, "delete"))
    yield _alter("append what is there", TOPIC, "set", ("cleanup.policy", APPEND, "delete,compact"))
    yield describe("what was appended", TOPIC, "set", "cleanup.policy")
    yield _alter("subtract", TOPIC, "set", ("cleanup.policy", SUBTRACT, "compact"))
    yield _alter("subtract from the default", TOPIC, "orders", ("cleanup.policy", SUBTRACT, "compact"))
    yield _alter("append to an empty list", TOPIC, "set", ("leader.replication.throttled.replicas", APPEND, "0:1,1:2"))
    yield _alter("delete", TOPIC, "set", ("retention.ms", DELETE, None), ("nope", DELETE, None))
    yield describe("what was deleted", TOPIC, "set", all_keys=True)
    yield _alter("validate only", TOPIC, "set", ("retention.ms", SET, "99"), only=True)
    yield _alter("validate only and bad", TOPIC, "set", ("retention.ms", SET, "x"), only=True)
    yield describe("what was only validated", TOPIC, "set", "retention.ms")
    for fault, operation in (
        ("unknown key", ("nope", SET, "1")),
        ("not a number", ("retention.ms", SET, "soon")),
        ("number too large", ("segment.bytes", SET, "3000000000")),
        ("below the least", ("retention.ms", SET, "-2")),
        ("above the most", ("min.cleanable.dirty.ratio", SET, "99999999")),
        ("between", ("compression.gzip.level", SET, "0")),
        ("not one of", ("compression.type", SET, "rar")),
        ("not a boolean", ("preallocate", SET, "yes")),
        ("bad throttle", ("leader.replication.throttled.replicas", SET, "1,2")),
        ("null", ("retention.ms", SET, None)),
        ("append to a number", ("retention.ms", APPEND, "1")),
        ("append to an unknown key", ("nope", APPEND, "1")),
        ("append what is not allowed", ("cleanup.policy", APPEND, "burn")),
        ("unknown operation", ("retention.ms", 9, "1")),
        ("tiered storage", ("remote.storage.enable", SET, "true")),
    ):
        yield _alter(fault, TOPIC, "set", operation)
    yield _alter("a key twice", TOPIC, "set", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    yield _alter("unknown topic", TOPIC, "nobody", ("retention.ms", SET, "1"))
    yield _alter("unknown topic, bad value", TOPIC, "nobody", ("retention.ms", SET, "x"))
    yield _alter("invalid topic", TOPIC, "a b", ("retention.ms", SET, "1"))
    yield _alter("no topic", TOPIC, "", ("retention.ms", SET, "1"))
    yield _alter("one bad key of two", TOPIC, "set", ("retention.ms", SET, "7"), ("nope", SET, "1"))
    yield describe("nothing of that", TOPIC, "set", "retention.ms")
    empty = {"resource_type": TOPIC, "configs": []}
    yield _alter_all("a resource twice", *[{**empty, "resource_name": "set"}] * 2, {**empty, "resource_name": "two"})
    yield _alter_all("nothing to do", {**empty, "resource_name": "set"})
    yield _alter_all("no resources")


def _replace(
    name: str, of: int, resource: str, *configs: tuple[str, str | None], version: int = 2, only: bool = False
) -> Case:
    pairs = [{"name": key, "value": value} for key, value in configs]
    resources = [{"resource_type": of, "resource_name": resource, "configs": pairs}]
    body = {"resources": resources, "validate_only": only}
    return Case(f"replace configs: {name}", ApiKey.ALTER_CONFIGS, version, body)


def configs_in_full() -> Iterator[Case]:
    """AlterConfigs, which Kafka still speaks: what is not named is removed."""
    yield _replace("set", TOPIC, "twice", ("retention.ms", "1234"), ("segment.ms", "99"))
    yield describe("what was replaced", TOPIC, "twice", "retention.ms", "flush.ms", "segment.ms")
    yield _replace("less", TOPIC, "twice", ("retention.ms", "5"), version=0)
    yield describe("what is left of it", TOPIC, "twice", "retention.ms", "segment.ms")
    yield _replace("nothing", TOPIC, "twice", version=1)
    yield describe("nothing left of it after replacing", TOPIC, "twice", "retention.ms")
    yield _replace("validate only", TOPIC, "twice", ("retention.ms", "5"), only=True)
    yield _replace("bad value", TOPIC, "twice", ("retention.ms", "soon"))
    yield _replace("unknown key", TOPIC, "twice", ("nope", "1"))
    yield _replace("null", TOPIC, "twice", ("retention.ms", None))
    yield _replace("a key twice", TOPIC, "twice", ("retention.ms", "1"), ("retention.ms", "2"))
    yield _replace("unknown topic", TOPIC, "nobody", ("retention.ms", "1"))
    yield _replace("loggers", BROKER_LOGGER, "1", ("root", "WARN"))
    yield _replace("unknown type", 99, "x", ("a", "b"))
    yield _replace("broker", BROKER, "1", ("log.segment.bytes", "2000000"))
    yield _replace("another broker", BROKER, "2", ("log.segment.bytes", "2000000"))
    yield _replace("broker, back", BROKER, "1")
    yield _replace("default of brokers", BROKER, "", ("log.retention.ms", "8888"))
    yield describe("default of brokers after replacing", BROKER, "")
    yield _replace("default of brokers, back", BROKER, "")
    # Kafka 4.4 never answers when AlterConfigs names a resource twice, so that is no case.


def other_configs() -> Iterator[Case]:
    """The configuration of brokers, loggers, client metrics and groups, and the list of all that have one."""
    yield describe("broker", BROKER, "1", *_BROKER_KEYS)
    yield describe("broker, every key", BROKER, "1", all_keys=True)
    yield describe("default of brokers", BROKER, "")
    yield describe("another broker", BROKER, "2")
    yield describe("no number for a broker", BROKER, "x")
    yield describe("logger of another broker", BROKER_LOGGER, "2")
    yield describe("loggers", BROKER_LOGGER, "1", "root")
    yield describe("loggers of none", BROKER_LOGGER, "")
    yield describe("unknown type", 99, "x")
    yield _alter("default of brokers", BROKER, "", ("log.retention.ms", SET, "7777"), ("secret.of.ours", SET, "s"))
    yield _alter("broker", BROKER, "1", ("log.segment.bytes", SET, "2000000"))
    yield describe("broker after a change", BROKER, "1", *_BROKER_KEYS, "secret.of.ours", "log.segment.bytes")
    yield describe("default of brokers after a change", BROKER, "")
    yield describe("topic after the brokers' change", TOPIC, "orders", "retention.ms", "segment.bytes")
    yield describe("topic with its own after the brokers' change", TOPIC, "set", "retention.ms", "flush.ms")
    yield create("after the brokers' change", topic("later"))
    yield _alter("default of brokers, back", BROKER, "", ("log.retention.ms", DELETE, None))
    yield _alter("broker, back", BROKER, "1", ("log.segment.bytes", DELETE, None))
    for fault, resource, operation in (
        ("broker: another", "2", ("log.retention.ms", SET, "5")),
        ("broker: no number", "x", ("log.retention.ms", SET, "5")),
        ("broker: fixed key", "", ("node.id", SET, "5")),
        ("broker: fixed key of one", "1", ("log.retention.hours", SET, "5")),
        ("broker: not a number", "", ("log.retention.ms", SET, "soon")),
        ("broker: below the least", "1", ("log.segment.bytes", SET, "1")),
        ("broker: append to a number", "1", ("log.segment.bytes", APPEND, "1")),
        ("broker: subtract from a number", "1", ("log.segment.bytes", SUBTRACT, "1")),
        ("broker: append to an unknown key", "1", ("nope", APPEND, "1")),
        ("broker: append", "", ("log.cleanup.policy", APPEND, "compact")),
        ("broker: unknown operation", "1", ("log.segment.bytes", 9, "1")),
        ("broker: in-sync replicas of one", "1", ("min.insync.replicas", SET, "2")),
        ("broker: in-sync replicas of one, back", "1", ("min.insync.replicas", DELETE, None)),
        ("broker: null", "1", ("log.segment.bytes", SET, None)),
    ):
        yield _alter(fault, BROKER, resource, operation)
    yield _alter("logger level unknown", BROKER_LOGGER, "1", ("root", SET, "LOUD"))
    yield _alter("logger unknown", BROKER_LOGGER, "1", ("no.such.logger", SET, "DEBUG"))
    yield _alter("logger known", BROKER_LOGGER, "1", ("root", SET, "WARN"), only=True)
    yield _alter("logger removed", BROKER_LOGGER, "1", ("root", DELETE, None))
    yield _alter("logger appended", BROKER_LOGGER, "1", ("root", APPEND, "DEBUG"))
    yield _alter("logger of another", BROKER_LOGGER, "2", ("root", SET, "DEBUG"))
    yield _alter("logger of none", BROKER_LOGGER, "", ("root", SET, "DEBUG"))
    yield _alter("unknown type", 99, "x", ("a", SET, "b"))
    yield _alter("type zero", 0, "x", ("a", SET, "b"))
    yield describe("client metrics, none", CLIENT_METRICS, "slow")
    yield describe("client metrics without a name", CLIENT_METRICS, "")
    yield _alter(
        "client metrics",
        CLIENT_METRICS,
        "slow",
        ("interval.ms", SET, "500"),
        ("metrics", SET, "org.apache,x"),
        ("match", SET, "client_id=a.*,client_software_name=b"),
    )
    yield describe("client metrics", CLIENT_METRICS, "slow")
    for fault, resource, operation in (
        ("client metrics: interval too short", "slow", ("interval.ms", SET, "5")),
        ("client metrics: interval not a number", "slow", ("interval.ms", SET, "x")),
        ("client metrics: unknown key", "slow", ("nope", SET, "5")),
        ("client metrics: no name", "", ("interval.ms", SET, "500")),
        ("client metrics: no selector", "slow", ("match", SET, "x")),
        ("client metrics: unknown selector", "slow", ("match", SET, "client_hat=x")),
        ("client metrics: no pattern", "slow", ("match", SET, "client_id=(")),
        ("client metrics: append", "slow", ("metrics", APPEND, "y")),
    ):
        yield _alter(fault, CLIENT_METRICS, resource, operation)
    yield describe("group, none", GROUP, "g")
    yield describe("group without a name", GROUP, "")
    yield _alter("group", GROUP, "g", ("consumer.session.timeout.ms", SET, "46000"))
    yield describe("group", GROUP, "g")
    for fault, operation in (
        ("group: out of range", ("consumer.session.timeout.ms", SET, "1")),
        ("group: not a number", ("consumer.session.timeout.ms", SET, "x")),
        ("group: below the least", ("share.delivery.count.limit", SET, "1")),
        ("group: unknown key", ("nope", SET, "1")),
        ("group: bad reset", ("share.auto.offset.reset", SET, "bad")),
        ("group: reset by duration", ("share.auto.offset.reset", SET, "by_duration:PT1H30M")),
        ("group: standbys", ("streams.num.standby.replicas", SET, "100")),
        ("group: assignor", ("streams.assignor.name", SET, "x")),
    ):
        yield _alter(fault, GROUP, "g", operation)
    yield _alter("group without a name", GROUP, "", ("consumer.session.timeout.ms", SET, "46000"))
    for name, version, types in (
        ("all", 1, []),
        ("client metrics, v0", 0, []),
        ("topics", 1, [TOPIC]),
        ("groups and brokers", 1, [GROUP, BROKER]),
        ("unknown type", 1, [99]),
    ):
        body = {"resource_types": types} if version else {}
        yield Case(f"list config resources: {name}", ApiKey.LIST_CONFIG_RESOURCES, version, body)


_BROKER_KEYS: Final = (
    "num.partitions",
    "default.replication.factor",
    "log.retention.ms",
    "log.retention.hours",
    "min.insync.replicas",
    "message.max.bytes",
    "log.cleaner.min.cleanable.ratio",
    "auto.create.topics.enable",
    "delete.topic.enable",
    "node.id",
)
