"""AddRaftVoter (80): a controller becomes a voter of the metadata quorum (KIP-853)."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.ADD_RAFT_VOTER,
    "0-1",
    field("cluster_id", STRING, nullable=True),
    field("timeout_ms", INT32),
    field("voter_id", INT32),
    field("voter_directory_id", UUID),
    array(
        "listeners",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
    ),
    field("ack_when_committed", BOOL, "1+", default=True),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ADD_RAFT_VOTER,
    "0-1",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    flexible="0+",
)
