"""ControllerRegistration (70): a controller tells the active one its listeners and features (KIP-919)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.CONTROLLER_REGISTRATION,
    "0",
    field("controller_id", INT32),
    field("incarnation_id", UUID),
    field("zk_migration_ready", BOOL),
    array(
        "listeners",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
        field("security_protocol", INT16),
    ),
    array(
        "features",
        field("name", STRING),
        field("min_supported_version", INT16),
        field("max_supported_version", INT16),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.CONTROLLER_REGISTRATION,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    flexible="0+",
)
