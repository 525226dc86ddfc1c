"""AlterConfigs (33): replaces the whole configuration of resources; superseded by IncrementalAlterConfigs."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.ALTER_CONFIGS,
    "0-2",
    array(
        "resources",
        field("resource_type", INT8),
        field("resource_name", STRING),
        array(
            "configs",
            field("name", STRING),
            field("value", STRING, nullable=True),
        ),
    ),
    field("validate_only", BOOL),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.ALTER_CONFIGS,
    "0-2",
    field("throttle_time_ms", INT32),
    array(
        "responses",
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        field("resource_type", INT8),
        field("resource_name", STRING),
    ),
    flexible="2+",
)
