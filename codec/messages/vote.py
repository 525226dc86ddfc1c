"""Vote (52): a voter asks for votes, or with pre_vote (v2, KIP-996) whether it would get them.

v1 adds directory ids and the leader's endpoints (KIP-853).
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.VOTE,
    "0-2",
    field("cluster_id", STRING, nullable=True, default=None),
    field("voter_id", INT32, "1+", default=-1),
    array(
        "topics",
        field("topic_name", STRING),
        array(
            "partitions",
            field("partition_index", INT32),
            field("replica_epoch", INT32),
            field("replica_id", INT32),
            field("replica_directory_id", UUID, "1+"),
            field("voter_directory_id", UUID, "1+"),
            field("last_offset_epoch", INT32),
            field("last_offset", INT64),
            field("pre_vote", BOOL, "2+"),
        ),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.VOTE,
    "0-2",
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
            field("vote_granted", BOOL),
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
