"""BrokerHeartbeat (63): a broker tells the active controller that it lives and how far it has read the log.

v1 adds directories that are offline (KIP-858).
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, INT64, UUID, array, field, request, response

REQUEST = request(
    ApiKey.BROKER_HEARTBEAT,
    "0-2",
    field("broker_id", INT32),
    field("broker_epoch", INT64, default=-1),
    field("current_metadata_offset", INT64),
    field("want_fence", BOOL),
    field("want_shut_down", BOOL),
    array("offline_log_dirs", UUID, versions="1+", tag=0),
    array("cordoned_log_dirs", UUID, versions="2+", nullable=True, tag=1, default=None),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.BROKER_HEARTBEAT,
    "0-2",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("is_caught_up", BOOL),
    field("is_fenced", BOOL, default=True),
    field("should_shut_down", BOOL),
    flexible="0+",
)
