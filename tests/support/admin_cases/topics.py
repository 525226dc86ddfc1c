"""CreateTopics, good and bad."""

from collections.abc import Iterator, Sequence
from typing import Any

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import (
    TIMEOUT_MS,
    Body,
    Case,
)


def topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> Body:
    """A topic as CreateTopics wants it."""
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


def assigned(name: str, *replicas: Sequence[int], first: int = 0, **more: Any) -> Body:
    """A topic whose replicas the client places."""
    assignments = [{"partition_index": i, "broker_ids": list(r)} for i, r in enumerate(replicas, first)]
    return {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments, **more}


def _set(**configs: str | None) -> list[Body]:
    return [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]


def create(name: str, *topics: Body, version: int = 7, only: bool = False) -> Case:
    """CreateTopics."""
    body = {"topics": list(topics), "timeout_ms": TIMEOUT_MS, "validate_only": only}
    return Case(f"create topics: {name}", ApiKey.CREATE_TOPICS, version, body)


def topics() -> Iterator[Case]:
    """Topics are made, and many are not."""
    yield create("one", topic("orders", 3, 3))
    yield create("defaults", topic("defaults", -1, -1))
    yield create("two at once, v5", topic("five-a", 2, 2), topic("five-b"), version=5)
    yield create("v2 says no more than the error", topic("two"), version=2)
    yield create("v4 with defaults", topic("four", -1, -1), version=4)
    yield create("with configuration", topic("set", configs=_set(retention_ms="60000", cleanup_policy="compact")))
    yield create("a key twice: the last counts", topic("twice", configs=[*_set(flush_ms="1"), *_set(flush_ms="2")]))
    yield create("assigned", assigned("placed", (1, 2), (2, 3), (3, 1)))
    yield create("validate only", topic("ghost", 2, 2), only=True)
    yield create("validate only and bad", topic("ghost", 0), only=True)
    yield create("exists", topic("orders"))
    yield create("one exists, one is new", topic("orders"), topic("new"))
    yield create("named twice", topic("dup"), topic("dup"), topic("single"))
    yield create("named twice, v2", topic("dup"), topic("dup"), version=2)
    yield create("no topics")
    yield create("dots and underscores", topic("a.b_c"))
    yield create("collides", topic("a_b.c"))
    yield create("alike in one request", topic("x.y"), topic("x_y"))
    for fault, wrong in (
        ("empty name", topic("")),
        ("name is a dot", topic(".")),
        ("name is two dots", topic("..")),
        ("name too long", topic("n" * 250)),
        ("name with a space", topic("a b")),
        ("name with a slash", topic("a/b")),
        ("name not ASCII", topic("größe")),
        ("metadata topic", topic("__cluster_metadata")),
        ("no partitions", topic("bad", 0)),
        ("-2 partitions", topic("bad", -2)),
        ("no replicas", topic("bad", 1, 0)),
        ("-2 replicas", topic("bad", 1, -2)),
        ("more replicas than brokers", topic("bad", 1, 4)),
        ("too many partitions", topic("bad", 10001)),
        ("too many records", topic("bad", 10000)),
        ("unknown key", topic("bad", configs=_set(nope="1"))),
        ("null value", topic("bad", configs=_set(flush_ms=None, retention_ms=None))),
        ("value not a number", topic("bad", configs=_set(retention_ms="soon"))),
        ("value too small", topic("bad", configs=_set(segment_bytes="1"))),
        ("value not a boolean", topic("bad", configs=_set(preallocate="maybe"))),
        ("value not in the list", topic("bad", configs=_set(cleanup_policy="compact,burn"))),
        ("ratio above one", topic("bad", configs=_set(min_cleanable_dirty_ratio="1.5"))),
        ("lags that conflict", topic("bad", configs=_set(min_compaction_lag_ms="6", max_compaction_lag_ms="5"))),
        ("tiered storage", topic("bad", configs=_set(remote_storage_enable="true"))),
        ("bad name and exists not", topic("a b", 0)),
        ("assigned with a count", {**assigned("bad", (1,)), "num_partitions": 1}),
        ("assigned with a factor", {**assigned("bad", (1,)), "replication_factor": 1}),
        ("assigned with both", {**assigned("bad", (1,)), "num_partitions": 1, "replication_factor": 1}),
        ("assigned to nobody", assigned("bad", ())),
        ("assigned to a stranger", assigned("bad", (1, 9))),
        ("assigned twice to one", assigned("bad", (1, 1))),
        ("assigned unevenly", assigned("bad", (1, 2), (3,))),
        ("assigned with a gap", assigned("bad", (1, 2), first=1)),
        (
            "assigned twice",
            {**assigned("bad"), "assignments": [{"partition_index": 0, "broker_ids": [1]}] * 2},
        ),
    ):
        yield create(fault, wrong)
    yield create("many faults", topic("", 0), topic("bad", 0, 0), topic("fine"), topic("bad2", 1, 9))
    yield create("v3 fault", topic("bad", 0), version=3)
