"""One script of admin requests, good and bad, to be run against any cluster of three fresh brokers, 1 to 3.

Each case is one request of one version, in order: later cases meet what earlier ones made. `run` sends them through
whatever `ask` is, a socket or a function, and returns the answers made comparable: ids become the topics' names,
addresses and times go, lists without an order of their own are sorted. Knows Kafka's protocol, neither Kafka nor ours.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Final

from tests.support.admin_cases import access, changes, cluster, configs, moves, rights, tokens, topics, views
from tests.support.admin_cases.case import UUID_ZERO, WRITES, Case, HmacOf, IdOf

Body = dict[str, Any]
Ask = Callable[[int, int, Body], Body | None]
"""From API key, version and body to the decoded answer, or None when the peer closed the connection."""
AskAs = Callable[[str | None], Ask]
"""From a user, None for an anonymous client, to how its requests are sent."""


def run(ask_as: AskAs, settle: Callable[[], None], only: Container[str] | None = None) -> dict[str, Any]:
    """All cases in order; name of the case to its answer, made comparable.

    Args:
        ask_as: Sends one request of that user, or of an anonymous client, to broker 1.
        settle: Returns when that broker has, and acts upon, all that was written.
        only: The names of the cases to run; None for all.
    """
    ids: dict[str, bytes] = {}
    hmacs: dict[str, bytes] = {}
    answers: dict[str, Any] = {}
    written = False
    for case in cases():
        if only is not None and case.name not in only:
            continue
        if written and case.api_key not in WRITES:
            settle()
        written = case.api_key in WRITES
        answer = ask_as(case.user)(case.api_key, case.api_version, _filled(case.body, ids, hmacs))
        if answer is not None:
            _learn_ids(answer, ids)
            hmacs[case.name] = answer.get("hmac", b"")
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
        case b"":
            return "nothing"
        case bytes():
            return "zero" if value == UUID_ZERO else names.get(value, "an id")
        case int() if "timestamp" in field and value > 0:
            return "a time"
        case _ if field in _LOCAL:
            return f"some {field}"
        case str():
            return _REQUEST.sub("Request", _CONTROLLER.sub("Local controller N", value))
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
_REQUEST: Final = re.compile(r"Request Request\(.*(?= needs)")
_LOCAL: Final = frozenset(
    {"throttle_time_ms", "token_id", "cluster_id", "controller_id", "log_dir", "total_bytes", "usable_bytes"}
)


def _filled(value: Any, ids: Mapping[str, bytes], hmacs: Mapping[str, bytes]) -> Any:
    match value:
        case dict():
            return {name: _filled(part, ids, hmacs) for name, part in value.items()}
        case list():
            return [_filled(part, ids, hmacs) for part in value]
        case HmacOf():
            return hmacs[value.case]
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
    yield from tokens.tokens()
    yield from rights.rights()
    yield from changes.deletions()
    yield from cluster.coordinators()
    yield from moves.departures()
