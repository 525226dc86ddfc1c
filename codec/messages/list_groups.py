"""ListGroups (16): the groups that the broker that answers coordinates, by state (v4) and type (v5)."""

from codec.api_keys import ApiKey
from codec.schema import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    ApiKey.LIST_GROUPS,
    "0-5",
    array("states_filter", STRING, versions="4+"),
    array("types_filter", STRING, versions="5+"),
    flexible="3+",
)

RESPONSE = response(
    ApiKey.LIST_GROUPS,
    "0-5",
    field("throttle_time_ms", INT32, "1+"),
    field("error_code", INT16),
    array(
        "groups",
        field("group_id", STRING),
        field("protocol_type", STRING),
        field("group_state", STRING, "4+"),
        field("group_type", STRING, "5+"),
    ),
    flexible="3+",
)
