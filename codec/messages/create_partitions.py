"""CreatePartitions (37): raises the number of partitions of topics."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.CREATE_PARTITIONS,
    "0-3",
    array(
        "topics",
        field("name", STRING),
        field("count", INT32),
        array("assignments", array("broker_ids", INT32), nullable=True),
    ),
    field("timeout_ms", INT32),
    field("validate_only", BOOL),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.CREATE_PARTITIONS,
    "0-3",
    field("throttle_time_ms", INT32),
    array(
        "results",
        field("name", STRING),
        field("error_code", INT16),
        field("error_message", STRING, nullable=True, default=None),
    ),
    flexible="2+",
)
