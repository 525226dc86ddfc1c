"""BeginQuorumEpoch (53): a new leader of the metadata quorum makes itself known.

v1 adds directory ids and endpoints (KIP-853).
"""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.BEGIN_QUORUM_EPOCH,
    "0-1",
    field("cluster_id", STRING, nullable=True, default=None),
    field("voter_id", INT32, "1+", default=-1),
    array(
        "topics",
        field("topic_name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            field("voter_directory_id", UUID, "1+"),
            field("leader_id", INT32),
            field("leader_epoch", INT32),
        ),
    ),
    array(
        "leader_endpoints",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
        versions="1+",
    ),
    flexible="1+",
)

RESPONSE = response(
    ApiKey.BEGIN_QUORUM_EPOCH,
    "0-1",
    field("error_code", INT16),
    array(
        "topics",
        field("topic_name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            field("error_code", INT16),
            field("leader_id", INT32),
            field("leader_epoch", INT32),
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
    flexible="1+",
)
