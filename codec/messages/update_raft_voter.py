"""UpdateRaftVoter (82): a voter tells the leader its endpoints and KRaft versions (KIP-853)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, UINT16, UUID, array, field, request, response, struct

REQUEST = request(
    ApiKey.UPDATE_RAFT_VOTER,
    "0",
    field("cluster_id", STRING, nullable=True),
    field("current_leader_epoch", INT32),
    field("voter_id", INT32),
    field("voter_directory_id", UUID),
    array(
        "listeners",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
    ),
    struct(
        "k_raft_version_feature",
        field("min_supported_version", INT16),
        field("max_supported_version", INT16),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.UPDATE_RAFT_VOTER,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    struct(
        "current_leader",
        field("leader_id", INT32, default=-1),
        field("leader_epoch", INT32, default=-1),
        field("host", STRING),
        field("port", INT32),
        tag=0,
    ),
    flexible="0+",
)
