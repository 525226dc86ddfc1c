"""CreatePartitions and DeleteTopics."""

from collections.abc import Iterator, Sequence

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import (
    NO_SUCH_ID,
    TIMEOUT_MS,
    TOPIC,
    UUID_ZERO,
    Body,
    Case,
    IdOf,
    names,
)
from tests.support.admin_cases.configs import describe
from tests.support.admin_cases.topics import create, topic
from tests.support.admin_cases.views import ask


def _grow(name: str, *topics: Body, version: int = 3, only: bool = False) -> Case:
    body = {"topics": list(topics), "timeout_ms": TIMEOUT_MS, "validate_only": only}
    return Case(f"create partitions: {name}", ApiKey.CREATE_PARTITIONS, version, body)


def _to(name: str, count: int, *replicas: Sequence[int]) -> Body:
    return {
        "name": name,
        "count": count,
        "assignments": [{"broker_ids": list(r)} for r in replicas] if replicas else None,
    }


def partitions() -> Iterator[Case]:
    """Topics grow."""
    yield _grow("one more", _to("two", 2))
    yield _grow("one more, v0", _to("two", 3), version=0)
    yield _grow("assigned", _to("placed", 4, (2, 1)))
    yield _grow("validate only", _to("two", 30), only=True)
    yield _grow("as many", _to("two", 3))
    yield _grow("fewer", _to("two", 1))
    yield _grow("none", _to("two", 0))
    yield _grow("unknown topic", _to("nobody", 3))
    yield _grow("named twice", _to("two", 5), _to("two", 6), _to("four", 2))
    yield _grow("too many", _to("two", 20000))
    yield _grow("assigned to a stranger", _to("placed", 5, (1, 9)))
    yield _grow("assigned unevenly", _to("placed", 5, (1,)))
    yield _grow("too few assigned", _to("placed", 6, (1, 2)))
    yield _grow("assigned to nobody", _to("placed", 5, ()))
    yield _grow("no topics")
    yield ask("after growing", 12, names("placed", "two", "four"))


def _delete(name: str, *topics: Body) -> Case:
    return Case(f"delete topics: {name}", ApiKey.DELETE_TOPICS, 6, {"topics": list(topics), "timeout_ms": TIMEOUT_MS})


def _by_id(topic: IdOf | bytes, name: str | None = None) -> Body:
    return {"name": name, "topic_id": topic}


def _by_name(*found: str) -> Body:
    return {"topic_names": list(found), "timeout_ms": TIMEOUT_MS}


def deletions() -> Iterator[Case]:
    """Topics go, and some come again."""
    yield _delete("by name", {"name": "five-a"})
    yield _delete("by id", _by_id(IdOf("five-b")))
    yield Case("delete topics, v1", ApiKey.DELETE_TOPICS, 1, _by_name("two"))
    yield Case("delete topics, v5", ApiKey.DELETE_TOPICS, 5, _by_name("four", "nobody"))
    yield Case("delete topics: twice, v4", ApiKey.DELETE_TOPICS, 4, _by_name("set", "set"))
    yield _delete("again", {"name": "five-a"})
    yield _delete("again by id", _by_id(IdOf("five-b")))
    yield _delete("unknown", {"name": "nobody"}, _by_id(NO_SUCH_ID))
    yield _delete("neither", _by_id(UUID_ZERO))
    yield _delete("neither, twice", _by_id(UUID_ZERO), _by_id(UUID_ZERO))
    yield _delete("both", _by_id(IdOf("set"), "set"))
    yield _delete("name twice", {"name": "set"}, {"name": "set"}, {"name": "set"})
    yield _delete("id twice", _by_id(IdOf("set")), _by_id(IdOf("set")))
    yield _delete("by name and by id", {"name": "set"}, _by_id(IdOf("set")))
    yield _delete("by name and twice by id", {"name": "set"}, _by_id(IdOf("set")), _by_id(IdOf("set")))
    yield _delete("invalid name", {"name": "a b"}, {"name": ""})
    yield _delete("none")
    yield ask("after deletions", 12, None)
    yield _delete("one of a pair", {"name": "x.y"})
    yield create("the name again", topic("five-a"))
    yield create("collides with the other of the pair", topic("x.y"))
    yield _delete("configured", {"name": "set"})
    yield create("configured again", topic("set"))
    yield describe("nothing left of it", TOPIC, "set", "retention.ms", "cleanup.policy", "preallocate")
