"""DescribeClientQuotas (48): quotas by user, client id and IP (KIP-546)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, FLOAT64, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    "0-1",
    array(
        "components",
        field("entity_type", STRING),
        field("match_type", INT8),
        field("match", STRING, nullable=True),
    ),
    field("strict", BOOL),
    flexible="1+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    "0-1",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    array(
        "entries",
        array(
            "entity",
            field("entity_type", STRING),
            field("entity_name", STRING, nullable=True),
        ),
        array(
            "values",
            field("key", STRING),
            field("value", FLOAT64),
        ),
        nullable=True,
    ),
    flexible="1+",
)
