"""FetchSnapshot (59): a snapshot of the metadata log in pieces (KIP-630); v1 adds directory ids (KIP-853)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, INT64, RECORDS, STRING, UINT16, UUID, array, field, request, response, struct

REQUEST = request(
    ApiKey.FETCH_SNAPSHOT,
    "0-1",
    field("cluster_id", STRING, nullable=True, tag=0, default=None),
    field("replica_id", INT32, default=-1),
    field("max_bytes", INT32, default=2147483647),
    array(
        "topics",
        field("name", STRING),
        array(
            "partitions",
            field("partition", INT32),
            field("current_leader_epoch", INT32),
            struct(
                "snapshot_id",
                field("end_offset", INT64),
                field("epoch", INT32),
            ),
            field("position", INT64),
            field("replica_directory_id", UUID, "1+", tag=0),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.FETCH_SNAPSHOT,
    "0-1",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    array(
        "topics",
        field("name", STRING),
        array(
            "partitions",
            field("index", INT32),
            field("error_code", INT16),
            struct(
                "snapshot_id",
                field("end_offset", INT64),
                field("epoch", INT32),
            ),
            struct(
                "current_leader",
                field("leader_id", INT32),
                field("leader_epoch", INT32),
                tag=0,
            ),
            field("size", INT64),
            field("position", INT64),
            field("unaligned_records", RECORDS),
        ),
    ),
    array(
        "node_endpoints",
        field("node_id", INT32),
        field("host", STRING),
        field("port", UINT16),
        versions="1+",
        tag=0,
    ),
    flexible="0+",
)
