"""Which fields are never shown, whoever looks.

Credentials travel in a handful of fields. Everything here errs on the side of silence: in these messages the bytes
after a fault are not shown either.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from codec.api_keys import ApiKey

SECRET_FIELDS: Final[Mapping[int, frozenset[str]]] = MappingProxyType(
    {
        ApiKey.SASL_AUTHENTICATE: frozenset({"auth_bytes"}),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: frozenset({"salt", "salted_password"}),
        ApiKey.CREATE_DELEGATION_TOKEN: frozenset({"hmac"}),
        ApiKey.RENEW_DELEGATION_TOKEN: frozenset({"hmac"}),
        ApiKey.EXPIRE_DELEGATION_TOKEN: frozenset({"hmac"}),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: frozenset({"hmac"}),
        # Any request and answer may be inside, and in the principal a login.
        ApiKey.ENVELOPE: frozenset({"request_data", "request_principal", "response_data"}),
        # Pieces of a snapshot of the metadata log, cut anywhere.
        ApiKey.FETCH_SNAPSHOT: frozenset({"unaligned_records"}),
    }
)
"""API key to the names of fields that hold credentials, in requests and answers."""

SECRET_RECORD_FIELDS: Final = frozenset({"salt", "stored_key", "server_key", "hmac"})
"""The same for the records of the metadata log."""

_SECRET_CONFIG_WORDS: Final = (
    "password",
    "secret",
    "jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)


def is_secret_config(name: object) -> bool:
    """Whether the value of a config with this name is a credential, as Kafka's type PASSWORD."""
    return isinstance(name, str) and any(word in name for word in _SECRET_CONFIG_WORDS)
