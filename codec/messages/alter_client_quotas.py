"""AlterClientQuotas (49): sets and removes quotas of users, client ids and IPs (KIP-546)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, FLOAT64, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.ALTER_CLIENT_QUOTAS,
    "0-1",
    array(
        "entries",
        array(
            "entity",
            field("entity_type", STRING),
            field("entity_name", STRING, nullable=True),
        ),
        array(
            "ops",
            field("key", STRING),
            field("value", FLOAT64),
            field("remove", BOOL),
        ),
    ),
    field("validate_only", BOOL),
    flexible="1+",
)

RESPONSE = response(
    ApiKey.ALTER_CLIENT_QUOTAS,
    "0-1",
    field("throttle_time_ms", INT32),
    array(
        "entries",
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        array(
            "entity",
            field("entity_type", STRING),
            field("entity_name", STRING, nullable=True),
        ),
    ),
    flexible="1+",
)
