"""The demo's changes: requests that the tables can encode, and judges that tell fresh from stale from failed."""

from typing import Any

import pytest

from codec import decode_request, encode_request
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from tidegate.demo import changes
from tidegate.demo.changes import LIFETIME_CYCLES, Change, Seen

ALL = {
    "topic created": changes.topic_created("t"),
    "topic deleted": changes.topic_deleted("t"),
    "config changed": changes.config_changed("t", "7"),
    "ACL granted": changes.acl_granted("t"),
    "ACL revoked": changes.acl_revoked("t"),
}
UNKNOWN, DENIED = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def topics(error_code: int) -> dict[str, Any]:
    return {"topics": [{"error_code": error_code}]}


def configs(error_code: int, value: str = "7") -> dict[str, Any]:
    return {"results": [{"error_code": error_code, "configs": [{"value": value}]}]}


def acls(error_code: int, *resources: str) -> dict[str, Any]:
    return {"error_code": error_code, "resources": resources}


@pytest.mark.parametrize(
    ("name", "answer", "seen"),
    [
        ("topic created", topics(0), Seen.FRESH),
        ("topic created", topics(UNKNOWN), Seen.STALE),
        ("topic created", topics(DENIED), Seen.FAILED),
        ("topic deleted", topics(0), Seen.STALE),
        ("topic deleted", topics(UNKNOWN), Seen.FRESH),
        ("topic deleted", topics(DENIED), Seen.FAILED),
        ("config changed", configs(0), Seen.FRESH),
        ("config changed", configs(0, "6"), Seen.STALE),
        ("config changed", configs(UNKNOWN), Seen.STALE),
        ("config changed", configs(DENIED), Seen.FAILED),
        ("ACL granted", acls(0, "t"), Seen.FRESH),
        ("ACL granted", acls(0), Seen.STALE),
        ("ACL granted", acls(DENIED), Seen.FAILED),
        ("ACL revoked", acls(0, "t"), Seen.STALE),
        ("ACL revoked", acls(0), Seen.FRESH),
        ("ACL revoked", acls(DENIED), Seen.FAILED),
    ],
)
def test_an_answer_is_judged_by_what_it_shows(name: str, answer: dict[str, Any], seen: Seen) -> None:
    assert ALL[name].judge(answer) is seen


@pytest.mark.parametrize("change", ALL.values(), ids=ALL)
def test_requests_say_all_that_their_version_has(change: Change) -> None:
    for request in (change.write, change.read):
        encoded = encode_request(request.api_key, request.api_version, request.body)
        decoded = decode_request(request.api_key, request.api_version, encoded)
        assert decoded.keys() == request.body.keys()


def test_a_cycle_deletes_what_an_earlier_one_created() -> None:
    first = changes.changes_of_cycle("w", 0)
    later = changes.changes_of_cycle("w", LIFETIME_CYCLES)
    assert [change.write.api_key for change in later] == [
        ApiKey.CREATE_TOPICS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_ACLS,
    ]
    assert [change.write.api_key for change in first] == [change.write.api_key for change in later[:3]]
    assert first[0].write.body["topics"][0]["name"] == later[3].write.body["topic_names"][0]
    assert (
        first[2].write.body["creations"][0]["resource_name"]
        == later[4].write.body["filters"][0]["resource_name_filter"]
    )


def test_the_errors_of_a_write_are_found_wherever_its_api_puts_them() -> None:
    places = {
        "topic created": "topics",
        "topic deleted": "responses",
        "config changed": "responses",
        "ACL granted": "results",
        "ACL revoked": "filter_results",
    }
    for name, place in places.items():
        assert ALL[name].write_errors({place: [{"error_code": 0}, {"error_code": 5}]}) == [0, 5]
