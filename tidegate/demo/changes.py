"""What the workload changes: for each change the request that makes it, the read that must show it, and how to tell.

Pure. Every request has one fixed, flexible version that Kafka 3.9 to 4.4 speak.

    topic created     CreateTopics             Metadata knows the topic
    config changed    IncrementalAlterConfigs  DescribeConfigs has the new value
    ACL granted       CreateAcls               DescribeAcls lists it
    topic deleted     DeleteTopics             Metadata no longer knows it
    ACL revoked       DeleteAcls               DescribeAcls no longer lists it
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

Body: TypeAlias = Mapping[str, Any]

LIFETIME_CYCLES: Final = 10
"""A topic or ACL is deleted this many cycles after its creation, when a broker that lags little has seen it."""
WRITE_TIMEOUT_MS: Final = 10_000

_TOPIC, _LITERAL, _ALLOW, _READ, _SET = 2, 3, 3, 3, 0
_PRINCIPAL, _ANY_HOST = "User:demo", "*"
_CONFIG: Final = "retention.ms"


@final
class Seen(enum.Enum):
    """What a read shows of the change that was acknowledged before it was sent."""

    FRESH = "fresh"
    STALE = "stale"
    FAILED = "failed"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, without header."""

    api_key: ApiKey
    api_version: int
    body: Body


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A write and the read that must show it.

    Attributes:
        write_errors: the error codes in the answer to the write.
        judge: what an answer to the read shows.
    """

    write: Request
    write_errors: Callable[[Body], list[int]]
    read: Request
    judge: Callable[[Body], Seen]


def changes_of_cycle(prefix: str, cycle: int) -> list[Change]:
    """The changes of one cycle, in order.

    Args:
        prefix: begins every name, so that workers do not meet.
        cycle: counted from 0; the first ones delete nothing.
    """
    new, old = f"{prefix}-{cycle}", f"{prefix}-{cycle - LIFETIME_CYCLES}"
    changes = [topic_created(new), config_changed(prefix, str(1_000_000 + cycle)), acl_granted(new)]
    if cycle >= LIFETIME_CYCLES:
        changes += [topic_deleted(old), acl_revoked(old)]
    return changes


def topic_created(name: str) -> Change:
    """A new topic of one partition."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return Change(
        write=Request(
            api_key=ApiKey.CREATE_TOPICS,
            api_version=7,
            body={"topics": [topic], "timeout_ms": WRITE_TIMEOUT_MS, "validate_only": False},
        ),
        write_errors=lambda answer: [each["error_code"] for each in answer["topics"]],
        read=_metadata(name),
        judge=lambda answer: _topic_seen(answer, wanted=True),
    )


def topic_deleted(name: str) -> Change:
    """A topic that is no more."""
    return Change(
        write=Request(
            api_key=ApiKey.DELETE_TOPICS,
            api_version=5,
            body={"topic_names": [name], "timeout_ms": WRITE_TIMEOUT_MS},
        ),
        write_errors=lambda answer: [each["error_code"] for each in answer["responses"]],
        read=_metadata(name),
        judge=lambda answer: _topic_seen(answer, wanted=False),
    )


def config_changed(topic: str, value: str) -> Change:
    """Another retention time of a topic that is there already."""

    def judge(answer: Body) -> Seen:
        (result,) = answer["results"]
        if result["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return Seen.STALE
        if result["error_code"]:
            return Seen.FAILED
        return Seen.FRESH if any(each["value"] == value for each in result["configs"]) else Seen.STALE

    resource = {"resource_type": _TOPIC, "resource_name": topic}
    return Change(
        write=Request(
            api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
            api_version=1,
            body={
                "resources": [
                    {**resource, "configs": [{"name": _CONFIG, "config_operation": _SET, "value": value}]},
                ],
                "validate_only": False,
            },
        ),
        write_errors=lambda answer: [each["error_code"] for each in answer["responses"]],
        read=Request(
            api_key=ApiKey.DESCRIBE_CONFIGS,
            api_version=4,
            body={
                "resources": [{**resource, "configuration_keys": [_CONFIG]}],
                "include_synonyms": False,
                "include_documentation": False,
            },
        ),
        judge=judge,
    )


def acl_granted(topic: str) -> Change:
    """A permission to read a topic."""
    creation = {
        "resource_type": _TOPIC,
        "resource_name": topic,
        "resource_pattern_type": _LITERAL,
        "principal": _PRINCIPAL,
        "host": _ANY_HOST,
        "operation": _READ,
        "permission_type": _ALLOW,
    }
    return Change(
        write=Request(api_key=ApiKey.CREATE_ACLS, api_version=3, body={"creations": [creation]}),
        write_errors=lambda answer: [each["error_code"] for each in answer["results"]],
        read=_describe_acls(topic),
        judge=lambda answer: _acl_seen(answer, wanted=True),
    )


def acl_revoked(topic: str) -> Change:
    """The end of such a permission."""
    return Change(
        write=Request(api_key=ApiKey.DELETE_ACLS, api_version=3, body={"filters": [_acl_filter(topic)]}),
        write_errors=lambda answer: [each["error_code"] for each in answer["filter_results"]],
        read=_describe_acls(topic),
        judge=lambda answer: _acl_seen(answer, wanted=False),
    )


def _metadata(topic: str) -> Request:
    return Request(
        api_key=ApiKey.METADATA,
        api_version=12,
        body={
            "topics": [{"topic_id": bytes(16), "name": topic}],
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        },
    )


def _topic_seen(answer: Body, *, wanted: bool) -> Seen:
    (topic,) = answer["topics"]
    match topic["error_code"]:
        case ErrorCode.NONE:
            there = True
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            there = False
        case _:
            return Seen.FAILED
    return Seen.FRESH if there == wanted else Seen.STALE


def _describe_acls(topic: str) -> Request:
    return Request(api_key=ApiKey.DESCRIBE_ACLS, api_version=3, body=_acl_filter(topic))


def _acl_filter(topic: str) -> Body:
    return {
        "resource_type_filter": _TOPIC,
        "resource_name_filter": topic,
        "pattern_type_filter": _LITERAL,
        "principal_filter": _PRINCIPAL,
        "host_filter": _ANY_HOST,
        "operation": _READ,
        "permission_type": _ALLOW,
    }


def _acl_seen(answer: Body, *, wanted: bool) -> Seen:
    if answer["error_code"]:
        return Seen.FAILED
    there = bool(answer["resources"])
    return Seen.FRESH if there == wanted else Seen.STALE
