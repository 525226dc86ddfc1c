"""DeleteTopics (20): deletes topics, by name up to v5, by name or id from v6."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, UUID, array, field, request, response

REQUEST = request(
    ApiKey.DELETE_TOPICS,
    "0-6",
    array("topics", field("name", STRING, nullable=True, default=None), field("topic_id", UUID), versions="6+"),
    array("topic_names", STRING, versions="0-5"),
    field("timeout_ms", INT32),
    flexible="4+",
)

RESPONSE = response(
    ApiKey.DELETE_TOPICS,
    "0-6",
    field("throttle_time_ms", INT32, "1+"),
    array(
        "responses",
        field("name", STRING, nullable="6+"),
        field("topic_id", UUID, "6+"),
        field("error_code", INT16),
        field("error_message", STRING, "5+", nullable=True, default=None),
    ),
    flexible="4+",
)
