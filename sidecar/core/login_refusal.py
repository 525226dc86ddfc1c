"""What a client is told that wants to log in where the sidecar has done so for it (``identity: sidecar``).

As a broker answers on a listener without SASL: ILLEGAL_SASL_STATE.
"""

from typing import Any, Final

from codec import encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header

_REST: Final[dict[int, dict[str, Any]]] = {
    ApiKey.SASL_HANDSHAKE: {"mechanisms": []},
    ApiKey.SASL_AUTHENTICATE: {"error_message": "the sidecar has logged in for its clients", "auth_bytes": b""},
}


def refuse_login(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The answer to a SaslHandshake or SaslAuthenticate request, in a version that the codec knows."""
    header = encode_response_header(ResponseHeader(correlation_id=correlation_id), api_key, api_version)
    body = {"error_code": ErrorCode.ILLEGAL_SASL_STATE, **_REST[api_key]}
    return header + encode_response(api_key, api_version, body)
