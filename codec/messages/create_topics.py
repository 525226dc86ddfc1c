"""CreateTopics (19): creates topics; from v5 the answer describes what was created."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, STRING, UUID, array, field, request, response

REQUEST = request(
    ApiKey.CREATE_TOPICS,
    "0-7",
    array(
        "topics",
        field("name", STRING),
        field("num_partitions", INT32),
        field("replication_factor", INT16),
        array(
            "assignments",
            field("partition_index", INT32),
            array("broker_ids", INT32),
        ),
        array(
            "configs",
            field("name", STRING),
            field("value", STRING, nullable=True),
        ),
    ),
    field("timeout_ms", INT32, default=60000),
    field("validate_only", BOOL, "1+"),
    flexible="5+",
)

RESPONSE = response(
    ApiKey.CREATE_TOPICS,
    "0-7",
    field("throttle_time_ms", INT32, "2+"),
    array(
        "topics",
        field("name", STRING),
        field("topic_id", UUID, "7+"),
        field("error_code", INT16),
        field("error_message", STRING, "1+", nullable=True),
        field("topic_config_error_code", INT16, "5+", tag=0),
        field("num_partitions", INT32, "5+", default=-1),
        field("replication_factor", INT16, "5+", default=-1),
        array(
            "configs",
            field("name", STRING),
            field("value", STRING, nullable=True),
            field("read_only", BOOL),
            field("config_source", INT8, default=-1),
            field("is_sensitive", BOOL),
            versions="5+",
            nullable=True,
        ),
    ),
    flexible="5+",
)
