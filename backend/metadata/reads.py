"""The reads that a broker answers from its image: from a request and a reader to an answer.

`answer` goes to the page of the API. It never waits and never changes anything; which image is new enough is decided by
who calls it. Answers depend on nothing but their arguments, and their lists are in a fixed order.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from backend.metadata.acl_reads import describe_acls
from backend.metadata.cluster_access import refused_at_the_door
from backend.metadata.cluster_reads import describe_cluster, describe_log_dirs
from backend.metadata.config_reads import describe_configs, list_config_resources
from backend.metadata.group_reads import find_coordinator, list_groups
from backend.metadata.quota_reads import describe_client_quotas
from backend.metadata.reader import Reader
from backend.metadata.scram_reads import describe_user_scram_credentials
from backend.metadata.token_reads import describe_delegation_token
from backend.metadata.topic_reads import describe_topic_partitions, metadata
from backend.metadata.writes import Body
from codec.api_keys import ApiKey

__all__ = ["READS", "Reader", "answer"]


def answer(api_key: int, api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """The body of the answer, in the form that the codec takes for that API and version.

    Raises:
        KeyError: The API is not in `READS`.
    """
    page = _PAGES[api_key]
    refused = refused_at_the_door(api_key, api_version, request, reader.access)
    return page(api_version, request, reader) if refused is None else refused


_PAGES: Final[dict[int, Callable[[int, Mapping[str, Any], Reader], Body]]] = {
    ApiKey.METADATA: metadata,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.LIST_GROUPS: lambda _version, _request, _reader: list_groups(),
    ApiKey.DESCRIBE_ACLS: lambda _, request, reader: describe_acls(request, reader),
    ApiKey.DESCRIBE_LOG_DIRS: lambda _, request, reader: describe_log_dirs(request, reader),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda _, request, reader: describe_delegation_token(request, reader),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda _, request, reader: describe_client_quotas(request, reader),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda _, request, reader: describe_user_scram_credentials(request, reader),
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_CONFIGS: lambda _, request, reader: describe_configs(request, reader),
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}
READS: Final = frozenset(_PAGES)
"""The APIs that `answer` knows."""
