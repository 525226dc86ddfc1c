"""IncrementalAlterConfigs (44): sets, deletes, appends to or subtracts from single configuration keys (KIP-339)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    "0-1",
    array(
        "resources",
        field("resource_type", INT8),
        field("resource_name", STRING),
        array(
            "configs",
            field("name", STRING),
            field("config_operation", INT8),
            field("value", STRING, nullable=True),
        ),
    ),
    field("validate_only", BOOL),
    flexible="1+",
)

RESPONSE = response(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    "0-1",
    field("throttle_time_ms", INT32),
    array(
        "responses",
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        field("resource_type", INT8),
        field("resource_name", STRING),
    ),
    flexible="1+",
)
