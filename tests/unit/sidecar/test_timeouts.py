"""How a gated read that was held in vain ends: every API, every version, and the table that users read."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from codec import decode_response, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.registry import known_versions
from sidecar.core.apis import TRAITS, Kind
from sidecar.core.timeouts import ERROR_CODE, ON_ERROR, ClusterFacts, OnError, timeout_answer

CLUSTER: Final = ClusterFacts(
    cluster_id="4L6g3nShT-eMCtK--X86sw",
    controller_id=2,
    brokers=((1, "127.0.0.1", 19101, None), (2, "127.0.0.1", 19102, "rack-b")),
)
REASON: Final = "no broker had caught up with the session within 3000 ms"
MESSAGE: Final = "Tidegate: no broker had caught up with the session within 3000 ms; retry"
DOC: Final = Path(__file__).parents[3] / "docs" / "on-timeout.md"
DATA: Final = {"tokens", "entries", "config_resources"}
BROKERS, CONTROLLERS = 1, 2


def versions(api_key: int) -> range:
    found = known_versions(api_key)
    assert found is not None
    return found


def cases(ending: OnError) -> list[tuple[int, int]]:
    return [(int(key), v) for key, value in ON_ERROR.items() if value is ending for v in versions(key)]


def seen_by_client(api_key: int, api_version: int, request: dict[str, Any]) -> dict[str, Any]:
    """The answer after a trip over the wire."""
    answer = timeout_answer(api_key, api_version, request, CLUSTER, REASON)
    assert answer is not None
    return decode_response(api_key, api_version, encode_response(api_key, api_version, answer))


def test_exactly_the_gated_reads_have_a_row() -> None:
    assert set(ON_ERROR) == {key for key, traits in TRAITS.items() if traits.kind is Kind.READ}


def test_an_api_that_is_not_gated_is_closed() -> None:
    assert timeout_answer(ApiKey.FETCH, 17, {}, CLUSTER, REASON) is None


@pytest.mark.parametrize(("api_key", "api_version"), cases(OnError.CLOSE))
def test_a_read_whose_error_some_client_misreads_gets_no_answer(api_key: int, api_version: int) -> None:
    assert timeout_answer(api_key, api_version, {}, CLUSTER, REASON) is None


@pytest.mark.parametrize(("api_key", "api_version"), cases(OnError.ERROR))
def test_the_error_arrives_with_its_sentence_and_without_data(api_key: int, api_version: int) -> None:
    seen = seen_by_client(api_key, api_version, {})
    assert seen["error_code"] == ErrorCode.REQUEST_TIMED_OUT
    assert seen.get("error_message", MESSAGE) == MESSAGE
    assert seen["throttle_time_ms"] == 0
    assert [seen[name] for name in DATA if name in seen] in ([], [[]])


@pytest.mark.parametrize("api_key", [ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLUSTER])
def test_the_sentence_stands_wherever_there_is_room_for_it(api_key: int) -> None:
    assert all(seen_by_client(api_key, v, {})["error_message"] == MESSAGE for v in versions(api_key))


def test_the_code_is_one_that_clients_may_retry() -> None:
    assert ERROR_CODE.retriable


@pytest.mark.parametrize("api_version", versions(ApiKey.DESCRIBE_CLUSTER))
def test_describe_cluster_keeps_naming_the_brokers_at_our_ports(api_version: int) -> None:
    seen = seen_by_client(ApiKey.DESCRIBE_CLUSTER, api_version, {"endpoint_type": BROKERS})
    assert (seen["cluster_id"], seen["controller_id"]) == (CLUSTER.cluster_id, 2)
    assert [(b["broker_id"], b["host"], b["port"], b["rack"]) for b in seen["brokers"]] == list(CLUSTER.brokers)


def test_describe_cluster_names_no_broker_as_a_controller() -> None:
    seen = seen_by_client(ApiKey.DESCRIBE_CLUSTER, 2, {"endpoint_type": CONTROLLERS})
    assert (seen["endpoint_type"], seen["brokers"]) == (CONTROLLERS, [])


def test_an_unknown_cluster_id_is_empty_because_the_field_takes_no_null() -> None:
    unknown = ClusterFacts(cluster_id=None, controller_id=-1, brokers=())
    answer = timeout_answer(ApiKey.DESCRIBE_CLUSTER, 0, {}, unknown, REASON)
    assert answer is not None
    assert decode_response(60, 0, encode_response(60, 0, answer))["cluster_id"] == ""


def test_the_table_in_the_documentation_is_the_one_in_the_code() -> None:
    rows = re.findall(r"^\| \w+ (\d+) \| (\d+)(?:-(\d+))? \| (error|close)\b", DOC.read_text(), re.MULTILINE)
    table = {int(key): (int(first), int(last or first), OnError(ending)) for key, first, last, ending in rows}
    assert table == {int(key): (versions(key)[0], versions(key)[-1], ending) for key, ending in ON_ERROR.items()}
