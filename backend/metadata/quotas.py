"""The client quotas of an image (KIP-546). Sits under `image`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self, final

from rpds import HashTrieMap

from backend.metadata.records import ClientQuotaRecord, EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Type and name of each part, in order of the types; a null name is the default of that type."""

NO_QUOTAS: Final[HashTrieMap[str, float]] = HashTrieMap()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotasImage:
    """Entity to its quotas, key by key; an entity without quotas is not there."""

    entities: HashTrieMap[QuotaEntity, HashTrieMap[str, float]]

    @classmethod
    def empty(cls) -> Self:
        """No quota."""
        return cls(entities=HashTrieMap())

    def of(self, entity: QuotaEntity) -> HashTrieMap[str, float]:
        """The quotas of one entity."""
        return self.entities.get(entity, NO_QUOTAS)

    def set(self, record: ClientQuotaRecord) -> ClientQuotasImage:
        """With one quota set or removed."""
        entity = entity_of(record.entity)
        quotas = self.of(entity)
        quotas = quotas.discard(record.key) if record.remove else quotas.insert(record.key, record.value)
        if quotas:
            return replace(self, entities=self.entities.insert(entity, quotas))
        return replace(self, entities=self.entities.discard(entity))


def entity_of(parts: tuple[EntityData, ...]) -> QuotaEntity:
    """The entity as the key under which its quotas are kept."""
    return tuple(sorted(((part.entity_type, part.entity_name) for part in parts), key=lambda part: part[0]))
