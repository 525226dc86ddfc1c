"""Produce (0): record batches to partition leaders.

v3 adds the transactional id (KIP-98), v9 is flexible, v10 names the new leader and its address in tagged fields when a
partition has moved (KIP-951), v13 names topics by id. With acks = 0 the broker sends no answer at all.
"""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, INT64, RECORDS, STRING, UUID, array, field, request, response, struct

REQUEST = request(
    ApiKey.PRODUCE,
    "0-13",
    field("transactional_id", STRING, "3+", nullable=True, default=None),
    field("acks", INT16),
    field("timeout_ms", INT32),
    array(
        "topic_data",
        field("name", STRING, "0-12"),
        field("topic_id", UUID, "13+"),
        array(
            "partition_data",
            field("index", INT32),
            field("records", RECORDS, nullable=True),
        ),
    ),
    flexible="9+",
)

RESPONSE = response(
    ApiKey.PRODUCE,
    "0-13",
    array(
        "responses",
        field("name", STRING, "0-12"),
        field("topic_id", UUID, "13+"),
        array(
            "partition_responses",
            field("index", INT32),
            field("error_code", INT16),
            field("base_offset", INT64),
            field("log_append_time_ms", INT64, "2+", default=-1),
            field("log_start_offset", INT64, "5+", default=-1),
            array(
                "record_errors",
                field("batch_index", INT32),
                field("batch_index_error_message", STRING, nullable=True, default=None),
                versions="8+",
            ),
            field("error_message", STRING, "8+", nullable=True, default=None),
            struct(
                "current_leader",
                field("leader_id", INT32, default=-1),
                field("leader_epoch", INT32, default=-1),
                versions="10+",
                tag=0,
            ),
        ),
    ),
    field("throttle_time_ms", INT32, "1+"),
    array(
        "node_endpoints",
        field("node_id", INT32),
        field("host", STRING),
        field("port", INT32),
        field("rack", STRING, nullable=True, default=None),
        versions="10+",
        tag=0,
    ),
    flexible="9+",
)
