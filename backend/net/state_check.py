"""What a broker does with the ConsistencyState of a request: points 1 to 3 of the proposal's server side. Pure.

    no state, or no token          go on
    another cluster's id           INCONSISTENT_CLUSTER_ID, whatever the API
    token, API reads no metadata   go on
    token <= position              go on
    token > position               wait until the broker is there; give up with STALE_METADATA when the time is over, or
                                   at once when a head that was confirmed after the arrival lies below the token

The position is that of the image which the API reads: for access rules and delegation tokens, which the authorizer and
the token cache answer, of what the broker acts upon, else of what it shows.
"""

from enum import Enum
from typing import Final

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ConsistencyState

STALE_METADATA: Final = 10_000
"""The proposal gives the error no number; this one is private to Tidegate, far above those of Kafka (136 in 4.4)."""

GATED_APIS: Final = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
"""The ten APIs that read the metadata cache."""

EFFECTIVE_APIS: Final = frozenset({ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_DELEGATION_TOKEN})
"""Those of the ten that read what the broker acts upon."""

MESSAGES: Final = {
    int(ErrorCode.INCONSISTENT_CLUSTER_ID): "The ConsistencyState of the request names another cluster.",
    int(ErrorCode.REQUEST_TIMED_OUT): "This broker could not show in time all that was committed before the request.",
    STALE_METADATA: "The metadata of this broker has not reached the token of the request.",
}


class Verdict(Enum):
    """What becomes of a request."""

    GO_ON = "go on"
    WRONG_CLUSTER = "another cluster"
    WAIT = "wait"


def judge(state: ConsistencyState | None, api_key: int, cluster_id: str, offset: int) -> Verdict:
    """Whether a request may be answered by a broker whose position is `offset`."""
    if state is None:
        return Verdict.GO_ON
    if state.cluster_id is not None and state.cluster_id != cluster_id:
        return Verdict.WRONG_CLUSTER
    if api_key in GATED_APIS and state.consistency_token > offset:
        return Verdict.WAIT
    return Verdict.GO_ON
