"""AlterUserScramCredentials (51): sets and removes SCRAM credentials (KIP-554); the request carries secrets."""

from codec.api_keys import ApiKey
from codec.schema import BYTES, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    "0",
    array(
        "deletions",
        field("name", STRING),
        field("mechanism", INT8),
    ),
    array(
        "upsertions",
        field("name", STRING),
        field("mechanism", INT8),
        field("iterations", INT32),
        field("salt", BYTES),
        field("salted_password", BYTES),
    ),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    "0",
    field("throttle_time_ms", INT32),
    array(
        "results",
        field("user", STRING),
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
    ),
    flexible="0+",
)
