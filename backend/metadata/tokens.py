"""The delegation tokens of an image (KIP-48, KIP-900), and the secret from which their passwords come.

A token is logged in with by SCRAM: its id is the user name, its HMAC in base64 the password. The log keeps no HMAC; who
has the cluster's secret computes it from the id. Sits under `image`; decides nothing.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass, field, replace
from typing import Final, Self, final

from rpds import HashTrieMap

from backend.metadata.errors import ReplayError
from backend.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord

DAY_MS: Final = 24 * 3_600_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """Kafka's `delegation.token.` keys.

    Attributes:
        secret: `secret.key`, the same on all nodes; without it there are no tokens.
        max_lifetime_ms: `max.lifetime.ms`: no token lives longer.
        expiry_time_ms: `expiry.time.ms`: a token that nobody renews lives so long.
    """

    secret: str = field(repr=False)
    max_lifetime_ms: int = 7 * DAY_MS
    expiry_time_ms: int = DAY_MS

    def hmac(self, token_id: str) -> bytes:
        """The HMAC of a token."""
        return hmac.digest(self.secret.encode(), token_id.encode(), "sha512")

    def password(self, token_id: str) -> str:
        """What a client logs in with."""
        return base64.b64encode(self.hmac(token_id)).decode()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokensImage:
    """Token id to token, expired ones too until a record removes them."""

    by_id: HashTrieMap[str, DelegationTokenRecord]

    @classmethod
    def empty(cls) -> Self:
        """No token."""
        return cls(by_id=HashTrieMap())

    def expired(self, now_ms: int) -> list[DelegationTokenRecord]:
        """The tokens that nobody can use any more, in order of their ids."""
        return sorted((t for t in self.by_id.values() if is_expired(t, now_ms)), key=lambda token: token.token_id)

    def set(self, record: DelegationTokenRecord) -> TokensImage:
        """With a token, in place of what was known of it."""
        return replace(self, by_id=self.by_id.insert(record.token_id, record))

    def remove(self, record: RemoveDelegationTokenRecord) -> TokensImage:
        """Without a token.

        Raises:
            ReplayError: There is no such token.
        """
        if record.token_id not in self.by_id:
            raise ReplayError("there is no such delegation token")
        return replace(self, by_id=self.by_id.remove(record.token_id))


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether a token can be used no more."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms
