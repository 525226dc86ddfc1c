"""The authorizer: rule by rule as a story, and in random worlds against a model that looks at every rule."""

from typing import Any, Final

import pytest

from backend.metadata.acls import AclsImage, StandardAcl
from backend.metadata.authorizer import Access, AuthorizerSettings, Operation, Resource
from backend.metadata.client import Client
from backend.metadata.records import RemoveAccessControlEntryRecord
from tests.support.access_worlds import ALLOW, DENY, LITERAL, PREFIXED, Question, World, worlds

BOB: Final = Client(principal="User:bob", host="10.0.0.1")
STRICT: Final = AuthorizerSettings(super_users=frozenset({"User:root"}))
WORLDS: Final = 400
QUESTIONS: Final = 10


def rule(name: str, operation: Operation, **more: Any) -> StandardAcl:
    fields = {"resource_type": 2, "pattern_type": LITERAL, "principal": "User:bob", "host": "*"}
    return StandardAcl(**{**fields, "resource_name": name, "operation": operation, "permission_type": ALLOW, **more})


def image_of(*rules: StandardAcl) -> AclsImage:
    image = AclsImage.empty()
    for number, acl in enumerate(rules):
        image = image.add(acl.to_record(number.to_bytes(16, "big")))
    return image


def allows(operation: Operation, name: str, *rules: StandardAcl, client: Client = BOB) -> bool:
    return Access(client=client, acls=image_of(*rules), settings=STRICT).allows(operation, Resource.TOPIC, name)


READ, WRITE, DESCRIBE, ALTER_CONFIGS = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALTER_CONFIGS


@pytest.mark.parametrize(
    ("operation", "acl", "allowed"),
    [
        (READ, rule("orders", READ), True),
        (WRITE, rule("orders", READ), False),
        (DESCRIBE, rule("orders", READ), True),
        (DESCRIBE, rule("orders", ALTER_CONFIGS), False),
        (Operation.DESCRIBE_CONFIGS, rule("orders", ALTER_CONFIGS), True),
        (WRITE, rule("orders", Operation.ALL), True),
        (READ, rule("*", READ), True),
        (READ, rule("ord", READ), False),
        (READ, rule("ord", READ, pattern_type=PREFIXED), True),
        (READ, rule("orders", READ, pattern_type=PREFIXED), True),
        (READ, rule("orders2", READ, pattern_type=PREFIXED), False),
        (READ, rule("*", READ, pattern_type=PREFIXED), False),
        (READ, rule("orders", READ, resource_type=3), False),
        (READ, rule("orders", READ, principal="User:*"), True),
        (READ, rule("orders", READ, principal="User:eve"), False),
        (READ, rule("orders", READ, host="10.0.0.1"), True),
        (READ, rule("orders", READ, host="10.0.0.2"), False),
    ],
)
def test_what_a_rule_allows(operation: Operation, acl: StandardAcl, allowed: bool) -> None:
    assert allows(operation, "orders", acl) is allowed


def test_what_is_denied_is_denied_whatever_is_allowed() -> None:
    denied = rule("ord", READ, pattern_type=PREFIXED, permission_type=DENY)
    assert not allows(READ, "orders", denied, rule("orders", Operation.ALL))
    assert allows(DESCRIBE, "orders", denied, rule("orders", Operation.ALL))


def test_super_users_and_clusters_without_an_authorizer_ask_no_rule() -> None:
    denied = rule("orders", Operation.ALL, principal="User:*", permission_type=DENY)
    assert allows(READ, "orders", denied, client=Client(principal="User:root"))
    assert not allows(READ, "orders", denied, client=Client(principal="User:toor"))
    assert Access(client=BOB, acls=image_of(denied)).allows(READ, Resource.TOPIC, "orders")


def test_everybody_may_do_what_no_rule_is_about_if_so_configured() -> None:
    lenient = AuthorizerSettings(allow_everyone_if_no_acl_found=True)
    access = Access(client=BOB, acls=image_of(rule("orders", READ, principal="User:eve")), settings=lenient)
    assert not access.allows(READ, Resource.TOPIC, "orders")
    assert access.allows(READ, Resource.TOPIC, "bills")


def test_operations_are_told_as_bits() -> None:
    access = Access(client=BOB, acls=image_of(rule("orders", WRITE)), settings=STRICT)
    assert access.operations(Resource.TOPIC, "orders") == 1 << WRITE | 1 << DESCRIBE
    assert access.operations(Resource.CLUSTER, "kafka-cluster") == 0


def naive(world: World, question: Question) -> bool:
    """Every rule, in the words of Kafka's documentation."""
    client, operation = question.client, question.operation
    if client.principal in world.settings.super_users:
        return True
    rules = [
        acl
        for acl in world.rules
        if acl.resource_type == question.resource
        and (
            acl.resource_name in (question.name, "*")
            if acl.pattern_type == LITERAL
            else question.name.startswith(acl.resource_name)
        )
    ]
    if not rules:
        return world.settings.allow_everyone_if_no_acl_found
    mine = [acl for acl in rules if acl.principal in (client.principal, "User:*") and acl.host in ("*", client.host)]
    implied = {Operation.DESCRIBE: (3, 4, 6, 7, 8), Operation.DESCRIBE_CONFIGS: (10, 11)}.get(operation, (operation,))
    denied = any(acl.permission_type == DENY and acl.operation in (2, operation) for acl in mine)
    return not denied and any(acl.permission_type == ALLOW and acl.operation in (2, *implied) for acl in mine)


def test_random_worlds_agree_with_the_model_also_after_rules_have_gone() -> None:
    verdicts = []
    for world in worlds(seed=11, count=WORLDS, questions=QUESTIONS):
        extra = rule("a", Operation.ALL, principal="User:*", pattern_type=PREFIXED, host="192.0.2.1")
        image = image_of(*world.rules, extra).remove(
            RemoveAccessControlEntryRecord(id=len(world.rules).to_bytes(16, "big"))
        )
        for question in world.questions:
            access = Access(client=question.client, acls=image, settings=world.settings)
            verdict = access.allows(question.operation, question.resource, question.name)
            assert verdict == naive(world, question), (world, question)
            verdicts.append(verdict)
    assert len(verdicts) // 10 < sum(verdicts) < len(verdicts) * 9 // 10
