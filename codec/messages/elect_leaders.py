"""ElectLeaders (43): elect preferred leaders, or from v1 on unclean ones (KIP-460)."""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.ELECT_LEADERS,
    "0-2",
    field("election_type", INT8, "1+"),
    array(
        "topic_partitions",
        field("topic", STRING),
        array("partitions", INT32),
        nullable=True,
    ),
    field("timeout_ms", INT32, default=60000),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.ELECT_LEADERS,
    "0-2",
    field("throttle_time_ms", INT32),
    field("error_code", INT16, "1+"),
    array(
        "replica_election_results",
        field("topic", STRING),
        array(
            "partition_result",
            field("partition_id", INT32),
            field("error_code", INT16),
            field("error_message", STRING, nullable=True),
        ),
    ),
    flexible="2+",
)
