"""The configuration of an image: what was set for which resource. Sits under `image`; defaults live elsewhere."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self, final

from rpds import HashTrieMap

from backend.metadata.records import ConfigRecord


@final
class ResourceType(enum.IntEnum):
    """Kafka's ConfigResource.Type."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, number: int) -> ResourceType:
        """The type with that number, or `UNKNOWN`."""
        return cls(number) if number in _RESOURCE_TYPES else cls.UNKNOWN


_RESOURCE_TYPES: Final = frozenset(ResourceType)


class ConfigResource(NamedTuple):
    """What a configuration belongs to; the name is empty for the default of all brokers."""

    resource_type: int
    resource_name: str


NO_CONFIGS: Final[HashTrieMap[str, str]] = HashTrieMap()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsImage:
    """Resource to what was set for it, key by key; a resource with nothing set is not there."""

    resources: HashTrieMap[ConfigResource, HashTrieMap[str, str]]

    @classmethod
    def empty(cls) -> Self:
        """Nothing set."""
        return cls(resources=HashTrieMap())

    def of(self, resource_type: int, resource_name: str) -> HashTrieMap[str, str]:
        """What was set for a resource."""
        return self.resources.get(ConfigResource(resource_type, resource_name), NO_CONFIGS)

    def set(self, record: ConfigRecord) -> ConfigsImage:
        """With one key set, or removed where the value is null; to remove what is not there is no fault in Kafka."""
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = self.resources.get(resource, NO_CONFIGS)
        if record.value is not None:
            configs = configs.insert(record.name, record.value)
        else:
            configs = configs.discard(record.name)
        if configs:
            return replace(self, resources=self.resources.insert(resource, configs))
        return replace(self, resources=self.resources.discard(resource))

    def remove_topic(self, name: str) -> ConfigsImage:
        """Without what was set for a topic, which is gone."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        return replace(self, resources=self.resources.discard(resource)) if resource in self.resources else self
