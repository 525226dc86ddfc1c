"""Metadata (3): brokers, topics and partitions, as the image of the broker that answers shows them.

v0 asks for all topics with an empty array, later versions with null. From v4 a request may forbid the creation of
missing topics, from v10 topics have ids, v13 has a top-level error code.
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, STRING, UUID, array, field, request, response

REQUEST = request(
    ApiKey.METADATA,
    "0-13",
    array("topics", field("topic_id", UUID, "10+"), field("name", STRING, nullable="10+"), nullable="1+"),
    field("allow_auto_topic_creation", BOOL, "4+", default=True),
    field("include_cluster_authorized_operations", BOOL, "8-10"),
    field("include_topic_authorized_operations", BOOL, "8+"),
    flexible="9+",
)

RESPONSE = response(
    ApiKey.METADATA,
    "0-13",
    field("throttle_time_ms", INT32, "3+"),
    array(
        "brokers",
        field("node_id", INT32),
        field("host", STRING),
        field("port", INT32),
        field("rack", STRING, "1+", nullable=True, default=None),
    ),
    field("cluster_id", STRING, "2+", nullable=True, default=None),
    field("controller_id", INT32, "1+", default=-1),
    array(
        "topics",
        field("error_code", INT16),
        field("name", STRING, nullable="12+"),
        field("topic_id", UUID, "10+"),
        field("is_internal", BOOL, "1+"),
        array(
            "partitions",
            field("error_code", INT16),
            field("partition_index", INT32),
            field("leader_id", INT32),
            field("leader_epoch", INT32, "7+", default=-1),
            array("replica_nodes", INT32),
            array("isr_nodes", INT32),
            array("offline_replicas", INT32, versions="5+"),
        ),
        field("topic_authorized_operations", INT32, "8+", default=-2147483648),
    ),
    field("cluster_authorized_operations", INT32, "8-10", default=-2147483648),
    field("error_code", INT16, "13+"),
    flexible="9+",
)
