"""Our authorizer beside Kafka's StandardAuthorizer, in the same random worlds: the same verdict on every question."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from backend.metadata.acls import AclsImage
from backend.metadata.authorizer import Access
from tests.support.access_worlds import World, worlds
from tests.support.kafka.jars import VERSIONS
from tests.support.kafka.java import Java

SOURCE: Final = Path(__file__).parent / "java" / "Authorizer.java"
WORLDS: Final = 300
QUESTIONS: Final = 30


@pytest.mark.kafka
def test_kafkas_authorizer_says_the_same(kafka_jars: Callable[[str], Path], tmp_path: Path) -> None:
    kafka_jars(VERSIONS[0])
    ours, lines = [], []
    for world in worlds(seed=7, count=WORLDS, questions=QUESTIONS):
        ours += list(verdicts(world))
        lines += list(told(world))
    java = Java(VERSIONS[0], tmp_path)
    main_class, classes = java.compile(SOURCE)
    answers = java.run(main_class, stdin="\n".join(lines) + "\n", classes=classes).stdout.split()
    assert len(ours) == len(answers) == WORLDS * QUESTIONS
    theirs = [answer == "ALLOWED" for answer in answers]
    assert [index for index, verdict in enumerate(ours) if verdict != theirs[index]] == []


def verdicts(world: World) -> Iterator[bool]:
    image = AclsImage.empty()
    for number, acl in enumerate(world.rules):
        image = image.add(acl.to_record(number.to_bytes(16, "big")))
    for question in world.questions:
        access = Access(client=question.client, acls=image, settings=world.settings)
        yield access.allows(question.operation, question.resource, question.name)


def told(world: World) -> Iterator[str]:
    """The same world in lines."""
    lenient = str(world.settings.allow_everyone_if_no_acl_found).lower()
    yield "\t".join(("begin", ";".join(world.settings.super_users), lenient))
    for acl in world.rules:
        pattern = (int(acl.resource_type), acl.resource_name, acl.pattern_type)
        yield "\t".join(map(str, ("acl", *pattern, acl.principal, acl.host, int(acl.operation), acl.permission_type)))
    for question in world.questions:
        client = (question.client.principal, question.client.host)
        asked = (int(question.operation), int(question.resource), question.name)
        yield "\t".join(map(str, ("ask", *client, *asked)))
