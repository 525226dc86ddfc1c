"""DescribeConfigs (32): the configuration of topics, brokers, groups and client metrics subscriptions.

v0 says whether a value is the default; later versions say where it comes from and list its synonyms.
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_CONFIGS,
    "0-4",
    array(
        "resources",
        field("resource_type", INT8),
        field("resource_name", STRING),
        array("configuration_keys", STRING, nullable=True),
    ),
    field("include_synonyms", BOOL, "1+"),
    field("include_documentation", BOOL, "3+"),
    flexible="4+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_CONFIGS,
    "0-4",
    field("throttle_time_ms", INT32),
    array(
        "results",
        field("error_code", INT16),
        field("error_message", STRING, nullable=True),
        field("resource_type", INT8),
        field("resource_name", STRING),
        array(
            "configs",
            field("name", STRING),
            field("value", STRING, nullable=True),
            field("read_only", BOOL),
            field("is_default", BOOL, "0"),
            field("config_source", INT8, "1+", default=-1),
            field("is_sensitive", BOOL),
            array(
                "synonyms",
                field("name", STRING),
                field("value", STRING, nullable=True),
                field("source", INT8),
                versions="1+",
            ),
            field("config_type", INT8, "3+"),
            field("documentation", STRING, "3+", nullable=True),
        ),
    ),
    flexible="4+",
)
