"""UpdateFeatures (57): finalize a level for features of the cluster (KIP-584).

v1 says how a downgrade may lose data (KIP-778), v2 no longer answers for each feature.
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.UPDATE_FEATURES,
    "0-2",
    field("timeout_ms", INT32, default=60000),
    array(
        "feature_updates",
        field("feature", STRING),
        field("max_version_level", INT16),
        field("allow_downgrade", BOOL, "0"),
        field("upgrade_type", INT8, "1+", default=1),
    ),
    field("validate_only", BOOL, "1+"),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.UPDATE_FEATURES,
    "0-2",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True),
    array(
        "results",
        field("feature", STRING),
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        versions="0-1",
    ),
    flexible="0+",
)
