"""AssignReplicasToDirs (73): a broker tells the active controller which directories hold its replicas (KIP-858)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, INT64, UUID, array, field, request, response

REQUEST = request(
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    "0",
    field("broker_id", INT32),
    field("broker_epoch", INT64, default=-1),
    array(
        "directories",
        field("id", UUID),
        array(
            "topics",
            field("topic_id", UUID),
            array(
                "partitions",
                field("partition_index", INT32),
            ),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    array(
        "directories",
        field("id", UUID),
        array(
            "topics",
            field("topic_id", UUID),
            array(
                "partitions",
                field("partition_index", INT32),
                field("error_code", INT16),
            ),
        ),
    ),
    flexible="0+",
)
