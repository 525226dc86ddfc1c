"""One script of admin requests, good and bad, to be run against any cluster of three fresh brokers, 1 to 3.

Each case is one request of one version, in order: later cases meet what earlier ones made. `run` sends them through
whatever `ask` is, a socket or a function, and returns the answers made comparable: ids become the topics' names,
addresses and times go, lists without an order of their own are sorted. Knows Kafka's protocol, neither Kafka nor ours.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Final

from codec.api_keys import ApiKey
from tests.support.admin_cases import access, changes, cluster, configs, moves, topics, views
from tests.support.admin_cases.case import UUID_ZERO, Case, IdOf

Body = dict[str, Any]
Ask = Callable[[int, int, Body], Body | None]
"""From API key, version and body to the decoded answer, or None when the peer closed the connection."""

WRITES: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
    }
)


def run(ask: Ask, settle: Callable[[], None], only: Container[str] | None = None) -> dict[str, Any]:
    """All cases in order; name of the case to its answer, made comparable.

    Args:
        ask: Sends one request to broker 1.
        settle: Returns when that broker has, and acts upon, all that was written.
        only: The names of the cases to run; None for all.
    """
    ids: dict[str, bytes] = {}
    answers: dict[str, Any] = {}
    written = False
    for case in cases():
        if only is not None and case.name not in only:
            continue
        if written and case.api_key not in WRITES:
            settle()
        written = case.api_key in WRITES
        answer = ask(case.api_key, case.api_version, _with_ids(case.body, ids))
        if answer is not None:
            _learn_ids(answer, ids)
        assert case.name not in answers, case.name
        answers[case.name] = comparable(answer, ids)
    return answers


def comparable(value: Any, ids: Mapping[str, bytes]) -> Any:
    """An answer without what differs from cluster to cluster."""
    names = {topic_id: f"id of {name}" for name, topic_id in ids.items()}
    return _comparable(value, "", names)


def _comparable(value: Any, field: str, names: Mapping[bytes, str]) -> Any:
    match value:
        case dict():
            return _comparable_struct(value, names)
        case list() if field in _ORDERED:
            return [_comparable(part, "", names) for part in value]
        case list():
            return sorted((_comparable(part, "", names) for part in value), key=repr)
        case bytes():
            return "zero" if value == UUID_ZERO else names.get(value, "an id")
        case str() if _CONTROLLER.search(value):
            return _CONTROLLER.sub("Local controller N", value)
        case _ if field in _LOCAL:
            return f"some {field}"
        case _:
            return value


def _comparable_struct(value: Mapping[str, Any], names: Mapping[bytes, str]) -> dict[str, Any]:
    shown = dict(value)
    if "port" in shown:
        shown |= {"host": "some host", "port": "some port"}
    if "partitions" in shown and shown.get("name") not in ASSIGNED:
        shown["partitions"] = [_without_placement(partition) for partition in shown["partitions"]]
    return {name: _comparable(part, name, names) for name, part in sorted(shown.items())}


def _without_placement(partition: Mapping[str, Any]) -> dict[str, Any]:
    """Where a broker chose at random, only how many there are can be compared."""
    shown = dict(partition)
    for field in ("replica_nodes", "isr_nodes"):
        if field in shown:
            shown[field] = f"{len(shown[field])} brokers"
    if "leader_id" in shown:
        shown["leader_id"] = "the first replica" if partition["leader_id"] == partition["replica_nodes"][0] else None
    return shown


ASSIGNED: Final = frozenset({"placed", "moved", "led"})
"""The topics whose replicas the script itself assigns."""
_ORDERED: Final = frozenset({"synonyms", "replica_nodes"})
_CONTROLLER: Final = re.compile("Local controller [0-9]+")
_LOCAL: Final = frozenset({"throttle_time_ms", "cluster_id", "controller_id", "log_dir", "total_bytes", "usable_bytes"})


def _with_ids(value: Any, ids: Mapping[str, bytes]) -> Any:
    match value:
        case dict():
            return {name: _with_ids(part, ids) for name, part in value.items()}
        case list():
            return [_with_ids(part, ids) for part in value]
        case IdOf():
            return ids[value.topic]
        case _:
            return value


def _learn_ids(answer: Mapping[str, Any], ids: dict[str, bytes]) -> None:
    topics = answer.get("topics", [])
    for topic in topics if isinstance(topics, list) else []:
        if topic.get("name") and topic.get("topic_id", UUID_ZERO) != UUID_ZERO:
            ids[topic["name"]] = topic["topic_id"]


def cases() -> Iterator[Case]:
    """The script."""
    yield from topics.topics()
    yield from views.metadata()
    yield from changes.partitions()
    yield from moves.reassignments()
    yield from moves.elections()
    yield from moves.features()
    yield from moves.registrations()
    yield from configs.topic_configs()
    yield from configs.configs_in_full()
    yield from configs.other_configs()
    yield from access.acls()
    yield from access.quotas()
    yield from access.scram()
    yield from cluster.cluster()
    yield from changes.deletions()
    yield from cluster.coordinators()
    yield from moves.departures()
