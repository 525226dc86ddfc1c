"""Envelope (58): a client's request, header included, forwarded by a broker to the active controller (KIP-590)."""

from codec.api_keys import ApiKey
from codec.schema import BYTES, INT16, field, request, response

REQUEST = request(
    ApiKey.ENVELOPE,
    "0",
    field("request_data", BYTES),
    field("request_principal", BYTES, nullable=True),
    field("client_host_address", BYTES),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ENVELOPE,
    "0",
    field("response_data", BYTES, nullable=True, default=None),
    field("error_code", INT16),
    flexible="0+",
)
