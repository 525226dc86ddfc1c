"""CreateDelegationToken (38): a token with which others may act for an owner (KIP-48).

v3 lets somebody else than the owner ask for it (KIP-373).
"""

from codec.api_keys import ApiKey
from codec.schema import BYTES, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    ApiKey.CREATE_DELEGATION_TOKEN,
    "0-3",
    field("owner_principal_type", STRING, "3+", nullable=True),
    field("owner_principal_name", STRING, "3+", nullable=True),
    array(
        "renewers",
        field("principal_type", STRING),
        field("principal_name", STRING),
    ),
    field("max_lifetime_ms", INT64),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.CREATE_DELEGATION_TOKEN,
    "0-3",
    field("error_code", INT16),
    field("principal_type", STRING),
    field("principal_name", STRING),
    field("token_requester_principal_type", STRING, "3+"),
    field("token_requester_principal_name", STRING, "3+"),
    field("issue_timestamp_ms", INT64),
    field("expiry_timestamp_ms", INT64),
    field("max_timestamp_ms", INT64),
    field("token_id", STRING),
    field("hmac", BYTES),
    field("throttle_time_ms", INT32),
    flexible="2+",
)
