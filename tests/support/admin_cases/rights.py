"""What bob may do, who is no super user: nothing first, then one thing after the other."""

from collections.abc import Iterator
from typing import Any, Final

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import NO_SUCH_ID, TIMEOUT_MS, WRITES, Body, Case, IdOf, names
from tests.support.admin_cases.topics import topic

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER = range(2, 8)
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS = range(2, 12)
CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14
_OPERATIONS: Final = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
_ANY: Final = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


def _rule(*rules: tuple[int, str, int], pattern: int = LITERAL, permission: int = ALLOW, **more: Any) -> Case:
    creations = [
        {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": pattern,
            "principal": "User:bob",
            "host": "*",
            "operation": operation,
            "permission_type": permission,
            **more,
        }
        for kind, name, operation in rules
    ]
    words = "allow" if permission == ALLOW else "deny"
    what = ", ".join(f"{kind} {name} {operation}" for kind, name, operation in rules)
    name = f"{words} bob: {what}, {pattern} {' '.join(map(str, more.values()))}"
    return Case(name, ApiKey.CREATE_ACLS, 3, {"creations": creations})


def _all_apis(when: str) -> list[Case]:
    """Each API once, as bob; reads first, so that the broker has to catch up once."""
    return sorted(_each_api(when), key=lambda case: case.api_key in WRITES)


def _each_api(when: str) -> Iterator[Case]:

    def as_bob(name: str, api_key: ApiKey, version: int, body: Body) -> Case:
        return Case(f"bob, {when}: {name}", api_key, version, body, "bob")

    asked = names("mine-a", "yours", "mine-none", "a b")
    yield as_bob("metadata, all", ApiKey.METADATA, 12, {"topics": None, **_OPERATIONS})
    yield as_bob("metadata, some", ApiKey.METADATA, 9, {"topics": asked, **_OPERATIONS})
    yield as_bob("metadata, v0", ApiKey.METADATA, 0, {"topics": asked})
    by_id = [{"topic_id": of, "name": None} for of in (IdOf("mine-a"), IdOf("yours"), NO_SUCH_ID)]
    yield as_bob("metadata, by id", ApiKey.METADATA, 12, {"topics": by_id, **_OPERATIONS})
    pages: Body = {"response_partition_limit": 100, "cursor": None}
    yield as_bob("partitions", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": asked, **pages})
    yield as_bob("partitions, all", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [], **pages})
    yield as_bob("cluster", ApiKey.DESCRIBE_CLUSTER, 1, {"include_cluster_authorized_operations": True})
    new = [topic("mine-new"), topic("yours-new"), topic("yours"), topic("a b")]
    body: Body = {"topics": new, "timeout_ms": TIMEOUT_MS, "validate_only": True}
    yield as_bob("create topics", ApiKey.CREATE_TOPICS, 7, body)
    yield as_bob("create topics, v4", ApiKey.CREATE_TOPICS, 4, body)
    doomed = [{"name": "mine-none"}, {"name": "yours-none"}, {"name": "yours"}, {"topic_id": IdOf("yours")}]
    doomed.append({"topic_id": NO_SUCH_ID})
    yield as_bob("delete topics", ApiKey.DELETE_TOPICS, 6, {"topics": doomed, "timeout_ms": TIMEOUT_MS})
    doomed = [{"topic_id": IdOf("yours-too")}]
    yield as_bob("delete topics by id", ApiKey.DELETE_TOPICS, 6, {"topics": doomed, "timeout_ms": TIMEOUT_MS})
    grown = [{"name": name, "count": 9, "assignments": None} for name in ("mine-a", "yours", "mine-none", "nobody")]
    body = {"topics": grown, "timeout_ms": TIMEOUT_MS, "validate_only": True}
    yield as_bob("create partitions", ApiKey.CREATE_PARTITIONS, 3, body)
    resources = [(2, "mine-a"), (2, "yours"), (2, "nobody"), (4, "1"), (4, ""), (8, "1"), (16, "m"), (32, "g")]
    asked = [{"resource_type": of, "resource_name": name, "configuration_keys": ["x"]} for of, name in resources]
    yield as_bob("describe configs", ApiKey.DESCRIBE_CONFIGS, 4, {"resources": asked})
    resources = [at for at in resources if at[0] != 8]
    change = [{"name": "retention.ms", "value": "60000", "config_operation": 0}]
    asked = [{"resource_type": of, "resource_name": name, "configs": change} for of, name in resources if of == 2]
    yield as_bob("alter topics", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": asked, "validate_only": True})
    yield as_bob("alter topics in full", ApiKey.ALTER_CONFIGS, 2, {"resources": asked, "validate_only": True})
    for kind, name, key, value in (
        (4, "", "log.cleaner.threads", "1"),
        (4, "9", "log.cleaner.threads", "1"),
        (8, "1", "kafka", "INFO"),
        (16, "m", "interval.ms", "1000"),
        (32, "g", "consumer.session.timeout.ms", "45000"),
    ):
        change = [{"name": key, "value": value, "config_operation": 0}]
        asked = [{"resource_type": kind, "resource_name": name, "configs": change}]
        body = {"resources": asked, "validate_only": True}
        yield as_bob(f"alter {kind} {name}", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
    yield as_bob("list resources", ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [16]})
    yield as_bob("list metrics", ApiKey.LIST_CONFIG_RESOURCES, 0, {})
    yield as_bob("describe acls", ApiKey.DESCRIBE_ACLS, 3, {**_ANY, "principal_filter": "User:nobody"})
    nameless = {"resource_type": TOPIC, "resource_name": "", "principal": "User:x", "host": "*", "operation": READ}
    nameless |= {"resource_pattern_type": LITERAL, "permission_type": ALLOW}
    yield as_bob("create acls", ApiKey.CREATE_ACLS, 3, {"creations": [nameless]})
    yield as_bob("delete acls", ApiKey.DELETE_ACLS, 3, {"filters": [{**_ANY, "principal_filter": "User:nobody"}]})
    for version in (1, 3, 4):
        body = {"topics": [{"topic": "nobody", "partitions": [0]}]}
        yield as_bob(f"log dirs, v{version}", ApiKey.DESCRIBE_LOG_DIRS, version, body)
    yield as_bob("quotas", ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": True})
    entry: Body = {"entity": [{"entity_type": "user", "entity_name": "zoe"}]}
    entry["ops"] = [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]
    yield as_bob("alter quotas", ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [entry], "validate_only": True})
    yield as_bob("scram", ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": names("nobody")})
    body = {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []}
    yield as_bob("alter scram", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, body)
    wanted: Body = {"name": "nobody", "partitions": [{"partition_index": 0, "replicas": [1]}]}
    yield as_bob("reassign", ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, {"topics": [wanted]})
    yield as_bob("list reassignments", ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None})
    for version in (0, 1, 2):
        body = {"topic_partitions": [{"topic": "nobody", "partitions": [0]}], "election_type": 0}
        yield as_bob(f"elect, v{version}", ApiKey.ELECT_LEADERS, version, body)
    body = {"feature_updates": [{"feature": "metadata.version", "max_version_level": -1}]}
    yield as_bob("update features", ApiKey.UPDATE_FEATURES, 1, body)
    yield as_bob("unregister", ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 77})
    yield as_bob("groups", ApiKey.LIST_GROUPS, 5, {})
    owner = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    body = {**owner, "renewers": [], "max_lifetime_ms": -1}
    yield as_bob("token for carol", ApiKey.CREATE_DELEGATION_TOKEN, 3, body)
    yield as_bob("tokens of all", ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})


def rights() -> Iterator[Case]:
    """bob may nothing, then a little, then all but what is denied."""
    made = [topic("mine-a"), topic("mine-b"), topic("yours"), topic("yours-too")]
    yield Case("topics of bob and others", ApiKey.CREATE_TOPICS, 7, {"topics": made, "timeout_ms": TIMEOUT_MS})
    owner = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    token: Body = {**owner, "renewers": [], "max_lifetime_ms": -1}
    yield Case("a token of carol's", ApiKey.CREATE_DELEGATION_TOKEN, 3, token, "alice")
    yield from _all_apis("nothing")
    yield _rule((TOPIC, "mine-", ALL), pattern=PREFIXED)
    yield _rule((TOPIC, "yours", READ), (TOPIC, "nobody", WRITE), (GROUP, "g", DESCRIBE_CONFIGS))
    yield _rule((TOPIC, "mine-b", DESCRIBE), permission=DENY)
    yield _rule((TOPIC, "yours-too", DESCRIBE), host="10.1.2.3")
    yield _rule((CLUSTER, "kafka-cluster", DESCRIBE_CONFIGS), (USER, "User:carol", DESCRIBE_TOKENS))
    yield from _all_apis("a little")
    yield _rule((TOPIC, "*", ALTER_CONFIGS), (CLUSTER, "kafka-cluster", ALTER), (CLUSTER, "kafka-cluster", CREATE))
    yield _rule((USER, "User:carol", CREATE_TOKENS), (GROUP, "*", ALTER_CONFIGS))
    yield _rule((TOPIC, "*", DELETE), permission=DENY)
    yield _rule((TOPIC, "yours", DESCRIBE), permission=DENY, principal="User:*")
    yield from _all_apis("more")
    yield _rule((CLUSTER, "kafka-cluster", ALL))
    yield _rule((TOPIC, "*", ALL))
    yield from _all_apis("nearly all")
    everything: Body = {**_ANY, "resource_name_filter": None, "principal_filter": "User:bob", "host_filter": None}
    yield Case("forget the rules of bob", ApiKey.DELETE_ACLS, 3, {"filters": [everything]})
    wild = {**everything, "principal_filter": "User:*"}
    yield Case("forget the rules of everybody", ApiKey.DELETE_ACLS, 3, {"filters": [wild]})
