"""AllocateProducerIds (67): a broker gets a block of producer ids from the active controller (KIP-730)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, INT64, field, request, response

REQUEST = request(
    ApiKey.ALLOCATE_PRODUCER_IDS,
    "0",
    field("broker_id", INT32),
    field("broker_epoch", INT64, default=-1),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.ALLOCATE_PRODUCER_IDS,
    "0",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("producer_id_start", INT64),
    field("producer_id_len", INT32),
    flexible="0+",
)
