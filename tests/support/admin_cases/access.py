"""Access rules, quotas and SCRAM credentials."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import (
    Body,
    Case,
    names,
)

# --- access rules

_RULE: Final = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def _rules(name: str, *rules: Body, version: int = 3) -> Case:
    return Case(
        f"create acls: {name}",
        ApiKey.CREATE_ACLS,
        version,
        {"creations": [{**_RULE, **rule} for rule in rules]},
    )


_FILTER: Final = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def _find(name: str, version: int = 3, **wanted: Any) -> Case:
    return Case(f"describe acls: {name}", ApiKey.DESCRIBE_ACLS, version, {**_FILTER, **wanted})


def _drop(name: str, *filters: Body, version: int = 3) -> Case:
    body = {"filters": [{**_FILTER, **wanted} for wanted in filters]}
    return Case(f"delete acls: {name}", ApiKey.DELETE_ACLS, version, body)


def acls() -> Iterator[Case]:
    """Access rules come and go."""
    yield _find("none")
    yield _rules("one", {})
    yield _rules("the same again", {})
    yield _rules("the same twice", {"host": "10.0.0.1"}, {"host": "10.0.0.1"})
    yield _rules("v1", {"operation": 4}, version=1)
    yield _rules(
        "several",
        {"resource_name": "ord", "resource_pattern_type": 4, "operation": 8},
        {"resource_name": "*", "permission_type": 2},
        {"resource_type": 3, "resource_name": "g", "principal": "User:eve"},
        {"resource_type": 4, "resource_name": "kafka-cluster", "operation": 7},
        {"resource_type": 5, "resource_name": "tx"},
        {"resource_type": 7, "resource_name": "User:x", "operation": 13},
    )
    for fault, rule in (
        ("unknown type", {"resource_type": 0}),
        ("any type", {"resource_type": 1}),
        ("type out of range", {"resource_type": 50}),
        ("pattern any", {"resource_pattern_type": 1}),
        ("pattern match", {"resource_pattern_type": 2}),
        ("pattern out of range", {"resource_pattern_type": 9}),
        ("operation unknown", {"operation": 0}),
        ("operation any", {"operation": 1}),
        ("operation out of range", {"operation": 99}),
        ("permission any", {"permission_type": 1}),
        ("permission out of range", {"permission_type": 9}),
        ("no name", {"resource_name": ""}),
        ("wrong name of the cluster", {"resource_type": 4, "resource_name": "cluster"}),
        ("no principal", {"principal": ""}),
        ("principal without a type", {"principal": "bob"}),
        ("no host", {"host": ""}),
    ):
        yield _rules(fault, rule)
    yield _rules("one bad of two", {"resource_name": ""}, {"resource_name": "good"})
    yield _rules("none")
    yield _find("all")
    yield _find("all, v1", version=1)
    yield _find("by type", resource_type_filter=3)
    yield _find("literal name", resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=3)
    yield _find("prefixed", pattern_type_filter=4)
    yield _find("match", resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=2)
    yield _find("any pattern of that name", resource_name_filter="ord")
    yield _find("principal", principal_filter="User:eve")
    yield _find("host", host_filter="10.0.0.1")
    yield _find("operation", operation=8)
    yield _find("deny", permission_type=2)
    yield _find("nothing", principal_filter="User:nobody")
    yield _find("unknown type", resource_type_filter=0)
    yield _find("pattern out of range", pattern_type_filter=9)
    yield _find("operation out of range", operation=99)
    yield _drop("nothing", {"principal_filter": "User:nobody"})
    yield _drop(
        "by match",
        {"resource_type_filter": 2, "resource_name_filter": "orders", "pattern_type_filter": 2, "operation": 8},
    )
    yield _drop("two filters", {"principal_filter": "User:eve"}, {"permission_type": 2})
    yield _drop("two filters for one rule", {"host_filter": "10.0.0.1"}, {"host_filter": "10.0.0.1"})
    yield _drop("unknown type", {"resource_type_filter": 0})
    yield _drop("unknown operation", {"operation": 0})
    yield _drop("v1", {"operation": 4}, version=1)
    yield _drop("no filters")
    yield _find("what is left")
    yield _drop("all", {})
    yield _find("nothing left")


# --- quotas


def _quota(
    name: str,
    *entries: tuple[Mapping[str, str | None], Mapping[str, float | None]],
    only: bool = False,
    version: int = 1,
) -> Case:
    return Case(
        f"alter quotas: {name}",
        ApiKey.ALTER_CLIENT_QUOTAS,
        version,
        {
            "entries": [
                {
                    "entity": [{"entity_type": kind, "entity_name": entity} for kind, entity in parts.items()],
                    "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()],
                }
                for parts, ops in entries
            ],
            "validate_only": only,
        },
    )


def _quotas_of(name: str, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Case:
    parts = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components]
    body = {"components": parts, "strict": strict}
    return Case(f"describe quotas: {name}", ApiKey.DESCRIBE_CLIENT_QUOTAS, version, body)


EXACT, DEFAULT, SPECIFIED = range(3)


def quotas() -> Iterator[Case]:
    """Quotas come and go."""
    yield _quotas_of("none")
    yield _quota("user", ({"user": "bob"}, {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.5}))
    yield _quota("user again, the same", ({"user": "bob"}, {"request_percentage": 12.5, "producer_byte_rate": 1000.0}))
    yield _quota(
        "several, v0",
        ({"user": None}, {"producer_byte_rate": 1.0}),
        ({"user": "bob", "client-id": "c"}, {"controller_mutation_rate": 3.5}),
        ({"client-id": None}, {"request_percentage": 1.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0}),
        ({"ip": None}, {"connection_creation_rate": 6.0}),
        version=0,
    )
    yield _quota("validate only", ({"user": "ghost"}, {"producer_byte_rate": 1.0}), only=True)
    for fault, entity, ops in (
        ("no entity", {}, {"producer_byte_rate": 1.0}),
        ("unknown type", {"hat": "x"}, {"producer_byte_rate": 1.0}),
        ("empty name", {"user": ""}, {"producer_byte_rate": 1.0}),
        ("ip with user", {"ip": "10.0.0.1", "user": "bob"}, {"producer_byte_rate": 1.0}),
        ("no ip", {"ip": "not an ip"}, {"connection_creation_rate": 1.0}),
        ("unknown key", {"user": "bob"}, {"nope": 1.0}),
        ("key of another entity", {"user": "bob"}, {"connection_creation_rate": 1.0}),
        ("zero", {"user": "bob"}, {"producer_byte_rate": 0.0}),
        ("negative", {"user": "bob"}, {"producer_byte_rate": -1.0}),
        ("fraction", {"ip": "10.0.0.1"}, {"connection_creation_rate": 1.5}),
        ("fraction of bytes", {"user": "bob"}, {"producer_byte_rate": 1.5}),
        ("too large", {"ip": "10.0.0.1"}, {"connection_creation_rate": 3e9}),
        ("removing what is not there", {"user": "nobody"}, {"producer_byte_rate": None}),
        ("removing an unknown key", {"user": "bob"}, {"nope": None}),
    ):
        yield _quota(fault, (entity, ops))
    yield _quota(
        "an entity twice",
        ({"user": "twin"}, {"producer_byte_rate": 1.0}),
        ({"user": "twin"}, {"producer_byte_rate": 2.0}),
    )
    yield _quota("none")
    yield _quotas_of("all")
    yield _quotas_of("all, v0", version=0)
    yield _quotas_of("exactly bob", ("user", EXACT, "bob"))
    yield _quotas_of("exactly bob, strict", ("user", EXACT, "bob"), strict=True)
    yield _quotas_of("default user", ("user", DEFAULT, None))
    yield _quotas_of("any user", ("user", SPECIFIED, None))
    yield _quotas_of("any user, strict", ("user", SPECIFIED, None), strict=True)
    yield _quotas_of("bob with any client", ("user", EXACT, "bob"), ("client-id", SPECIFIED, None))
    yield _quotas_of("ips", ("ip", SPECIFIED, None))
    yield _quotas_of("nothing, strict", strict=True)
    for fault, components in (
        ("no type", [("", EXACT, "x")]),
        ("unknown type", [("hat", EXACT, "x")]),
        ("a type twice", [("user", EXACT, "a"), ("user", EXACT, "b")]),
        ("exact without a name", [("user", EXACT, None)]),
        ("default with a name", [("user", DEFAULT, "bob")]),
        ("any with a name", [("user", SPECIFIED, "bob")]),
        ("unknown match", [("user", 9, None)]),
        ("ip with user", [("ip", SPECIFIED, None), ("user", SPECIFIED, None)]),
    ):
        yield _quotas_of(fault, *components)
    yield _quota("remove", ({"user": "bob"}, {"producer_byte_rate": None, "request_percentage": 20.0}))
    yield _quota("remove the last", ({"ip": None}, {"connection_creation_rate": None}))
    yield _quotas_of("what is left")


# --- SCRAM credentials


def _credential(user: str, mechanism: int = 1, iterations: int = 4096) -> Body:
    return {
        "name": user,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": b"salted password",
    }


def _scram_alter(name: str, *upsertions: Body, deletions: Sequence[tuple[str, int]] = ()) -> Case:
    body = {
        "deletions": [{"name": user, "mechanism": mechanism} for user, mechanism in deletions],
        "upsertions": list(upsertions),
    }
    return Case(f"alter scram: {name}", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, body)


def _scram_of(name: str, users: list[str] | None) -> Case:
    body = {"users": None if users is None else names(*users)}
    return Case(f"describe scram: {name}", ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, body)


def scram() -> Iterator[Case]:
    """SCRAM credentials come and go."""
    yield _scram_of("none", None)
    yield _scram_alter("two users", _credential("ann"), _credential("ben", 2, 8192))
    yield _scram_alter("another mechanism", _credential("ann", 2))
    yield _scram_alter("more iterations", _credential("ann", 1, 16384))
    for fault, upsertion in (
        ("too few iterations", _credential("bad", 1, 4095)),
        ("too many iterations", _credential("bad", 1, 16385)),
        ("too few for the other", _credential("bad", 2, 4095)),
        ("unknown mechanism", _credential("bad", 9)),
        ("mechanism zero", _credential("bad", 0)),
        ("no user", _credential("")),
    ):
        yield _scram_alter(fault, upsertion)
    yield _scram_alter("a user twice", _credential("cat"), _credential("cat"))
    yield _scram_alter("a user with two mechanisms", _credential("cat", 1), _credential("cat", 2))
    yield _scram_alter("deleted and set", _credential("ann"), deletions=[("ann", 1)])
    yield _scram_alter("deleted twice", deletions=[("ann", 1), ("ann", 1)])
    yield _scram_alter("deleted, not there", deletions=[("nobody", 1)])
    yield _scram_alter("deleted, other mechanism", deletions=[("ben", 1)])
    yield _scram_alter("deleted, unknown mechanism", deletions=[("ben", 9)])
    yield _scram_alter("one good, one bad", _credential("dan"), _credential("bad", 1, 1))
    yield _scram_alter("nothing")
    yield _scram_of("all", None)
    yield _scram_of("all by an empty list", [])
    yield _scram_of("one", ["ann"])
    yield _scram_of("missing", ["ann", "nobody"])
    yield _scram_of("named twice", ["ann", "ann", "ben"])
    yield _scram_alter("deleted", deletions=[("ann", 2), ("dan", 1)])
    yield _scram_of("what is left", None)
