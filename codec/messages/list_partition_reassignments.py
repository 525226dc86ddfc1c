"""ListPartitionReassignments (46): the moves of partitions that are under way (KIP-455)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    "0",
    field("timeout_ms", INT32, default=60000),
    array(
        "topics",
        field("name", STRING),
        array("partition_indexes", INT32),
        nullable=True,
        default=None,
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    array(
        "topics",
        field("name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            array("replicas", INT32),
            array("adding_replicas", INT32),
            array("removing_replicas", INT32),
        ),
    ),
    flexible="0+",
)
