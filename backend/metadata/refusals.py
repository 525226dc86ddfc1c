"""Where each API puts an error that concerns the whole request.

At the top level where the answer has a place there, else once for every resource that was asked for, in the order of
the request. Metadata below v13 and DescribeTopicPartitions have neither place when a request asks for all topics. They
carry one topic with an empty name and the error, because an empty list would say that there are no topics. Where
nothing was asked for, an empty answer is the right one. Knows no socket and no image.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from codec.api_keys import ApiKey

Body = dict[str, Any]
Refusal = Callable[[int, Mapping[str, Any], int, str | None], Body]
"""API version, request body, error code and message to the body of the answer."""


def refuse(api_key: int, api_version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    """The body that answers the request with an error; fields that its version lacks are ignored by the codec.

    Raises:
        KeyError: This API has no row.
    """
    return REFUSALS[api_key](api_version, request, code, message)


def _error(code: int, message: str | None) -> Body:
    return {"error_code": code, "error_message": message}


def _top_level(**empty: Any) -> Refusal:
    """At the top; `empty` are the fields of an answer that have no default."""
    return lambda version, request, code, message: {**empty, **_error(code, message)}


def _per_item(asked: str, answers: str, *names: str) -> Refusal:
    """One error for each element of the request's array `asked`, with the fields `names` that say which it is."""

    def refusal(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
        items = request[asked] or ()
        return {answers: [{**{name: item[name] for name in names}, **_error(code, message)} for item in items]}

    return refusal


def _metadata(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    if version >= 13:
        return {"error_code": code}
    asked = request["topics"]
    topics: list[Body] = [{"name": "", "error_code": code}]
    if asked is not None and not (version == 0 and not asked):
        topics = [
            {"name": _name_of(version, topic), "topic_id": topic.get("topic_id", bytes(16)), "error_code": code}
            for topic in asked
        ]
    return {"topics": topics}


def _name_of(version: int, topic: Mapping[str, Any]) -> str | None:
    """The name as asked for; topics asked for by id have one in the answer only where it may be null."""
    name: str | None = topic["name"]
    return "" if name is None and version < 12 else name


def _describe_topic_partitions(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    return {"topics": [{"name": name, "error_code": code} for name in [t["name"] for t in request["topics"]] or [""]]}


def _describe_log_dirs(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    return {"error_code": code} if version >= 3 else {"results": [{"error_code": code, "log_dir": ""}]}


def _delete_topics(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    if version >= 6:
        return _per_item("topics", "responses", "name", "topic_id")(version, request, code, message)
    return {"responses": [{"name": name, **_error(code, message)} for name in request["topic_names"]]}


def _alter_user_scram_credentials(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    users = _unique(item["name"] for array in ("deletions", "upsertions") for item in request[array])
    return {"results": [{"user": user, **_error(code, message)} for user in users]}


def _find_coordinator(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
    nowhere = {"node_id": -1, "host": "", "port": -1, **_error(code, message)}
    if version < 4:
        return nowhere
    return {"coordinators": [{"key": key, **nowhere} for key in request["coordinator_keys"]]}


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _by_partition(asked: str, answers: str, name: str, partitions: str, results: str, index: str) -> Refusal:
    """Once for every partition that is asked for, under its topic."""

    def refusal(version: int, request: Mapping[str, Any], code: int, message: str | None) -> Body:
        found = []
        for topic in request[asked] or ():
            indexes = [part["partition_index"] if isinstance(part, Mapping) else part for part in topic[partitions]]
            found.append({name: topic[name], results: [{index: i, **_error(code, message)} for i in indexes]})
        return {**_error(code, message), answers: found}

    return refusal


_CONFIG_RESOURCE: Final = ("resource_type", "resource_name")

REFUSALS: Final[Mapping[int, Refusal]] = {
    ApiKey.METADATA: _metadata,
    ApiKey.DESCRIBE_ACLS: _top_level(),
    ApiKey.DESCRIBE_CONFIGS: _per_item("resources", "results", *_CONFIG_RESOURCE),
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _top_level(),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _top_level(entries=None),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _top_level(),
    ApiKey.DESCRIBE_CLUSTER: _top_level(),
    ApiKey.LIST_CONFIG_RESOURCES: _top_level(),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.CREATE_TOPICS: _per_item("topics", "topics", "name"),
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _per_item("topics", "results", "name"),
    ApiKey.ALTER_CONFIGS: _per_item("resources", "responses", *_CONFIG_RESOURCE),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _per_item("resources", "responses", *_CONFIG_RESOURCE),
    ApiKey.CREATE_ACLS: _per_item("creations", "results"),
    ApiKey.DELETE_ACLS: _per_item("filters", "filter_results"),
    ApiKey.ALTER_CLIENT_QUOTAS: _per_item("entries", "entries", "entity"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    ApiKey.CREATE_DELEGATION_TOKEN: _top_level(
        principal_type="",
        principal_name="",
        token_requester_principal_type="",
        token_requester_principal_name="",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
        token_id="",
        hmac=b"",
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: _top_level(expiry_timestamp_ms=-1),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _top_level(expiry_timestamp_ms=-1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _by_partition(
        "topics", "responses", "name", "partitions", "partitions", "partition_index"
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _top_level(topics=[]),
    ApiKey.ELECT_LEADERS: _by_partition(
        "topic_partitions", "replica_election_results", "topic", "partitions", "partition_result", "partition_id"
    ),
    ApiKey.UPDATE_FEATURES: _top_level(results=[]),
    ApiKey.UNREGISTER_BROKER: _top_level(),
    ApiKey.DESCRIBE_QUORUM: _top_level(),
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.LIST_GROUPS: _top_level(),
    ApiKey.API_VERSIONS: _top_level(),
    ApiKey.SASL_HANDSHAKE: _top_level(mechanisms=[]),
    ApiKey.SASL_AUTHENTICATE: _top_level(auth_bytes=b""),
}
