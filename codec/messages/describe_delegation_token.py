"""DescribeDelegationToken (41): delegation tokens by owner; the answer carries their HMACs, which are secrets."""

from codec.api_keys import ApiKey
from codec.schema import BYTES, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    "0-3",
    array("owners", field("principal_type", STRING), field("principal_name", STRING), nullable=True),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    "0-3",
    field("error_code", INT16),
    array(
        "tokens",
        field("principal_type", STRING),
        field("principal_name", STRING),
        field("token_requester_principal_type", STRING, "3+"),
        field("token_requester_principal_name", STRING, "3+"),
        field("issue_timestamp", INT64),
        field("expiry_timestamp", INT64),
        field("max_timestamp", INT64),
        field("token_id", STRING),
        field("hmac", BYTES),
        array(
            "renewers",
            field("principal_type", STRING),
            field("principal_name", STRING),
        ),
    ),
    field("throttle_time_ms", INT32),
    flexible="2+",
)
