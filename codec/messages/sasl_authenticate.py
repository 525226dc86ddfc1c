"""SaslAuthenticate (36): one step of a SASL exchange; v1 adds the lifetime of the session (KIP-368)."""

from codec.api_keys import ApiKey
from codec.schema import BYTES, INT16, INT64, STRING, field, request, response

REQUEST = request(
    ApiKey.SASL_AUTHENTICATE,
    "0-2",
    field("auth_bytes", BYTES),
    flexible="2+",
)

RESPONSE = response(
    ApiKey.SASL_AUTHENTICATE,
    "0-2",
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    field("auth_bytes", BYTES),
    field("session_lifetime_ms", INT64, "1+"),
    flexible="2+",
)
