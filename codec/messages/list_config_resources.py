"""ListConfigResources (74): which resources have configuration.

Until Kafka 4.1 it was called ListClientMetricsResources; v0 is the same on the wire under both names.
"""

from codec.api_keys import ApiKey
from codec.schema import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.LIST_CONFIG_RESOURCES,
    "0-1",
    array("resource_types", INT8, versions="1+"),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.LIST_CONFIG_RESOURCES,
    "0-1",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    array(
        "config_resources",
        field("resource_name", STRING),
        field("resource_type", INT8, "1+", default=16),
    ),
    flexible="0+",
)
