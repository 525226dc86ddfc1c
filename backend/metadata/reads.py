"""The reads that a broker answers from its image: from a request and a reader to an answer.

`answer` goes to the page of the API. It never waits and never changes anything; which image is new enough is decided by
who calls it. Answers depend on nothing but their arguments, and their lists are in a fixed order.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from backend.metadata.acl_reads import describe_acls
from backend.metadata.cluster_reads import describe_cluster, describe_delegation_token, describe_log_dirs
from backend.metadata.config_reads import describe_configs, list_config_resources
from backend.metadata.group_reads import find_coordinator, list_groups
from backend.metadata.quota_reads import describe_client_quotas
from backend.metadata.reader import Reader
from backend.metadata.scram_reads import describe_user_scram_credentials
from backend.metadata.topic_reads import describe_topic_partitions, metadata
from backend.metadata.writes import Body
from codec.api_keys import ApiKey

__all__ = ["READS", "Reader", "answer"]


def answer(api_key: int, api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """The body of the answer, in the form that the codec takes for that API and version.

    Raises:
        KeyError: The API is not in `READS`.
    """
    return _PAGES[api_key](api_version, request, reader)


_PAGES: Final[dict[int, Callable[[int, Mapping[str, Any], Reader], Body]]] = {
    ApiKey.METADATA: metadata,
    ApiKey.FIND_COORDINATOR: lambda api_version, request, _: find_coordinator(api_version, request),
    ApiKey.LIST_GROUPS: lambda _version, _request, _reader: list_groups(),
    ApiKey.DESCRIBE_ACLS: lambda _, request, reader: describe_acls(request, reader),
    ApiKey.DESCRIBE_LOG_DIRS: lambda _, request, reader: describe_log_dirs(request, reader),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda _version, _request, reader: describe_delegation_token(reader),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda _, request, reader: describe_client_quotas(request, reader),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda _, request, reader: describe_user_scram_credentials(request, reader),
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_CONFIGS: lambda _, request, reader: describe_configs(request, reader),
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}
READS: Final = frozenset(_PAGES)
"""The APIs that `answer` knows."""
