"""CreateAcls (30): adds access rules. The host is a part of a rule, never an address."""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.CREATE_ACLS,
    "0-3",
    array(
        "creations",
        field("resource_type", INT8),
        field("resource_name", STRING),
        field("resource_pattern_type", INT8, "1+", default=3),
        field("principal", STRING),
        field("host", STRING),
        field("operation", INT8),
        field("permission_type", INT8),
    ),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.CREATE_ACLS,
    "0-3",
    field("throttle_time_ms", INT32),
    array(
        "results",
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
    ),
    flexible="2+",
)
