"""FindCoordinator (10): which broker coordinates a group, a transactional id or a share group.

v0 to v3 ask for one key and answer flat, v4 and later ask for several (KIP-699). Node id -1 means that none is known.
"""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.FIND_COORDINATOR,
    "0-6",
    field("key", STRING, "0-3"),
    field("key_type", INT8, "1+"),
    array("coordinator_keys", STRING, versions="4+"),
    flexible="3+",
)

RESPONSE = response(
    ApiKey.FIND_COORDINATOR,
    "0-6",
    field("throttle_time_ms", INT32, "1+"),
    field("error_code", INT16, "0-3"),
    field("error_message", STRING, "1-3", nullable=True),
    field("node_id", INT32, "0-3"),
    field("host", STRING, "0-3"),
    field("port", INT32, "0-3"),
    array(
        "coordinators",
        field("key", STRING),
        field("node_id", INT32),
        field("host", STRING),
        field("port", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        versions="4+",
    ),
    flexible="3+",
)
