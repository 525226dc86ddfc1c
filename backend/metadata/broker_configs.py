"""The configuration keys of brokers: those behind the topics' keys, and the few that a broker of ours has itself.

Kafka's brokers have some three hundred more, about parts that a broker of ours does not have. Knows the image's
configuration, no request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from backend.metadata.config_keys import ConfigKey, ConfigSource, ConfigType, at_least
from backend.metadata.configs import ConfigsImage, ResourceType
from backend.metadata.errors import ApiError
from backend.metadata.topic_configs import TOPIC_CONFIGS, Synonym
from codec.error_codes import ErrorCode

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
ELR_FEATURE: Final = "eligible.leader.replicas.version"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What one key comes to for a broker: all places where it is set, the first counting.

    Attributes:
        name: The key.
        key: Its definition, or None for one that nobody knows; its value is then kept secret, as Kafka does.
        value: The value that counts; None where there is none, or a secret.
        synonyms: Where it is set.
        read_only: Whether it can be changed while the broker runs.
    """

    name: str
    key: ConfigKey | None
    value: str | None
    synonyms: tuple[Synonym, ...]
    read_only: bool

    @property
    def source(self) -> ConfigSource:
        """Where the value that counts is set."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


def broker_configs(configs: ConfigsImage, broker_id: int, static: Mapping[str, str]) -> list[BrokerConfig]:
    """What all keys come to for a broker, in order of their names."""
    levels = (
        (ConfigSource.DYNAMIC_BROKER, configs.of(ResourceType.BROKER, str(broker_id))),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, configs.of(ResourceType.BROKER, "")),
        (ConfigSource.STATIC_BROKER, static),
    )
    names = {*BROKER_CONFIGS, *(name for _, settings in levels for name in settings)}
    return [_effective(name, levels) for name in sorted(names)]


def default_broker_configs(configs: ConfigsImage) -> list[BrokerConfig]:
    """What was set for all brokers, in order of the names."""
    settings = configs.of(ResourceType.BROKER, "")
    levels = ((ConfigSource.DYNAMIC_DEFAULT_BROKER, settings),)
    return [_effective(name, levels, with_default=False) for name in sorted(settings)]


def validate_broker_configs(changed: Mapping[str, str]) -> None:
    """Check a broker's own configuration, or the default of all brokers; unknown keys are taken, as Kafka does.

    Raises:
        ApiError: INVALID_REQUEST for a key that cannot change while brokers run, or a value that a key does not take.
    """
    fixed = sorted(name for name in changed if name in BROKER_CONFIGS and name not in _DYNAMIC)
    if fixed:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for name, text in changed.items():
        key = BROKER_CONFIGS.get(name)
        if key is not None:
            try:
                key.parse(text)
            except ApiError as error:
                raise ApiError(ErrorCode.INVALID_REQUEST, error.message) from None


def _effective(
    name: str, levels: tuple[tuple[ConfigSource, Mapping[str, str]], ...], *, with_default: bool = True
) -> BrokerConfig:
    key = BROKER_CONFIGS.get(name)
    found = [Synonym(name=name, value=settings[name], source=source) for source, settings in levels if name in settings]
    if with_default and key is not None:
        if key.default is not None:
            found.append(Synonym(name=name, value=key.default, source=ConfigSource.DEFAULT))
        if found and name in _FALLBACKS:
            fallback_name, fallback_default = _FALLBACKS[name]
            found.append(Synonym(name=fallback_name, value=fallback_default, source=ConfigSource.DEFAULT))
    return BrokerConfig(
        name=name,
        key=key,
        value=key.canonical(found[0].value) if key is not None and found else None,
        synonyms=tuple(found),
        read_only=name not in _DYNAMIC,
    )


def _behind_topics() -> list[ConfigKey]:
    return [
        ConfigKey(name=row.broker_name, type=row.key.type, default=row.broker_default, check=row.key.check)
        for row in TOPIC_CONFIGS.values()
        if row.broker_name is not None
    ]


_FALLBACKS: Final = {
    row.broker_name: row.broker_fallback
    for row in TOPIC_CONFIGS.values()
    if row.broker_name is not None and row.broker_fallback is not None
}
_DYNAMIC: Final = frozenset(key.name for key in _behind_topics())
_FIXED: Final = (
    ConfigKey(name="advertised.listeners", type=ConfigType.LIST, default=None),
    ConfigKey(name="auto.create.topics.enable", type=ConfigType.BOOLEAN, default="true"),
    ConfigKey(name="broker.id", type=ConfigType.INT, default="-1"),
    ConfigKey(name="default.replication.factor", type=ConfigType.INT, default="1"),
    ConfigKey(name="delete.topic.enable", type=ConfigType.BOOLEAN, default="true"),
    ConfigKey(
        name="log.flush.scheduler.interval.ms", type=ConfigType.LONG, default=_FALLBACKS["log.flush.interval.ms"][1]
    ),
    ConfigKey(name="log.retention.hours", type=ConfigType.INT, default="168"),
    ConfigKey(name="log.roll.hours", type=ConfigType.INT, default="168"),
    ConfigKey(name="log.roll.jitter.hours", type=ConfigType.INT, default="0"),
    ConfigKey(name="node.id", type=ConfigType.INT, default=None, check=at_least(0)),
    ConfigKey(name="num.partitions", type=ConfigType.INT, default="1", check=at_least(1)),
    ConfigKey(name="process.roles", type=ConfigType.LIST, default=None),
)
BROKER_CONFIGS: Final = {key.name: key for key in sorted((*_behind_topics(), *_FIXED), key=lambda key: key.name)}
"""Name to key, in order of the names."""
