"""DeleteAcls (31): removes the access rules that match any of the filters."""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DELETE_ACLS,
    "0-3",
    array(
        "filters",
        field("resource_type_filter", INT8),
        field("resource_name_filter", STRING, nullable=True),
        field("pattern_type_filter", INT8, "1+", default=3),
        field("principal_filter", STRING, nullable=True),
        field("host_filter", STRING, nullable=True),
        field("operation", INT8),
        field("permission_type", INT8),
    ),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.DELETE_ACLS,
    "0-3",
    field("throttle_time_ms", INT32),
    array(
        "filter_results",
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        array(
            "matching_acls",
            field("error_code", INT16),
            field("error_message", STRING, nullable=True),
            field("resource_type", INT8),
            field("resource_name", STRING),
            field("pattern_type", INT8, "1+", default=3),
            field("principal", STRING),
            field("host", STRING),
            field("operation", INT8),
            field("permission_type", INT8),
        ),
    ),
    flexible="2+",
)
