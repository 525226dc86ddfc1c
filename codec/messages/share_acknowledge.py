"""ShareAcknowledge (79): acknowledgements of records by a member of a share group (KIP-932).

v0 was an early access version of Kafka 3.9 and 4.0. The new leaders' addresses are a plain array at the end.
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, array, field, request, response, struct

REQUEST = request(
    ApiKey.SHARE_ACKNOWLEDGE,
    "0-2",
    field("group_id", STRING, nullable=True, default=None),
    field("member_id", STRING, nullable=True),
    field("share_session_epoch", INT32),
    field("is_renew_ack", BOOL, "2+"),
    array(
        "topics",
        field("topic_id", UUID),
        array(
            "partitions",
            field("partition_index", INT32),
            array(
                "acknowledgement_batches",
                field("first_offset", INT64),
                field("last_offset", INT64),
                array("acknowledge_types", INT8),
            ),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.SHARE_ACKNOWLEDGE,
    "0-2",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True, default=None),
    field("acquisition_lock_timeout_ms", INT32, "2+"),
    array(
        "responses",
        field("topic_id", UUID),
        array(
            "partitions",
            field("partition_index", INT32),
            field("error_code", INT16),
            field("error_message", STRING, nullable=True, default=None),
            struct(
                "current_leader",
                field("leader_id", INT32),
                field("leader_epoch", INT32),
            ),
        ),
    ),
    array(
        "node_endpoints",
        field("node_id", INT32),
        field("host", STRING),
        field("port", INT32),
        field("rack", STRING, nullable=True, default=None),
    ),
    flexible="0+",
)
