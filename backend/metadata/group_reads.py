"""FindCoordinator (10) and ListGroups (16), as a cluster answers that has no groups and no topic to keep them in."""

from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.authorizer import Access, Operation, Resource
from backend.metadata.reader import Reader
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode

NO_NODE: Final = {"node_id": -1, "host": "", "port": -1}
GROUP: Final = 0
_NONE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
_KINDS: Final = {
    GROUP: (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    1: (
        Resource.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


def find_coordinator(api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """FindCoordinator (10): none, for any key; one result a key from v4 on."""
    access, key_type = reader.access, request.get("key_type", GROUP)
    if api_version < 4:
        code, message = _reason(access, key_type, request["key"])
        return {"throttle_time_ms": 0, "error_code": code.value, "error_message": message, **NO_NODE}
    coordinators = []
    for key in request["coordinator_keys"]:
        code, message = _reason(access, key_type, key)
        shown = "" if code is _NONE[0] else message
        coordinators.append({"key": key, **NO_NODE, "error_code": code.value, "error_message": shown})
    return {"throttle_time_ms": 0, "coordinators": coordinators}


def list_groups() -> Body:
    """ListGroups (16): none."""
    return {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "groups": []}


def _reason(access: Access, key_type: int, key: str) -> tuple[ErrorCode, str]:
    kind = _KINDS.get(key_type)
    if kind is None or access.allows(Operation.DESCRIBE, kind[0], key):
        return _NONE
    return kind[1:]
