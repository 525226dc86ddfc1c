"""SaslHandshake (17): agrees on a mechanism. After v0 raw tokens follow, after v1 SaslAuthenticate requests."""

from codec.api_keys import ApiKey
from codec.schema import INT16, STRING, array, field, request, response

REQUEST = request(
    ApiKey.SASL_HANDSHAKE,
    "0-1",
    field("mechanism", STRING),
    flexible=None,
)

RESPONSE = response(
    ApiKey.SASL_HANDSHAKE,
    "0-1",
    field("error_code", INT16),
    array("mechanisms", STRING),
    flexible=None,
)
