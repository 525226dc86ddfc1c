"""RemoveRaftVoter (81): a controller ceases to be a voter of the metadata quorum (KIP-853)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, UUID, field, request, response

REQUEST = request(
    ApiKey.REMOVE_RAFT_VOTER,
    "0",
    field("cluster_id", STRING, nullable=True),
    field("voter_id", INT32),
    field("voter_directory_id", UUID),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.REMOVE_RAFT_VOTER,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    flexible="0+",
)
