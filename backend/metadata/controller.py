"""The controller's part of a write: from a request and an image to records and an answer.

`decide` goes to the page of the API. What it returns is not done yet: the driver commits the records, in the order of
the decisions, and decides the next write on an image that has all records decided before, committed or not. The answer
goes out when the outcome's records, and all those decided before them, are committed; an outcome without records waits
for those before it likewise. If the leadership is lost on the way, the answer is NOT_CONTROLLER and nothing is known.
"""

from collections.abc import Callable
from typing import Final

from backend.metadata.acl_writes import create_acls, delete_acls
from backend.metadata.cluster_access import refused_at_the_door
from backend.metadata.config_writes import alter_configs_in_full, incremental_alter_configs
from backend.metadata.elections import elect_leaders
from backend.metadata.features import update_features
from backend.metadata.image import Image
from backend.metadata.partition_writes import create_partitions
from backend.metadata.quota_writes import alter_client_quotas
from backend.metadata.reassignments import alter_partition_reassignments, list_partition_reassignments
from backend.metadata.registrations import unregister_broker
from backend.metadata.scram_writes import alter_user_scram_credentials
from backend.metadata.token_writes import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from backend.metadata.topic_writes import create_topics, delete_topics
from backend.metadata.writes import Outcome, WriteContext, WriteRequest
from codec.api_keys import ApiKey

__all__ = ["WRITES", "Outcome", "WriteContext", "WriteRequest", "decide"]


def decide(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """What a write comes to on this image.

    Raises:
        KeyError: The API is not in `WRITES`.
    """
    page = _PAGES[request.api_key]
    access = context.access(request.client, image)
    refused = refused_at_the_door(request.api_key, request.api_version, request.body, access)
    return page(request, image, context) if refused is None else Outcome(records=(), response=refused)


_PAGES: Final[dict[int, Callable[[WriteRequest, Image, WriteContext], Outcome]]] = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.ALTER_CONFIGS: alter_configs_in_full,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: lambda request, image, _: delete_acls(request, image),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda request, image, _: alter_client_quotas(request, image),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda request, image, _: alter_user_scram_credentials(request, image),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.CREATE_DELEGATION_TOKEN: create_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: renew_delegation_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: expire_delegation_token,
    ApiKey.ELECT_LEADERS: lambda request, image, _: elect_leaders(request, image),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda request, image, _: alter_partition_reassignments(request, image),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda request, image, _: list_partition_reassignments(request, image),
    ApiKey.UPDATE_FEATURES: update_features,
    ApiKey.UNREGISTER_BROKER: lambda request, image, _: unregister_broker(request, image),
}
WRITES: Final = frozenset(_PAGES)
"""The APIs that `decide` knows."""
