"""The APIs that ask for one operation on the whole cluster, and who is refused at the door.

The others look at each resource of a request by themselves. Sits under `reads` and `controller`.
"""

from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.authorizer import Access, Operation
from backend.metadata.refusals import refuse
from backend.metadata.writes import Body
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

CLUSTER_OPERATIONS: Final = {
    ApiKey.DESCRIBE_ACLS: Operation.DESCRIBE,
    ApiKey.CREATE_ACLS: Operation.ALTER,
    ApiKey.DELETE_ACLS: Operation.ALTER,
    ApiKey.DESCRIBE_LOG_DIRS: Operation.DESCRIBE,
    ApiKey.ELECT_LEADERS: Operation.ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Operation.ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Operation.DESCRIBE,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Operation.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CLIENT_QUOTAS: Operation.ALTER_CONFIGS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Operation.DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Operation.ALTER,
    ApiKey.DESCRIBE_QUORUM: Operation.DESCRIBE,
    ApiKey.UPDATE_FEATURES: Operation.ALTER,
    ApiKey.UNREGISTER_BROKER: Operation.ALTER,
    ApiKey.LIST_CONFIG_RESOURCES: Operation.DESCRIBE_CONFIGS,
}
_MESSAGES: Final[dict[ApiKey, str | None]] = {
    ApiKey.ALTER_CLIENT_QUOTAS: "Cluster authorization failed.",
    ApiKey.DESCRIBE_QUORUM: "Cluster authorization failed.",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: None,
}
"""Kafka's, where it says something else than which permission is missing."""


def refused_at_the_door(api_key: int, api_version: int, request: Mapping[str, Any], access: Access) -> Body | None:
    """The answer to a client that may not use the API at all; None if it may, or if that depends on the resources."""
    operation = CLUSTER_OPERATIONS.get(ApiKey(api_key))
    if operation is None or access.allows_on_cluster(operation):
        return None
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if api_key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
        failed = {"error_code": code.value, "error_message": None}
        return {**failed, "results": [{"user": "", **failed, "credential_infos": []}]}
    if api_key == ApiKey.DESCRIBE_LOG_DIRS:
        return {"error_code": code.value, "results": []}
    message = _MESSAGES.get(ApiKey(api_key), f"Request needs {operation.name} permission.")
    return refuse(api_key, api_version, request, code, message)
