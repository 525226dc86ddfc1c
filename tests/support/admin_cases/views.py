"""Metadata and DescribeTopicPartitions of what `topics` made, in every version."""

from collections.abc import Iterator
from typing import Any, Final

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import (
    NO_SUCH_ID,
    UUID_ZERO,
    Body,
    Case,
    IdOf,
    names,
)


def ask(name: str, version: int, topics: list[Body] | None, **more: Any) -> Case:
    """Metadata, without creating anything."""
    body = {"topics": topics, "allow_auto_topic_creation": False, **more}
    return Case(f"metadata v{version}: {name}", ApiKey.METADATA, version, body)


def metadata() -> Iterator[Case]:
    """Topics are listed and described in every version."""
    for version in range(14):
        everything: list[Body] | None = [] if version == 0 else None
        yield ask("all", version, everything)
        yield ask("one", version, names("placed"))
        yield ask("unknown and known", version, names("nobody", "placed", "nobody"))
        yield ask("invalid name", version, names("a b"))
    yield ask("none", 1, [])
    yield ask("none", 12, [])
    yield ask("internal but not there", 12, names("__consumer_offsets"))
    yield ask("empty name", 9, names(""))
    yield ask("operations", 8, names("placed", "nobody"), **_OPERATIONS)
    yield ask("operations", 10, names("placed"), **_OPERATIONS)
    yield ask("operations", 12, names("placed"), **_OPERATIONS)
    yield ask("by id", 12, [{"topic_id": IdOf("placed"), "name": None}])
    yield ask("by unknown id", 12, [{"topic_id": NO_SUCH_ID, "name": None}])
    yield ask("by id and by name", 13, [{"topic_id": IdOf("placed"), "name": None}, {"name": "orders"}])
    yield ask("by both, which differ", 13, [{"topic_id": IdOf("placed"), "name": "orders"}])
    yield ask(
        "by id twice and unknown",
        13,
        [{"topic_id": IdOf("placed"), "name": None}] * 2 + [{"topic_id": NO_SUCH_ID, "name": None}],
    )
    yield ask("creation allowed", 12, names("nobody"), allow_auto_topic_creation=True)
    yield ask("operations of unknown id", 12, [{"topic_id": NO_SUCH_ID, "name": None}], **_OPERATIONS)
    for version in (10, 11, 12):
        yield ask("neither name nor id", version, [{"topic_id": UUID_ZERO, "name": None}])
        yield ask("neither and a name", version, [{"topic_id": UUID_ZERO, "name": None}, {"name": "placed"}])
    yield ask("by id, too early", 10, [{"topic_id": IdOf("placed"), "name": "placed"}])
    yield ask("by id, too early", 11, [{"topic_id": IdOf("placed"), "name": None}, {"name": "orders"}])
    yield _page("all", [])
    yield _page("one", names("placed"))
    yield _page("unknown and invalid", names("nobody", "a b", "placed"))
    yield _page("limit of two", names("orders", "placed"), limit=2)
    yield _page("limit ends with a topic", names("orders", "placed"), limit=3)
    yield _page("limit of none", names("placed"), limit=0)
    yield _page("from a cursor", names("orders", "placed"), limit=2, cursor=("orders", 2))
    yield _page("cursor beyond the last", names("orders", "placed"), cursor=("orders", 7))
    yield _page("cursor at a topic that is not asked for", names("orders"), cursor=("placed", 0))
    yield _page("cursor below zero", names("orders"), cursor=("orders", -1))
    yield _page("all from a cursor", [], cursor=("placed", 1))
    yield _page("unknown behind the limit", names("orders", "zz-nobody"), limit=3)


_OPERATIONS: Final = {
    "include_topic_authorized_operations": True,
    "include_cluster_authorized_operations": True,
}


def _page(name: str, topics: list[Body], *, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Case:
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    body = {"topics": topics, "response_partition_limit": limit, "cursor": at}
    return Case(f"describe topic partitions: {name}", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, body)
