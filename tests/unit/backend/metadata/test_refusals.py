"""Where each API puts an error that concerns the whole request: every API that is offered, in every version of it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from backend.metadata.refusals import REFUSALS, refuse
from backend.net.offers import OFFERS
from backend.net.state_check import GATED_APIS, STALE_METADATA
from codec import decode_request, decode_response, encode_request, encode_response
from codec.api_keys import ApiKey
from codec.registry import first_flexible_version

MESSAGE: Final = "The metadata of this broker is stale."
TOPIC_ID: Final = bytes(range(16))

CONFIG_RESOURCES: Final = {
    "resources": [
        {"resource_type": 2, "resource_name": "orders", "configs": []},
        {"resource_type": 4, "resource_name": "1", "configs": []},
    ]
}
ACL: Final = {"principal": "User:a", "host": "*"}
ENTITY: Final = [{"entity_type": "user", "entity_name": "alice"}]
REQUESTS: Final[Mapping[int, Mapping[str, Any]]] = {
    ApiKey.METADATA: {"topics": [{"name": "orders"}, {"name": "bills"}]},
    ApiKey.DESCRIBE_CONFIGS: CONFIG_RESOURCES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": [{"name": "orders"}, {"name": "bills"}]},
    ApiKey.CREATE_TOPICS: {"topics": [{"name": "orders", "num_partitions": 1, "replication_factor": 1}]},
    ApiKey.DELETE_TOPICS: {"topic_names": ["orders"], "topics": [{"name": "orders"}, {"topic_id": TOPIC_ID}]},
    ApiKey.CREATE_PARTITIONS: {"topics": [{"name": "orders", "count": 2}]},
    ApiKey.ALTER_CONFIGS: CONFIG_RESOURCES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: CONFIG_RESOURCES,
    ApiKey.CREATE_ACLS: {"creations": [ACL, ACL]},
    ApiKey.DELETE_ACLS: {"filters": [{}]},
    ApiKey.ALTER_CLIENT_QUOTAS: {"entries": [{"entity": ENTITY}]},
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {
        "deletions": [{"name": "alice", "mechanism": 1}],
        "upsertions": [{"name": "bob", "mechanism": 1}, {"name": "alice", "mechanism": 2}],
    },
    ApiKey.FIND_COORDINATOR: {"key": "g", "coordinator_keys": ["g", "h"]},
    ApiKey.ELECT_LEADERS: {"topic_partitions": [{"topic": "orders", "partitions": [0, 3]}]},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "topics": [{"name": "orders", "partitions": [{"partition_index": 3, "replicas": [1]}]}]
    },
}
"""One request of each API that has to name something; the others go without a field."""

CONFIG_ERRORS: Final = [
    {"resource_type": 2, "resource_name": "orders"},
    {"resource_type": 4, "resource_name": "1"},
]
PER_ITEM: Final[Mapping[int, list[dict[str, Any]]]] = {
    ApiKey.METADATA: [{"name": "orders"}, {"name": "bills"}],
    ApiKey.DESCRIBE_CONFIGS: CONFIG_ERRORS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: [{"name": "orders"}, {"name": "bills"}],
    ApiKey.CREATE_TOPICS: [{"name": "orders"}],
    ApiKey.CREATE_PARTITIONS: [{"name": "orders"}],
    ApiKey.ALTER_CONFIGS: CONFIG_ERRORS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: CONFIG_ERRORS,
    ApiKey.CREATE_ACLS: [{}, {}],
    ApiKey.DELETE_ACLS: [{}],
    ApiKey.ALTER_CLIENT_QUOTAS: [{"entity": ENTITY}],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: [{"user": "alice"}, {"user": "bob"}],
}
"""The elements of the answer that carry the error, in all versions without a place at the top."""


def expected(api_key: int, api_version: int) -> list[dict[str, Any]]:
    if api_key == ApiKey.METADATA and api_version >= 13:
        return [{}]
    if api_key == ApiKey.DELETE_TOPICS:
        names: list[dict[str, Any]] = [{"name": "orders"}, {"name": None, "topic_id": TOPIC_ID}]
        return names if api_version >= 6 else names[:1]
    if api_key == ApiKey.ELECT_LEADERS and api_version == 0:
        return [{"partition_id": 0}, {"partition_id": 3}]
    if api_key == ApiKey.FIND_COORDINATOR:
        return [{"key": "g", "node_id": -1}, {"key": "h", "node_id": -1}] if api_version >= 4 else [{"node_id": -1}]
    return PER_ITEM.get(api_key, [{}])


def carriers(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of an answer that have an error code: its top, or else the elements of its arrays, however deep."""
    if "error_code" in body:
        yield body
        return
    for value in body.values():
        if isinstance(value, list):
            for element in value:
                yield from carriers(element)


CASES: Final = [(key, version) for key, offer in OFFERS.items() for version in range(offer.first, offer.last + 1)]


@pytest.mark.parametrize(("api_key", "api_version"), CASES, ids=[f"{ApiKey(k).name}-v{v}" for k, v in CASES])
def test_the_error_stands_where_the_api_puts_errors(api_key: int, api_version: int) -> None:
    sent = encode_request(api_key, api_version, REQUESTS.get(api_key, {}))
    request = decode_request(api_key, api_version, sent)
    answer = encode_response(api_key, api_version, refuse(api_key, api_version, request, STALE_METADATA, MESSAGE))
    body = decode_response(api_key, api_version, answer)
    found = list(carriers(body))
    wanted = expected(api_key, api_version)
    assert [part["error_code"] for part in found] == [STALE_METADATA] * len(wanted)
    for part, fields in zip(found, wanted, strict=True):
        assert {name: part[name] for name in fields} == fields
        assert part.get("error_message", MESSAGE) == MESSAGE


def test_a_move_that_is_refused_is_refused_for_each_partition_too() -> None:
    request = REQUESTS[ApiKey.ALTER_PARTITION_REASSIGNMENTS]
    body = refuse(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request, STALE_METADATA, MESSAGE)
    error = {"error_code": STALE_METADATA, "error_message": MESSAGE}
    assert body["responses"] == [{"name": "orders", "partitions": [{"partition_index": 3, **error}]}]


def test_every_api_that_is_offered_can_refuse() -> None:
    assert REFUSALS.keys() == OFFERS.keys()
    assert REFUSALS.keys() >= GATED_APIS


@pytest.mark.parametrize("api_version", range(14))
def test_metadata_of_all_topics_never_looks_like_a_cluster_without_topics(api_version: int) -> None:
    request: dict[str, Any] = {"topics": [] if api_version == 0 else None}
    body = refuse(ApiKey.METADATA, api_version, request, STALE_METADATA, MESSAGE)
    answer = decode_response(ApiKey.METADATA, api_version, encode_response(ApiKey.METADATA, api_version, body))
    assert answer.get("error_code") == STALE_METADATA or [
        (topic["name"], topic["error_code"]) for topic in answer["topics"]
    ] == [("", STALE_METADATA)]


def test_metadata_of_no_topic_has_nothing_to_refuse_below_v13() -> None:
    assert refuse(ApiKey.METADATA, 12, {"topics": []}, STALE_METADATA, MESSAGE) == {"topics": []}


@pytest.mark.parametrize(("api_version", "name"), [(10, ""), (11, ""), (12, None)])
def test_metadata_by_id_is_refused_by_id(api_version: int, name: str | None) -> None:
    request = {"topics": [{"topic_id": TOPIC_ID, "name": None}]}
    body = refuse(ApiKey.METADATA, api_version, request, STALE_METADATA, MESSAGE)
    (topic,) = decode_response(ApiKey.METADATA, api_version, encode_response(ApiKey.METADATA, api_version, body))[
        "topics"
    ]
    assert (topic["topic_id"], topic["name"], topic["error_code"]) == (TOPIC_ID, name, STALE_METADATA)


def test_all_topic_partitions_never_look_like_none() -> None:
    body = refuse(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": []}, STALE_METADATA, MESSAGE)
    assert [(topic["name"], topic["error_code"]) for topic in body["topics"]] == [("", STALE_METADATA)]


def test_log_dirs_are_refused_in_a_row_before_there_was_a_top_level_code() -> None:
    body = refuse(ApiKey.DESCRIBE_LOG_DIRS, 2, {"topics": None}, STALE_METADATA, MESSAGE)
    assert body == {"results": [{"error_code": STALE_METADATA, "log_dir": ""}]}


def test_quotas_that_are_refused_are_null_as_kafka_has_them() -> None:
    body = refuse(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": []}, STALE_METADATA, MESSAGE)
    assert body["entries"] is None


def test_only_flexible_versions_can_ask_for_a_token() -> None:
    inflexible = {api_key for api_key, offer in OFFERS.items() if offer.last < first_flexible_version(api_key)}
    assert inflexible == {ApiKey.SASL_HANDSHAKE}
