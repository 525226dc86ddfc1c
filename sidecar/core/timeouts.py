"""What a client gets when its gated read waited `wait_timeout_ms` in vain and `on_timeout` is ``error``.

An error answer where every client family was seen to raise it; otherwise nothing, and the caller closes the connection.
The choice was measured with real clients, see docs/on-timeout.md: an error in Metadata makes running consumers give up
their partitions, in DescribeUserScramCredentials it crashes librdkafka, and in the other APIs that close some client
takes it for an answer. After a close a client asks again by itself or raises a connection error.

A table and a function. Knows no time, connection or routing: `sidecar.core.gate` decides that a read is given up and
`sidecar.core.answers` turns the result into bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, assert_never

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode


class OnError(Enum):
    """How a read that is given up ends. The words of the table in docs/on-timeout.md."""

    ERROR = "error"
    """`ERROR_CODE` at the top of the answer, with `error_message` where the API has one; nothing else in it."""
    CLOSE = "close"
    """No answer; the connection is closed."""


ERROR_CODE: Final = ErrorCode.REQUEST_TIMED_OUT
"""Says what happened, and is retriable: Java raises TimeoutException, kafka-python RequestTimedOutError."""

ON_ERROR: Final[Mapping[int, OnError]] = {
    ApiKey.METADATA: OnError.CLOSE,
    ApiKey.DESCRIBE_ACLS: OnError.CLOSE,
    ApiKey.DESCRIBE_CONFIGS: OnError.CLOSE,
    ApiKey.DESCRIBE_LOG_DIRS: OnError.CLOSE,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: OnError.ERROR,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: OnError.ERROR,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: OnError.CLOSE,
    ApiKey.DESCRIBE_CLUSTER: OnError.ERROR,
    ApiKey.LIST_CONFIG_RESOURCES: OnError.ERROR,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: OnError.CLOSE,
}
"""The gated APIs. The same for every version of an API."""

_BROKERS: Final = 1
"""The endpoint type of DescribeCluster that asks for brokers (KIP-919)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What an answer of our own may say about the cluster, as this client may see it.

    Attributes:
        cluster_id: None while unknown.
        controller_id: -1 while unknown.
        brokers: node id, host, port and rack of each broker, at the sidecar's own addresses.
    """

    cluster_id: str | None
    controller_id: int
    brokers: tuple[tuple[int, str, int, str | None], ...]


def timeout_answer(
    api_key: int, api_version: int, request: Mapping[str, Any], cluster: ClusterFacts, reason: str
) -> dict[str, Any] | None:
    """The body that ends a read which was held in vain.

    Args:
        api_key: of the request. Of an API that is not in `ON_ERROR` nothing is known that its clients would retry.
        api_version: of the request. No answer differs by it: the codec leaves out the fields that a version lacks.
        request: its decoded body.
        cluster: what DescribeCluster says beside the error, so that a client that reads on keeps its brokers.
        reason: a clause without a full stop, "no broker had caught up with the session within 3000 ms".

    Returns:
        The body, for `codec.encode_response`; None: close the connection.
    """
    ending = ON_ERROR.get(api_key, OnError.CLOSE)
    match ending:
        case OnError.CLOSE:
            return None
        case OnError.ERROR:
            body: dict[str, Any] = {"error_code": int(ERROR_CODE), "error_message": f"Tidegate: {reason}; retry"}
            return body | _rest(api_key, request, cluster)
        case _:
            assert_never(ending)


def _rest(api_key: int, request: Mapping[str, Any], cluster: ClusterFacts) -> dict[str, Any]:
    """The fields beside the error: empty, except in DescribeCluster, which may have to list its brokers."""
    if api_key != ApiKey.DESCRIBE_CLUSTER:
        return {}
    endpoint_type = request.get("endpoint_type", _BROKERS)
    return {
        "endpoint_type": endpoint_type,
        "cluster_id": cluster.cluster_id or "",
        "controller_id": cluster.controller_id,
        "brokers": [
            {"broker_id": node_id, "host": host, "port": port, "rack": rack}
            for node_id, host, port, rack in cluster.brokers
        ]
        if endpoint_type == _BROKERS
        else [],
    }
