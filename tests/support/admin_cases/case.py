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


@dataclass(frozen=True, slots=True)
class IdOf:
    """Stands in a body for the id that the cluster gave a topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class Case:
    """One request of the script; the name says what it is about."""

    name: str
    api_key: ApiKey
    api_version: int
    body: Body


def names(*found: str) -> list[Body]:
    """A list of structs with a name each."""
    return [{"name": name} for name in found]
