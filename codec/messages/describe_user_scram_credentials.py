"""DescribeUserScramCredentials (50): which SCRAM mechanisms a user has, and their iterations (KIP-554)."""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    "0",
    array("users", field("name", STRING), nullable=True),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    array(
        "results",
        field("user", STRING),
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        array(
            "credential_infos",
            field("mechanism", INT8),
            field("iterations", INT32),
        ),
    ),
    flexible="0+",
)
