"""BrokerRegistration (62): a broker process announces itself to the active controller and gets its epoch.

v1 is for migration from ZooKeeper, v2 adds directory ids (KIP-858), v3 the epoch before a clean shutdown (KIP-966), v4
features from version 0 on.
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    ApiKey.BROKER_REGISTRATION,
    "0-4",
    field("broker_id", INT32),
    field("cluster_id", STRING),
    field("incarnation_id", UUID),
    array(
        "listeners",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
        field("security_protocol", INT16),
    ),
    array(
        "features",
        field("name", STRING),
        field("min_supported_version", INT16),
        field("max_supported_version", INT16),
    ),
    field("rack", STRING, nullable=True),
    field("is_migrating_zk_broker", BOOL, "1+"),
    array("log_dirs", UUID, versions="2+"),
    field("previous_broker_epoch", INT64, "3+", default=-1),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.BROKER_REGISTRATION,
    "0-4",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("broker_epoch", INT64, default=-1),
    flexible="0+",
)
