"""Fetch (1): record batches from partition leaders, and from controllers the metadata log.

v7 adds fetch sessions (KIP-227), v12 is flexible, v13 names topics by id (KIP-516), v16 names the new leader's address
in a tagged field when a partition has moved (KIP-951).
"""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, array, field, request, response, struct

REQUEST = request(
    ApiKey.FETCH,
    "0-18",
    field("cluster_id", STRING, "12+", nullable=True, tag=0, default=None),
    field("replica_id", INT32, "0-14", default=-1),
    struct(
        "replica_state",
        field("replica_id", INT32, default=-1),
        field("replica_epoch", INT64, default=-1),
        versions="15+",
        tag=1,
    ),
    field("max_wait_ms", INT32),
    field("min_bytes", INT32),
    field("max_bytes", INT32, "3+", default=2147483647),
    field("isolation_level", INT8, "4+"),
    field("session_id", INT32, "7+"),
    field("session_epoch", INT32, "7+", default=-1),
    array(
        "topics",
        field("topic", STRING, "0-12"),
        field("topic_id", UUID, "13+"),
        array(
            "partitions",
            field("partition", INT32),
            field("current_leader_epoch", INT32, "9+", default=-1),
            field("fetch_offset", INT64),
            field("last_fetched_epoch", INT32, "12+", default=-1),
            field("log_start_offset", INT64, "5+", default=-1),
            field("partition_max_bytes", INT32),
            field("replica_directory_id", UUID, "17+", tag=0),
            field("high_watermark", INT64, "18+", tag=1, default=9223372036854775807),
        ),
    ),
    array(
        "forgotten_topics_data",
        field("topic", STRING, "7-12"),
        field("topic_id", UUID, "13+"),
        array("partitions", INT32),
        versions="7+",
    ),
    field("rack_id", STRING, "11+"),
    flexible="12+",
)

RESPONSE = response(
    ApiKey.FETCH,
    "0-18",
    field("throttle_time_ms", INT32, "1+"),
    field("error_code", INT16, "7+"),
    field("session_id", INT32, "7+"),
    array(
        "responses",
        field("topic", STRING, "0-12"),
        field("topic_id", UUID, "13+"),
        array(
            "partitions",
            field("partition_index", INT32),
            field("error_code", INT16),
            field("high_watermark", INT64),
            field("last_stable_offset", INT64, "4+", default=-1),
            field("log_start_offset", INT64, "5+", default=-1),
            struct(
                "diverging_epoch",
                field("epoch", INT32, default=-1),
                field("end_offset", INT64, default=-1),
                versions="12+",
                tag=0,
            ),
            struct(
                "current_leader",
                field("leader_id", INT32, default=-1),
                field("leader_epoch", INT32, default=-1),
                versions="12+",
                tag=1,
            ),
            struct(
                "snapshot_id",
                field("end_offset", INT64, default=-1),
                field("epoch", INT32, default=-1),
                versions="12+",
                tag=2,
            ),
            array(
                "aborted_transactions",
                field("producer_id", INT64),
                field("first_offset", INT64),
                versions="4+",
                nullable=True,
            ),
            field("preferred_read_replica", INT32, "11+", default=-1),
            field("records", RECORDS, nullable=True),
        ),
    ),
    array(
        "node_endpoints",
        field("node_id", INT32),
        field("host", STRING),
        field("port", INT32),
        field("rack", STRING, nullable=True, default=None),
        versions="16+",
        tag=0,
    ),
    flexible="12+",
)
