"""The SCRAM credentials of an image (KIP-554). Sits under `image`; checks no login."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Final, Self, final

from rpds import HashTrieMap

from backend.metadata.errors import ReplayError
from backend.metadata.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord


@final
class ScramMechanism(enum.IntEnum):
    """Kafka's numbers on the wire."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
"""What `hashlib` calls the hash of each mechanism."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """What a broker needs to check a login by SCRAM; the repr shows none of it."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int = field(repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScramImage:
    """User to mechanism to credential; a user without credentials is not there."""

    users: HashTrieMap[str, HashTrieMap[int, ScramCredential]]

    @classmethod
    def empty(cls) -> Self:
        """No credential."""
        return cls(users=HashTrieMap())

    def credential(self, user: str, mechanism: int) -> ScramCredential | None:
        """The credential of a user for one mechanism."""
        credentials = self.users.get(user)
        return None if credentials is None else credentials.get(mechanism)

    def set(self, record: UserScramCredentialRecord) -> ScramImage:
        """With a credential added or replaced."""
        credential = ScramCredential(
            salt=record.salt,
            stored_key=record.stored_key,
            server_key=record.server_key,
            iterations=record.iterations,
        )
        credentials = self.users.get(record.name, HashTrieMap()).insert(record.mechanism, credential)
        return replace(self, users=self.users.insert(record.name, credentials))

    def remove(self, record: RemoveUserScramCredentialRecord) -> ScramImage:
        """Without a credential.

        Raises:
            ReplayError: There is no such credential.
        """
        if self.credential(record.name, record.mechanism) is None:
            raise ReplayError(f"user {record.name} has no credential of mechanism {record.mechanism}")
        credentials = self.users[record.name].remove(record.mechanism)
        if credentials:
            return replace(self, users=self.users.insert(record.name, credentials))
        return replace(self, users=self.users.remove(record.name))
