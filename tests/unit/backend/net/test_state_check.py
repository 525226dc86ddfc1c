"""Points 1 to 3 of the proposal's server side, case by case."""

import pytest

from backend.net.state_check import EFFECTIVE_APIS, GATED_APIS, MESSAGES, STALE_METADATA, Verdict, judge
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ConsistencyState

CLUSTER = "cluster-a"
OFFSET = 41


@pytest.mark.parametrize(
    ("state", "api_key", "verdict"),
    [
        (None, ApiKey.METADATA, Verdict.GO_ON),
        (ConsistencyState(), ApiKey.METADATA, Verdict.GO_ON),
        (ConsistencyState(cluster_id=CLUSTER), ApiKey.METADATA, Verdict.GO_ON),
        (ConsistencyState(consistency_token=40), ApiKey.METADATA, Verdict.GO_ON),
        (ConsistencyState(consistency_token=41), ApiKey.METADATA, Verdict.GO_ON),
        (ConsistencyState(consistency_token=42), ApiKey.METADATA, Verdict.WAIT),
        (ConsistencyState(cluster_id=CLUSTER, consistency_token=42), ApiKey.DESCRIBE_ACLS, Verdict.WAIT),
        (ConsistencyState(cluster_id=CLUSTER, consistency_token=42), ApiKey.CREATE_TOPICS, Verdict.GO_ON),
        (ConsistencyState(cluster_id=CLUSTER, consistency_token=42), ApiKey.DESCRIBE_QUORUM, Verdict.GO_ON),
        (ConsistencyState(cluster_id="cluster-b"), ApiKey.METADATA, Verdict.WRONG_CLUSTER),
        (ConsistencyState(cluster_id="", consistency_token=42), ApiKey.METADATA, Verdict.WRONG_CLUSTER),
        (ConsistencyState(cluster_id="cluster-b", consistency_token=0), ApiKey.CREATE_TOPICS, Verdict.WRONG_CLUSTER),
        (ConsistencyState(cluster_id="cluster-b"), ApiKey.API_VERSIONS, Verdict.WRONG_CLUSTER),
    ],
)
def test_what_becomes_of_a_request(state: ConsistencyState | None, api_key: int, verdict: Verdict) -> None:
    assert judge(state, api_key, CLUSTER, OFFSET) is verdict


def test_ten_apis_are_gated() -> None:
    assert sorted(GATED_APIS) == [3, 29, 32, 35, 41, 48, 50, 60, 74, 75]
    assert EFFECTIVE_APIS < GATED_APIS


def test_the_private_error_is_none_of_kafkas_and_all_errors_have_a_message() -> None:
    assert max(ErrorCode) * 10 < STALE_METADATA
    assert set(MESSAGES) == {STALE_METADATA, ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.REQUEST_TIMED_OUT}
