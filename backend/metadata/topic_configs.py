"""The configuration keys of topics, as Kafka 4.4 reports them, and what a topic's configuration comes to.

A topic's key may have a broker's key behind it: what was set for the broker, or for all brokers, is then the topic's
value unless the topic has its own. Knows the image's configuration and a broker's id, no request.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from backend.metadata.config_keys import (
    INT_MAX,
    LONG_MAX,
    Check,
    ConfigKey,
    ConfigSource,
    ConfigType,
    Value,
    at_least,
    between,
    one_of,
)
from backend.metadata.configs import ConfigsImage, ResourceType
from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

REMOTE_STORAGE_ENABLE: Final = "remote.storage.enable"
_GZIP_LEVELS: Final = (-1, *range(1, 10))
_DAY_MS: Final = 24 * 60 * 60 * 1000
_THROTTLED: Final = re.compile(r"[0-9]+:[0-9]+")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfigKey:
    """A topic's key and what stands behind it.

    Attributes:
        key: Name, type, default and checks.
        broker_name: The broker's key behind it, or None.
        broker_default: The text of that key's own default, or None where it has none.
        broker_fallback: The broker's key, and its default, that is asked next: the same in a coarser unit, or None.
    """

    key: ConfigKey
    broker_name: str | None
    broker_default: str | None
    broker_fallback: tuple[str, str] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """One place where a value is set."""

    name: str
    value: str
    source: ConfigSource


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """What a key comes to for one topic: the value that counts, and all places where one is set, the first counting."""

    key: ConfigKey
    value: str
    synonyms: tuple[Synonym, ...]

    @property
    def source(self) -> ConfigSource:
        """Where the value that counts is set."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


def effective_configs(
    own: Mapping[str, str], configs: ConfigsImage, broker_id: int, static: Mapping[str, str]
) -> list[EffectiveConfig]:
    """What all keys come to for a topic, in order of their names.

    Args:
        own: What was set for the topic.
        configs: What was set for brokers.
        broker_id: Whose own settings count.
        static: What the broker was started with.
    """
    levels = (
        (ConfigSource.DYNAMIC_BROKER, configs.of(ResourceType.BROKER, str(broker_id))),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, configs.of(ResourceType.BROKER, "")),
        (ConfigSource.STATIC_BROKER, static),
    )
    return [_effective(topic_key, own, levels) for topic_key in TOPIC_CONFIGS.values()]


def _effective(
    topic_key: TopicConfigKey,
    own: Mapping[str, str],
    levels: tuple[tuple[ConfigSource, Mapping[str, str]], ...],
) -> EffectiveConfig:
    key, name = topic_key.key, topic_key.broker_name
    found: list[Synonym] = []
    if key.name in own:
        found.append(Synonym(name=key.name, value=key.canonical(own[key.name]), source=ConfigSource.TOPIC))
    behind: list[Synonym] = []
    if name is not None:
        for source, settings in levels:
            if name in settings:
                behind.append(Synonym(name=name, value=settings[name], source=source))
        if topic_key.broker_default is not None:
            behind.append(Synonym(name=name, value=topic_key.broker_default, source=ConfigSource.DEFAULT))
    found += behind
    if behind and topic_key.broker_fallback is not None:
        fallback_name, fallback_default = topic_key.broker_fallback
        found.append(Synonym(name=fallback_name, value=fallback_default, source=ConfigSource.DEFAULT))
    assert key.default is not None
    return EffectiveConfig(key=key, value=found[0].value if found else key.default, synonyms=tuple(found))


def validate_topic_configs(configs: Mapping[str, str]) -> None:
    """Check the whole configuration that a topic would have.

    Raises:
        ApiError: INVALID_CONFIG for an unknown key, a value that the key does not take, or two that do not go together.
    """
    for name in configs:
        if name not in TOPIC_CONFIGS:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    values = {name: TOPIC_CONFIGS[name].key.parse(text) for name, text in configs.items()}
    least = values.get("min.compaction.lag.ms", 0)
    most = values.get("max.compaction.lag.ms", LONG_MAX)
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )
    if values.get(REMOTE_STORAGE_ENABLE):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def _gzip_level(_: str, value: Value) -> str | None:
    return None if value in _GZIP_LEVELS else "Value must be between 1 and 9 or equal to -1"


def _throttled_replicas(name: str, value: Value) -> str | None:
    assert isinstance(value, list)
    if value == ["*"] or all(_THROTTLED.fullmatch(part) for part in value):
        return None
    return (
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def _table(*rows: TopicConfigKey) -> dict[str, TopicConfigKey]:
    return {row.key.name: row for row in sorted(rows, key=lambda row: row.key.name)}


def _row(
    name: str,
    of: ConfigType,
    default: str | int,
    check: Check | None = None,
    *,
    broker: str | None = None,
    fallback: tuple[str, str] | None = None,
) -> TopicConfigKey:
    """A row of the table; with `fallback` the broker's key itself has no default."""
    text = str(default)
    return TopicConfigKey(
        key=ConfigKey(name=name, type=of, default=text, check=check),
        broker_name=broker,
        broker_default=None if broker is None or fallback is not None else text,
        broker_fallback=fallback,
    )


_B, _S, _I, _L, _D, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)

TOPIC_CONFIGS: Final = _table(
    _row("cleanup.policy", _LIST, "delete", one_of("compact", "delete"), broker="log.cleanup.policy"),
    _row("compression.gzip.level", _I, -1, _gzip_level, broker="compression.gzip.level"),
    _row("compression.lz4.level", _I, 9, between(1, 17), broker="compression.lz4.level"),
    _row(
        "compression.type",
        _S,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        broker="compression.type",
    ),
    _row("compression.zstd.level", _I, 3, between(-131072, 22), broker="compression.zstd.level"),
    _row("delete.retention.ms", _L, _DAY_MS, at_least(0), broker="log.cleaner.delete.retention.ms"),
    _row("errors.deadletterqueue.group.enable", _B, "false"),
    _row("file.delete.delay.ms", _L, 60000, at_least(0), broker="log.segment.delete.delay.ms"),
    _row("flush.messages", _L, LONG_MAX, at_least(1), broker="log.flush.interval.messages"),
    _row(
        "flush.ms",
        _L,
        LONG_MAX,
        at_least(0),
        broker="log.flush.interval.ms",
        fallback=("log.flush.scheduler.interval.ms", str(LONG_MAX)),
    ),
    _row("follower.replication.throttled.replicas", _LIST, "", _throttled_replicas),
    _row("index.interval.bytes", _I, 4096, at_least(0), broker="log.index.interval.bytes"),
    _row("leader.replication.throttled.replicas", _LIST, "", _throttled_replicas),
    _row("local.retention.bytes", _L, -2, at_least(-2), broker="log.local.retention.bytes"),
    _row("local.retention.ms", _L, -2, at_least(-2), broker="log.local.retention.ms"),
    _row("max.compaction.lag.ms", _L, LONG_MAX, at_least(1), broker="log.cleaner.max.compaction.lag.ms"),
    _row("max.decompressed.message.bytes", _I, INT_MAX - 8, at_least(1), broker="max.decompressed.message.bytes"),
    _row("max.message.bytes", _I, 1048588, at_least(0), broker="message.max.bytes"),
    _row("message.timestamp.after.max.ms", _L, 3600000, at_least(0), broker="log.message.timestamp.after.max.ms"),
    _row("message.timestamp.before.max.ms", _L, LONG_MAX, at_least(0), broker="log.message.timestamp.before.max.ms"),
    _row(
        "message.timestamp.type",
        _S,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        broker="log.message.timestamp.type",
    ),
    _row("min.cleanable.dirty.ratio", _D, "0.5", between(0, 1), broker="log.cleaner.min.cleanable.ratio"),
    _row("min.compaction.lag.ms", _L, 0, at_least(0), broker="log.cleaner.min.compaction.lag.ms"),
    _row("min.insync.replicas", _I, 1, at_least(1), broker="min.insync.replicas"),
    _row("preallocate", _B, "false", broker="log.preallocate"),
    _row("remote.copy.lag.bytes", _L, -1, at_least(-1), broker="log.remote.copy.lag.bytes"),
    _row("remote.copy.lag.ms", _L, 0, at_least(-1), broker="log.remote.copy.lag.ms"),
    _row("remote.log.copy.disable", _B, "false"),
    _row("remote.log.delete.on.disable", _B, "false"),
    _row(REMOTE_STORAGE_ENABLE, _B, "false"),
    _row("retention.bytes", _L, -1, broker="log.retention.bytes"),
    _row(
        "retention.ms",
        _L,
        7 * _DAY_MS,
        at_least(-1),
        broker="log.retention.ms",
        fallback=("log.retention.hours", "168"),
    ),
    _row("segment.bytes", _I, 1024**3, at_least(1024**2), broker="log.segment.bytes"),
    _row("segment.index.bytes", _I, 10 * 1024**2, at_least(4), broker="log.index.size.max.bytes"),
    _row(
        "segment.jitter.ms",
        _L,
        0,
        at_least(0),
        broker="log.roll.jitter.ms",
        fallback=("log.roll.jitter.hours", "0"),
    ),
    _row("segment.ms", _L, 7 * _DAY_MS, at_least(1), broker="log.roll.ms", fallback=("log.roll.hours", "168")),
    _row("unclean.leader.election.enable", _B, "false", broker="unclean.leader.election.enable"),
)
"""Name to key, in order of the names."""
