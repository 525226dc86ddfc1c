"""From an API key and a version to the tables and to the versions of the headers.

Header versions are known for every API of Kafka 3.9 to 4.4. What is newer than Kafka 4.4 is taken to be flexible, as
everything that Kafka has added since 2.4 is; that is how a frame of an unknown API or version still gets its header
read. Sources: the `flexibleVersions` of Kafka's definitions, and `requestHeaderVersion` and `responseHeaderVersion` of
its ApiMessageType.
"""

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, cast

from codec import messages
from codec.api_keys import ApiKey
from codec.schema import Message

_PAGES: Final[tuple[ModuleType, ...]] = tuple(
    import_module(f"{messages.__name__}.{page.name}") for page in pkgutil.iter_modules(messages.__path__)
)
"""Every page of the package: an API that gets a page is known."""
_REQUESTS: Final[dict[int, Message]] = {
    cast(Message, page.REQUEST).api_key: cast(Message, page.REQUEST) for page in _PAGES
}
_RESPONSES: Final[dict[int, Message]] = {
    cast(Message, page.RESPONSE).api_key: cast(Message, page.RESPONSE) for page in _PAGES
}

_FIRST_FLEXIBLE: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.METADATA: 9,
    ApiKey.LEADER_AND_ISR: 4,
    ApiKey.STOP_REPLICA: 2,
    ApiKey.UPDATE_METADATA: 6,
    ApiKey.CONTROLLED_SHUTDOWN: 3,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 6,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 6,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.SYNC_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.SASL_HANDSHAKE: 2,
    ApiKey.API_VERSIONS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.INIT_PRODUCER_ID: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 3,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.DESCRIBE_ACLS: 2,
    ApiKey.CREATE_ACLS: 2,
    ApiKey.DELETE_ACLS: 2,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 2,
    ApiKey.SASL_AUTHENTICATE: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.CREATE_DELEGATION_TOKEN: 2,
    ApiKey.RENEW_DELEGATION_TOKEN: 2,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 2,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 2,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.OFFSET_DELETE: 1,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
}
"""Where not 0. SaslHandshake and OffsetDelete have no flexible version yet; their next one would be."""


def known_versions(api_key: int) -> range | None:
    """The versions that our tables describe, or None when there is no table for this API."""
    table = _REQUESTS.get(api_key)
    return None if table is None else range(table.versions.first, table.versions.last + 1)


def request_table(api_key: int) -> Message:
    """The table of the API's request body.

    Raises:
        KeyError: There is none; see `known_versions`.
    """
    return _REQUESTS[api_key]


def response_table(api_key: int) -> Message:
    """The table of the API's response body.

    Raises:
        KeyError: There is none; see `known_versions`.
    """
    return _RESPONSES[api_key]


def first_flexible_version(api_key: int) -> int:
    """The first version with compact lengths and tagged fields (KIP-482); 0 for an unknown API."""
    return _FIRST_FLEXIBLE.get(api_key, 0)


def request_header_version(api_key: int, api_version: int) -> Literal[0, 1, 2]:
    """0 has no client id (ControlledShutdown v0 only), 1 has one, 2 has tagged fields too."""
    if api_version >= _FIRST_FLEXIBLE.get(api_key, 0):
        return 2
    return 0 if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0 else 1


def response_header_version(api_key: int, api_version: int) -> Literal[0, 1]:
    """1 has tagged fields. ApiVersions stays at 0, so that any client can read any broker's answer (KIP-511)."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= _FIRST_FLEXIBLE.get(api_key, 0) else 0
