"""EndQuorumEpoch (54): a leader of the metadata quorum resigns and names whom it would like to follow.

v1 adds directory ids and endpoints (KIP-853).
"""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.END_QUORUM_EPOCH,
    "0-1",
    field("cluster_id", STRING, nullable=True, default=None),
    array(
        "topics",
        field("topic_name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            field("leader_id", INT32),
            field("leader_epoch", INT32),
            array("preferred_successors", INT32, versions="0"),
            array(
                "preferred_candidates",
                field("candidate_id", INT32),
                field("candidate_directory_id", UUID),
                versions="1+",
            ),
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
    ApiKey.END_QUORUM_EPOCH,
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
