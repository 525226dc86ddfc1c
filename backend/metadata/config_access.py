"""Who may see or change the configuration of a resource: a topic's and a group's is theirs, all other the cluster's."""

from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.authorizer import CLUSTER_NAME, Access, Operation, Resource
from backend.metadata.configs import ResourceType
from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

_OWN: Final = {
    ResourceType.TOPIC: (Resource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
}
_CLUSTERS: Final = (Resource.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def config_refusal(access: Access, operation: Operation, resource: Mapping[str, Any]) -> ApiError | None:
    """Why the client may not do that to the configuration of `resource_type` and `resource_name`; None if it may."""
    kind, code, message = _OWN.get(ResourceType.of(resource["resource_type"]), _CLUSTERS)
    name = CLUSTER_NAME if kind is Resource.CLUSTER else resource["resource_name"]
    return None if access.allows(operation, kind, name) else ApiError(code, message)
