"""DescribeQuorum (55): leader, epoch, high watermark and replicas of the metadata log.

v1 adds the times of the last fetches (KIP-836), v2 directory ids and the controllers' listeners (KIP-853).
"""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, INT64, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_QUORUM,
    "0-2",
    array(
        "topics",
        field("topic_name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_QUORUM,
    "0-2",
    field("error_code", INT16),
    field("error_message", STRING, "2+", nullable=True),
    array(
        "topics",
        field("topic_name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            field("error_code", INT16),
            field("error_message", STRING, "2+", nullable=True),
            field("leader_id", INT32),
            field("leader_epoch", INT32),
            field("high_watermark", INT64),
            array(
                "current_voters",
                field("replica_id", INT32),
                field("replica_directory_id", UUID, "2+"),
                field("log_end_offset", INT64),
                field("last_fetch_timestamp", INT64, "1+", default=-1),
                field("last_caught_up_timestamp", INT64, "1+", default=-1),
            ),
            array(
                "observers",
                field("replica_id", INT32),
                field("replica_directory_id", UUID, "2+"),
                field("log_end_offset", INT64),
                field("last_fetch_timestamp", INT64, "1+", default=-1),
                field("last_caught_up_timestamp", INT64, "1+", default=-1),
            ),
        ),
    ),
    array(
        "nodes",
        field("node_id", INT32),
        array(
            "listeners",
            field("name", STRING),
            field("host", STRING),
            field("port", UINT16),
        ),
        versions="2+",
    ),
    flexible="0+",
)
