"""Small worlds of access rules, drawn from few names so that rules meet, clash and imply; the same for each seed.

For comparing authorizers: with a naive model, and with Kafka's own.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from backend.metadata.acls import StandardAcl
from backend.metadata.authorizer import AuthorizerSettings, Operation, Resource
from backend.metadata.client import Client

NAMES: Final = ("a", "ab", "abc", "abcd", "b", "ba", "*", "a*", "kafka-cluster")
CLIENTS: Final = ("User:ann", "User:bob", "Group:ann", "User:a:b")
"""`User:*` is not among them: Kafka's authorizer fails on a client of that name."""
PRINCIPALS: Final = (*CLIENTS, "User:*")
HOSTS: Final = ("127.0.0.1", "10.0.0.1")
RESOURCES: Final = (Resource.TOPIC, Resource.GROUP, Resource.CLUSTER)
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3


@dataclass(frozen=True, slots=True)
class Question:
    """May this client do that?"""

    client: Client
    operation: Operation
    resource: Resource
    name: str


@dataclass(frozen=True, slots=True)
class World:
    """Settings, rules, and what is asked about them."""

    settings: AuthorizerSettings
    rules: tuple[StandardAcl, ...]
    questions: tuple[Question, ...]


def worlds(seed: int, count: int, questions: int) -> Iterator[World]:
    """`count` worlds with that many questions each."""
    rng = random.Random(seed)
    for _ in range(count):
        yield World(
            settings=AuthorizerSettings(
                super_users=frozenset(rng.sample(PRINCIPALS, rng.choice((0, 0, 1)))),
                allow_everyone_if_no_acl_found=rng.random() < 0.5,
            ),
            rules=tuple({_rule(rng): None for _ in range(rng.choice((0, 1, 2, 4, 8, 16)))}),
            questions=tuple(_question(rng) for _ in range(questions)),
        )


def _rule(rng: random.Random) -> StandardAcl:
    return StandardAcl(
        resource_type=rng.choice(RESOURCES),
        resource_name=rng.choice(NAMES),
        pattern_type=rng.choice((LITERAL, PREFIXED)),
        principal=rng.choice(PRINCIPALS),
        host=rng.choice(("*", "*", *HOSTS)),
        operation=rng.choice(list(Operation)),
        permission_type=rng.choice((DENY, ALLOW, ALLOW)),
    )


def _question(rng: random.Random) -> Question:
    return Question(
        client=Client(principal=rng.choice(CLIENTS), host=rng.choice(HOSTS)),
        operation=rng.choice([operation for operation in Operation if operation is not Operation.ALL]),
        resource=rng.choice(RESOURCES),
        name=rng.choice(NAMES),
    )
