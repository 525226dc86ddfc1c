"""DescribeCluster (60): brokers or, with endpoint type 2 (v1), controllers; v2 may include fenced brokers."""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.DESCRIBE_CLUSTER,
    "0-2",
    field("include_cluster_authorized_operations", BOOL),
    field("endpoint_type", INT8, "1+", default=1),
    field("include_fenced_brokers", BOOL, "2+"),
    flexible="0+",
)

RESPONSE = response(
    ApiKey.DESCRIBE_CLUSTER,
    "0-2",
    field("throttle_time_ms", INT32),
    field("error_code", INT16),
    field("error_message", STRING, nullable=True, default=None),
    field("endpoint_type", INT8, "1+", default=1),
    field("cluster_id", STRING),
    field("controller_id", INT32, default=-1),
    array(
        "brokers",
        field("broker_id", INT32),
        field("host", STRING),
        field("port", INT32),
        field("rack", STRING, nullable=True, default=None),
        field("is_fenced", BOOL, "2+"),
    ),
    field("cluster_authorized_operations", INT32, default=-2147483648),
    flexible="0+",
)
