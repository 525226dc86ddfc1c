"""Reassignments, elections, features, registrations: what an administrator does to brokers and where partitions are."""

from collections.abc import Iterator, Sequence

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import TIMEOUT_MS, Body, Case, names
from tests.support.admin_cases.topics import assigned, create
from tests.support.admin_cases.views import ask


def _move(name: str, *moves: tuple[str, int, Sequence[int] | None], version: int = 0, fixed: bool = False) -> Case:
    topics = [
        {"name": topic, "partitions": [{"partition_index": index, "replicas": replicas and list(replicas)}]}
        for topic, index, replicas in moves
    ]
    body: Body = {"timeout_ms": TIMEOUT_MS, "topics": topics, "allow_replication_factor_change": not fixed}
    return Case(f"reassign: {name}", ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, body)


def _moving(name: str, topics: list[Body] | None) -> Case:
    body: Body = {"timeout_ms": TIMEOUT_MS, "topics": topics}
    return Case(f"list reassignments: {name}", ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, body)


def reassignments() -> Iterator[Case]:
    """Partitions move, and many may not."""
    yield create("to be moved", assigned("moved", (1, 2), (2, 3), (3, 1), (1, 2)))
    yield _moving("none", None)
    yield _move("swap one replica", ("moved", 0, (1, 3)))
    yield ask("one replica swapped", 12, names("moved"))
    yield _move("without the leader", ("moved", 1, (3, 1)))
    yield _move("one more, v1", ("moved", 2, (3, 1, 2)), version=1)
    yield _move("one less", ("moved", 3, (2,)))
    yield ask("all moved", 12, names("moved"))
    yield _move("another order", ("moved", 0, (3, 1)))
    yield _move("where it is", ("moved", 0, (3, 1)))
    yield ask("another order", 12, names("moved"))
    yield _move("two at once", ("moved", 0, (1, 2)), ("moved", 1, (1, 2)))
    yield ask("two at once", 12, names("moved"))
    for fault, move in (
        ("unknown topic", ("nobody", 0, (1,))),
        ("unknown partition", ("moved", 9, (1,))),
        ("partition below zero", ("moved", -1, (1,))),
        ("to nobody", ("moved", 0, ())),
        ("to a stranger", ("moved", 0, (1, 9))),
        ("twice to one", ("moved", 0, (1, 1))),
        ("stop what does not move", ("moved", 0, None)),
        ("stop an unknown topic", ("nobody", 0, None)),
        ("stop an unknown partition", ("moved", 9, None)),
    ):
        yield _move(fault, move)
    yield _move("fixed factor, more", ("moved", 0, (1, 2, 3)), version=1, fixed=True)
    yield _move("fixed factor, fewer", ("moved", 0, (1,)), version=1, fixed=True)
    yield _move("fixed factor, as many", ("moved", 0, (1, 3)), version=1, fixed=True)
    yield ask("fixed factor, moved", 12, names("moved"))
    yield _move("one good, one bad", ("moved", 0, (1, 2)), ("moved", 1, (1, 9)))
    yield _move("nothing")
    yield _moving("all", None)
    yield _moving(
        "some", [{"name": "moved", "partition_indexes": [0, 9]}, {"name": "nobody", "partition_indexes": [0]}]
    )
    yield _moving("no topics", [])
    yield ask("after the moves", 12, names("moved"))


def _elect(
    name: str, *topics: tuple[str, Sequence[int]], everything: bool = False, kind: int = 0, version: int = 2
) -> Case:
    wanted = None if everything else [{"topic": topic, "partitions": list(of)} for topic, of in topics]
    body: Body = {"election_type": kind, "topic_partitions": wanted, "timeout_ms": TIMEOUT_MS}
    return Case(f"elect leaders: {name}", ApiKey.ELECT_LEADERS, version, body)


def elections() -> Iterator[Case]:
    """Leaders are elected where another one is wanted."""
    yield create("to be led", assigned("led", (1, 2), (2, 3), (3, 1)))
    yield _move("other preferred leaders", ("led", 0, (2, 1)), ("led", 1, (3, 2)), ("led", 2, (1, 3)))
    yield ask("before elections", 12, names("led"))
    yield _elect("preferred", ("led", (0,)))
    yield ask("after one election", 12, names("led"))
    yield _elect("not needed", ("led", (0,)))
    yield _elect("named twice", ("led", (1, 1)))
    yield _elect("unclean where there is a leader", ("led", (0, 1, 2)), kind=1)
    yield _elect("unknown topic", ("nobody", (0,)))
    yield _elect("unknown partition", ("led", (9, -1)))
    yield _elect("v0", ("led", (0,)), version=0)
    yield _elect("v1", ("led", (0,)), version=1)
    yield _elect("unknown type", ("led", (0,)), kind=7)
    yield _elect("none")
    yield _elect("no partitions", ("led", ()))
    yield _elect("all unclean", everything=True, kind=1)
    yield _elect("all", everything=True)
    yield _elect("all again", everything=True)
    yield ask("after elections", 12, names("led"))


def _update(name: str, *updates: tuple[str, int, int], version: int = 1, only: bool = False) -> Case:
    wanted = [
        {"feature": feature, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind != UPGRADE}
        for feature, level, kind in updates
    ]
    body: Body = {"timeout_ms": TIMEOUT_MS, "feature_updates": wanted, "validate_only": only}
    return Case(f"update features: {name}", ApiKey.UPDATE_FEATURES, version, body)


UPGRADE, SAFE, UNSAFE = 1, 2, 3
_VERSION = "metadata.version"


def features() -> Iterator[Case]:
    """Levels of the one feature that the backend has too."""
    yield _update("as it is", (_VERSION, 33, UPGRADE))
    yield _update("as it is, v2", (_VERSION, 33, UPGRADE), version=2)
    yield _update("as it is, v0", (_VERSION, 33, UPGRADE), version=0)
    yield _update("too high", (_VERSION, 99, UPGRADE))
    yield _update("too low", (_VERSION, 6, UNSAFE))
    yield _update("none", (_VERSION, 0, SAFE))
    yield _update("below zero", (_VERSION, -1, SAFE))
    yield _update("down without a word", (_VERSION, 32, UPGRADE))
    yield _update("down, safe", (_VERSION, 32, SAFE))
    yield _update("down, unsafe", (_VERSION, 32, UNSAFE))
    yield _update("far down", (_VERSION, 30, SAFE))
    yield _update("down, v0", (_VERSION, 32, SAFE), version=0)
    yield _update("down to the same", (_VERSION, 33, SAFE))
    yield _update("down to more", (_VERSION, 99, SAFE))
    yield _update("unknown type", (_VERSION, 33, 9))
    yield _update("type zero", (_VERSION, 33, 0))
    yield _update("unknown feature", ("nope", 1, UPGRADE))
    yield _update("unknown feature, v2", ("nope", 1, UPGRADE), version=2)
    yield _update("unknown feature off", ("nope", 0, SAFE))
    yield _update("no name", ("", 1, UPGRADE))
    yield _update("one good, one bad", (_VERSION, 33, UPGRADE), ("nope", 1, UPGRADE))
    yield _update("validate only", (_VERSION, 33, UPGRADE), only=True)
    yield _update("nothing")
    yield _update("nothing, v2", version=2)


def _unregister(name: str, broker_id: int) -> Case:
    return Case(f"unregister: {name}", ApiKey.UNREGISTER_BROKER, 0, {"broker_id": broker_id})


def registrations() -> Iterator[Case]:
    """Brokers that are not there are unregistered."""
    yield _unregister("unknown broker", 9)
    yield _unregister("a controller", 3001)
    yield _unregister("below zero", -1)


def departures() -> Iterator[Case]:
    """A broker that serves is unregistered: last of all, for there is no way back while it runs."""
    yield _unregister("a broker that serves", 3)
    yield Case("describe cluster: a broker less", ApiKey.DESCRIBE_CLUSTER, 2, {"include_fenced_brokers": True})
    yield ask("a broker less", 12, names("placed", "moved", "led"))
    yield _unregister("again", 3)
    yield _move("to whom there is no more", ("led", 0, (1, 3)))
