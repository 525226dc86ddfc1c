"""ApiVersions (18): what the peer speaks, and where its metadata image stands.

The response header is v0 in every version (KIP-511), and a peer that does not know the version asked for answers with
the body of v0. On a KRaft broker `finalized_features_epoch` is the offset of its metadata image. v5 names the node and
cluster that the client believes to talk to.
"""

from codec.api_keys import ApiKey
from codec.schema import BOOL, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    ApiKey.API_VERSIONS,
    "0-5",
    field("client_software_name", STRING, "3+"),
    field("client_software_version", STRING, "3+"),
    field("cluster_id", STRING, "5+", nullable=True, default=None),
    field("node_id", INT32, "5+", default=-1),
    flexible="3+",
)

RESPONSE = response(
    ApiKey.API_VERSIONS,
    "0-5",
    field("error_code", INT16),
    array(
        "api_keys",
        field("api_key", INT16),
        field("min_version", INT16),
        field("max_version", INT16),
    ),
    field("throttle_time_ms", INT32, "1+"),
    array(
        "supported_features",
        field("name", STRING),
        field("min_version", INT16),
        field("max_version", INT16),
        versions="3+",
        tag=0,
    ),
    field("finalized_features_epoch", INT64, "3+", tag=1, default=-1),
    array(
        "finalized_features",
        field("name", STRING),
        field("max_version_level", INT16),
        field("min_version_level", INT16),
        versions="3+",
        tag=2,
    ),
    field("zk_migration_ready", BOOL, "3+", tag=3),
    flexible="3+",
)
