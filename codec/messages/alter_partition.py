"""AlterPartition (56): a leader proposes a new set of in-sync replicas to the active controller (KIP-497).

v2 names topics by id, v3 adds the brokers' epochs (KIP-903).
"""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, INT64, STRING, UUID, array, field, request, response

REQUEST = request(
    ApiKey.ALTER_PARTITION,
    "0-3",
    field("broker_id", INT32),
    field("broker_epoch", INT64, default=-1),
    array(
        "topics",
        field("topic_name", STRING, "0-1"),
        field("topic_id", UUID, "2+"),
        array(
            "partitions",
            field("partition_index", INT32),
            field("leader_epoch", INT32),
            array("new_isr", INT32, versions="0-2"),
            array(
                "new_isr_with_epochs",
                field("broker_id", INT32),
                field("broker_epoch", INT64, default=-1),
                versions="3+",
            ),
            field("leader_recovery_state", INT8, "1+"),
            field("partition_epoch", INT32),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ALTER_PARTITION,
    "0-3",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    array(
        "topics",
        field("topic_name", STRING, "0-1"),
        field("topic_id", UUID, "2+"),
        array(
            "partitions",
            field("partition_index", INT32),
            field("error_code", INT16),
            field("leader_id", INT32),
            field("leader_epoch", INT32),
            array("isr", INT32),
            field("leader_recovery_state", INT8, "1+"),
            field("partition_epoch", INT32),
        ),
    ),
    flexible="0+",
)
