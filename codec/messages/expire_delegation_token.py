"""ExpireDelegationToken (40): a delegation token expires earlier, or at once when the period is negative."""

from codec.api_keys import ApiKey
from codec.schema import BYTES, INT16, INT32, INT64, field, request, response

REQUEST = request(
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    "0-2",
    field("hmac", BYTES),
    field("expiry_time_period_ms", INT64),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    "0-2",
    field("error_code", INT16),
    field("expiry_timestamp_ms", INT64),
    field("throttle_time_ms", INT32),
    flexible="2+",
)
