"""UnregisterBroker (64): an administrator removes a broker's registration."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, field, request, response

REQUEST = request(
    ApiKey.UNREGISTER_BROKER,
    "0",
    field("broker_id", INT32),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.UNREGISTER_BROKER,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    flexible="0+",
)
