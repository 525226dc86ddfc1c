"""FindCoordinator (10) and ListGroups (16), as a cluster answers that has no groups and no topic to keep them in."""

from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.writes import Body
from codec.error_codes import ErrorCode

NO_NODE: Final = {"node_id": -1, "host": "", "port": -1}
_CODE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE.value


def find_coordinator(api_version: int, request: Mapping[str, Any]) -> Body:
    """FindCoordinator (10): none, for any key; one result a key from v4 on."""
    if api_version < 4:
        message = "The coordinator is not available."
        return {"throttle_time_ms": 0, "error_code": _CODE, "error_message": message, **NO_NODE}
    coordinators = [
        {"key": key, **NO_NODE, "error_code": _CODE, "error_message": ""} for key in request["coordinator_keys"]
    ]
    return {"throttle_time_ms": 0, "coordinators": coordinators}


def list_groups() -> Body:
    """ListGroups (16): none."""
    return {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "groups": []}
