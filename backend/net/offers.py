"""What a broker of this backend offers in ApiVersions: each API in Kafka 4.4's versions, and who answers it.

Produce, Fetch and all of groups beyond an empty list are missing until they are real: a client that asks for them
without having been offered them is disconnected, as by Kafka.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, final

from backend.metadata.features import SUPPORTED
from codec.api_keys import ApiKey


class AnsweredBy(Enum):
    """Where the answer is made."""

    HERE = "by the connection itself"
    IMAGE = "from the image of the broker"
    CONTROLLER = "by the active controller, after the commit"
    LEADER = "by the leader of the quorum"


@final
@dataclass(frozen=True, slots=True)
class Offer:
    """One API: its versions, both ends included, and who answers it."""

    first: int
    last: int
    answered_by: AnsweredBy


FEATURES: Final = SUPPORTED
"""The levels of features that every node supports."""

OFFERS: Final[Mapping[int, Offer]] = {
    ApiKey.METADATA: Offer(0, 13, AnsweredBy.IMAGE),
    ApiKey.FIND_COORDINATOR: Offer(0, 6, AnsweredBy.IMAGE),
    ApiKey.LIST_GROUPS: Offer(0, 5, AnsweredBy.IMAGE),
    ApiKey.SASL_HANDSHAKE: Offer(0, 1, AnsweredBy.HERE),
    ApiKey.API_VERSIONS: Offer(0, 4, AnsweredBy.HERE),
    ApiKey.CREATE_TOPICS: Offer(2, 7, AnsweredBy.CONTROLLER),
    ApiKey.DELETE_TOPICS: Offer(1, 6, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_ACLS: Offer(1, 3, AnsweredBy.IMAGE),
    ApiKey.CREATE_ACLS: Offer(1, 3, AnsweredBy.CONTROLLER),
    ApiKey.DELETE_ACLS: Offer(1, 3, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_CONFIGS: Offer(1, 4, AnsweredBy.IMAGE),
    ApiKey.ALTER_CONFIGS: Offer(0, 2, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_LOG_DIRS: Offer(1, 5, AnsweredBy.IMAGE),
    ApiKey.SASL_AUTHENTICATE: Offer(0, 2, AnsweredBy.HERE),
    ApiKey.CREATE_PARTITIONS: Offer(0, 3, AnsweredBy.CONTROLLER),
    ApiKey.CREATE_DELEGATION_TOKEN: Offer(1, 3, AnsweredBy.CONTROLLER),
    ApiKey.RENEW_DELEGATION_TOKEN: Offer(1, 2, AnsweredBy.CONTROLLER),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Offer(1, 2, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Offer(1, 3, AnsweredBy.IMAGE),
    ApiKey.ELECT_LEADERS: Offer(0, 2, AnsweredBy.CONTROLLER),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Offer(0, 1, AnsweredBy.CONTROLLER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Offer(0, 1, AnsweredBy.CONTROLLER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Offer(0, 0, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Offer(0, 1, AnsweredBy.IMAGE),
    ApiKey.ALTER_CLIENT_QUOTAS: Offer(0, 1, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Offer(0, 0, AnsweredBy.IMAGE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Offer(0, 0, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_QUORUM: Offer(0, 2, AnsweredBy.LEADER),
    ApiKey.UPDATE_FEATURES: Offer(0, 2, AnsweredBy.CONTROLLER),
    ApiKey.UNREGISTER_BROKER: Offer(0, 0, AnsweredBy.CONTROLLER),
    ApiKey.DESCRIBE_CLUSTER: Offer(0, 2, AnsweredBy.IMAGE),
    ApiKey.LIST_CONFIG_RESOURCES: Offer(0, 1, AnsweredBy.IMAGE),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Offer(0, 0, AnsweredBy.IMAGE),
}


def api_versions_rows() -> Iterator[dict[str, Any]]:
    """The rows of an ApiVersions answer."""
    for api_key, offer in sorted(OFFERS.items()):
        yield {"api_key": int(api_key), "min_version": offer.first, "max_version": offer.last}
