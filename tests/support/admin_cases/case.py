"""What a case of the admin script is, and Kafka's numbers that its pages use."""

from dataclasses import dataclass
from typing import Any, Final

from codec.api_keys import ApiKey

Body = dict[str, Any]

UUID_ZERO: Final = bytes(16)
NO_SUCH_ID: Final = b"0123456789abcdef"
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TIMEOUT_MS: Final = 30000

WRITES: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
"""The APIs after which a broker has to catch up before it is asked."""


@dataclass(frozen=True, slots=True)
class IdOf:
    """Stands in a body for the id that the cluster gave a topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class HmacOf:
    """Stands in a body for the HMAC of the delegation token that a case has created."""

    case: str


@dataclass(frozen=True, slots=True)
class Case:
    """One request of the script; the name says what it is about. Without a user it is made by an anonymous client."""

    name: str
    api_key: ApiKey
    api_version: int
    body: Body
    user: str | None = None


def names(*found: str) -> list[Body]:
    """A list of structs with a name each."""
    return [{"name": name} for name in found]
