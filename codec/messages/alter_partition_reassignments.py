"""AlterPartitionReassignments (45): move partitions to other brokers, or stop a move (KIP-455)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    "0-1",
    field("timeout_ms", INT32, default=60000),
    field("allow_replication_factor_change", BOOL, "1+", default=True),
    array(
        "topics",
        field("name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            array("replicas", INT32, nullable=True, default=None),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    "0-1",
    field("throttle_time_ms", INT32),
    field("allow_replication_factor_change", BOOL, "1+", default=True),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    array(
        "responses",
        field("name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            field("error_code", INT16),
            field("error_message", STRING, nullable=True),
        ),
    ),
    flexible="0+",
)
