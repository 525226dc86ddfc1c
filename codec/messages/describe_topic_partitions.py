"""DescribeTopicPartitions (75): topics and partitions page by page, with eligible leader replicas (KIP-966)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, STRING, UUID, array, field, request, response, struct

REQUEST = request(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    "0",
    array(
        "topics",
        field("name", STRING),
    ),
    field("response_partition_limit", INT32, default=2000),
    struct("cursor", field("topic_name", STRING), field("partition_index", INT32), nullable=True, default=None),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    "0",
    field("throttle_time_ms", INT32),
    array(
        "topics",
        field("error_code", INT16),
        field("name", STRING, nullable=True),
        field("topic_id", UUID),
        field("is_internal", BOOL),
        array(
            "partitions",
            field("error_code", INT16),
            field("partition_index", INT32),
            field("leader_id", INT32),
            field("leader_epoch", INT32, default=-1),
            array("replica_nodes", INT32),
            array("isr_nodes", INT32),
            array("eligible_leader_replicas", INT32, nullable=True, default=None),
            array("last_known_elr", INT32, nullable=True, default=None),
            array("offline_replicas", INT32),
        ),
        field("topic_authorized_operations", INT32, default=-2147483648),
    ),
    struct("next_cursor", field("topic_name", STRING), field("partition_index", INT32), nullable=True, default=None),
    flexible="0+",
)
