"""DescribeLogDirs (35): the log directories of the broker that answers, and the replicas in them."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_LOG_DIRS,
    "0-5",
    array("topics", field("topic", STRING), array("partitions", INT32), nullable=True),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_LOG_DIRS,
    "0-5",
    field("throttle_time_ms", INT32),
    field("error_code", INT16, "3+"),
    array(
        "results",
        field("error_code", INT16),
        field("log_dir", STRING),
        array(
            "topics",
            field("name", STRING),
            array(
                "partitions",
                field("partition_index", INT32),
                field("partition_size", INT64),
                field("offset_lag", INT64),
                field("is_future_key", BOOL),
            ),
        ),
        field("total_bytes", INT64, "4+", default=-1),
        field("usable_bytes", INT64, "4+", default=-1),
        field("is_cordoned", BOOL, "5+"),
    ),
    flexible="2+",
)
