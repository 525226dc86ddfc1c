"""The same administration on real Kafka and on our backend: every answer is the same, but for those listed here.

Kafka's cluster is brought to the features that ours has: without eligible leader replicas (KIP-966), which a fresh 4.4
comes with. What stays different is in docs/differences.md, by the name of the case.
"""

import asyncio
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any, Final

import pytest

from backend.app import Backend, embedded
from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.tokens import TokenSettings
from backend.net.offers import OFFERS
from backend.net.security import OPEN, Security
from codec.api_keys import ApiKey
from tests.support.address import Address
from tests.support.admin_cases import rights, tokens
from tests.support.admin_script import Ask, cases, run
from tests.support.admin_wire import over
from tests.support.kafka import KafkaCluster
from tests.support.kafka.jars import VERSIONS
from tests.support.kafka.properties import PLAIN_USERS, SUPER_USERS, TOKEN_SECRET
from tests.support.memory_backend import MemoryBackend

DIFFERENT: Final = frozenset(
    {
        "describe configs: broker, every key",
        "describe configs: loggers",
        "alter configs: logger known",
        "create acls: unknown type",
        "create acls: operation unknown",
        "describe acls: unknown type",
        "delete acls: unknown type",
        "delete acls: unknown operation",
    }
)
CASES_MIN: Final = 150
ADMIN: Final = "admin"
AUTHORIZER: Final = AuthorizerSettings(super_users=frozenset(SUPER_USERS.split(";")))
TOKENS: Final = TokenSettings(secret=TOKEN_SECRET)


def test_the_script_is_long_and_the_page_lists_its_exceptions() -> None:
    names = [case.name for case in cases()]
    assert len(names) >= CASES_MIN
    assert len(names) == len(set(names))
    assert set(names) >= DIFFERENT
    page = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    assert {name for name in names if f"`{name}`" in page} == DIFFERENT


async def test_the_wire_adds_nothing_and_loses_nothing() -> None:
    """Through listener, controller, log and replay the answers are those of the pure functions, API by API."""
    offered = {case.name for case in cases() if case.api_key in OFFERS and case.user is None}
    over_the_wire, in_memory = await _run_on_backend(offered), run(MemoryBackend().ask_as, _nothing, offered)
    assert len(over_the_wire) >= CASES_MIN
    assert over_the_wire == in_memory


async def test_the_wire_adds_nothing_to_what_users_may_do() -> None:
    """The same for clients that log in; those that are anonymous elsewhere are an administrator here."""
    names = {case.name for page in (tokens.tokens, rights.rights) for case in page()}
    authorizer = AuthorizerSettings(super_users=frozenset({f"User:{ADMIN}", "User:alice"}))
    security = Security(
        protocol="SASL_PLAINTEXT",
        passwords={name: f"{name}-secret" for name in (ADMIN, *PLAIN_USERS)},
        tokens=TOKENS,
        authorizer=authorizer,
    )
    memory = MemoryBackend(authorizer=authorizer, tokens=TOKENS)
    over_the_wire = await _run_on_backend(names, security)
    assert over_the_wire == run(lambda user: memory.ask_as(user or ADMIN), _nothing, names)


@pytest.mark.kafka
def test_real_kafka_gives_the_same_answers(kafka_jars: Callable[[str], Path]) -> None:
    kafka_jars(VERSIONS[0])
    ours, theirs = run(MemoryBackend(authorizer=AUTHORIZER, tokens=TOKENS).ask_as, _nothing), _run_on_kafka()
    assert {name for name, answer in theirs.items() if answer != ours[name]} == DIFFERENT


async def _run_on_backend(only: Container[str], security: Security = OPEN) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    async with Backend(embedded(security=security)) as cluster:
        broker = cluster.broker(1)

        async def in_effect() -> None:
            await broker.publication.reach_effect(cluster.head_offset)

        def settle() -> None:
            asyncio.run_coroutine_threadsafe(in_effect(), loop).result()

        def ask_as(user: str | None) -> Ask:
            return over(Address(*broker.address), (user or ADMIN) if security.is_sasl else None)

        return await asyncio.to_thread(run, ask_as, settle, only)


def _run_on_kafka() -> dict[str, Any]:
    overrides: dict[str, str | int] = {
        "num.partitions": 1,
        "default.replication.factor": 1,
        "allow.everyone.if.no.acl.found": "false",
        # Each wait for a change to be in effect waits for the next record.
        "metadata.max.idle.interval.ms": 100,
    }
    with KafkaCluster(controllers=1, brokers=3, overrides=overrides) as cluster:
        ask = over(cluster.brokers[1])
        _forget_eligible_leader_replicas(cluster, ask)

        def ask_as(user: str | None) -> Ask:
            return ask if user is None else over(cluster.sasl_brokers[1], user)

        return run(ask_as, lambda: _settle(cluster, ask))


def _forget_eligible_leader_replicas(cluster: KafkaCluster, ask: Ask) -> None:
    feature = ("--feature", "eligible.leader.replicas.version=0")
    cluster.tool(
        "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", cluster.bootstrap, "downgrade", *feature
    )
    removal = {"name": "min.insync.replicas", "config_operation": 1, "value": None}
    resource = {"resource_type": 4, "resource_name": "", "configs": [removal]}
    answer = ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False})
    assert answer is not None
    assert answer["responses"][0]["error_code"] == 0
    cluster.wait_caught_up(effective=True)


def _settle(cluster: KafkaCluster, ask: Ask) -> None:
    def nothing_moves() -> bool:
        answer = ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 30_000, "topics": None})
        return answer is not None and not answer["topics"]

    cluster.wait_until(nothing_moves, "partitions still move")
    cluster.wait_caught_up(effective=True)


def _nothing() -> None:
    """In memory a write is seen at once."""
