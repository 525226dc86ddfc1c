"""ACLs on real Kafka: what two principals read through the sidecar is what each may see, wherever it was read.

StandardAuthorizer guards the topics of a round: one that only alice may see, a super user, and one for bob too. Both
read at once, through the port of a broker that lags, so that their reads are routed; and once more straight from a
broker that has caught up. A third client is bob as well, but tied to the lagging broker by its login.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from kio.schema.create_acls import v3 as create_acls
from kio.schema.create_acls.v3 import request as create_acls_request
from kio.schema.describe_configs import v4 as describe_configs
from kio.schema.describe_configs.v4 import request as describe_configs_request
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import MetadataResponse
from kio.static.primitive import i8

from tests.support.address import Address
from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin, RawConnection
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin
from tests.support.workload.acls import ALLOW, READ, TOPIC, erase_acls
from tests.support.workload.spread import PATIENT, login_settings
from tests.support.workload.topics import erase_topics, metadata_of, write_topics

pytestmark = [pytest.mark.kafka, pytest.mark.row("5.4")]

ALICE, BOB = PlainLogin.of("alice"), PlainLogin.of("bob")
TIED_BOB = PlainLogin.of("bob", pinned=True)
LAG_MS = 500
ROUNDS = 30 if os.environ.get("TIDEGATE_NIGHTLY") else 3

View = dict[str, tuple[Any, ...]]
"""What one principal sees of the topics: by kind of read, in a form that can be compared."""


def guard(owners: Sequence[tuple[str, str]]) -> create_acls.CreateAclsRequest:
    """Lets only this user (and super users) read each topic."""
    creations = tuple(
        create_acls_request.AclCreation(
            resource_type=TOPIC,
            resource_name=name,
            principal=f"User:{owner}",
            host="*",
            operation=READ,
            permission_type=ALLOW,
        )
        for name, owner in owners
    )
    return create_acls.CreateAclsRequest(creations=creations)


async def view(client: RawConnection, names: Sequence[str]) -> View:
    """What this client sees of the topics, all asked for and each by its name."""
    everything = await client.ask(metadata_of(None), MetadataResponse)
    named = await client.ask(metadata_of(names), MetadataResponse)
    return {
        "all": tuple(sorted(str(topic.name) for topic in everything.topics if topic.name in names)),
        "named": tuple(sorted((str(topic.name), topic.error_code.name, str(topic.topic_id)) for topic in named.topics)),
        "configs": await configs(client, names),
    }


async def configs(client: RawConnection, names: Iterable[str]) -> tuple[Any, ...]:
    resources = tuple(
        describe_configs_request.DescribeConfigsResource(
            resource_type=i8(2), resource_name=name, configuration_keys=("retention.ms",)
        )
        for name in names
    )
    request = describe_configs.DescribeConfigsRequest(
        resources=resources, include_synonyms=False, include_documentation=False
    )
    answer = await client.ask(request, describe_configs.DescribeConfigsResponse)
    return tuple(sorted((each.resource_name, each.error_code.name, len(each.configs)) for each in answer.results))


async def open_all(stack: AsyncExitStack, at: Address) -> list[RawConnection]:
    return [
        await stack.enter_async_context(await RawConnection.open(at, login=login)) for login in (ALICE, BOB, TIED_BOB)
    ]


async def test_each_principal_reads_what_it_may_see_wherever_its_read_is_routed(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    settings = PATIENT | login_settings(ALICE, tmp_path)
    with SidecarProcess(kafka.sasl_bootstrap, settings=settings) as sidecar:
        await asyncio.to_thread(kafka.lag, LAG_MS)
        async with AsyncExitStack() as stack:
            readers = await open_all(stack, sidecar.nodes[kafka.lagging_broker])
            direct = await open_all(stack, kafka.sasl_brokers[1])
            writer = await stack.enter_async_context(await RawConnection.open(sidecar.nodes[1], login=ALICE))
            for number in range(ROUNDS):
                closed, opened = (f"{topic_name}-{number}-{kind}" for kind in ("closed", "open"))
                names = [closed, opened]
                guarded = await writer.ask(guard([(closed, "nobody"), (opened, "bob")]), create_acls.CreateAclsResponse)
                assert {each.error_code for each in guarded.results} == {ErrorCode.none}
                write = write_topics(names)
                assert set(write.errors(await writer.ask(write.request, write.response_type))) == {ErrorCode.none}
                alice, bob, tied = await asyncio.gather(*(view(reader, names) for reader in readers))
                assert alice["all"] == (closed, opened)
                assert bob["all"] == tied["all"] == (opened,)
                assert [error for _, error, _ in bob["named"]] == ["topic_authorization_failed", "none"]
                assert [error for _, error, _ in bob["configs"]] == ["topic_authorization_failed"] * 2
                assert [error for _, error, _ in alice["configs"]] == ["none"] * 2
                assert [alice, bob, tied] == await asyncio.gather(*(view(reader, names) for reader in direct))
                for erase in (erase_topics(names), erase_acls(names)):
                    await writer.ask(erase.request, erase.response_type)
        admin = SidecarAdmin(sidecar.admin)
        routed = await asyncio.to_thread(admin.metric, "tidegate_requests_total", decision="route")
        assert routed >= 2 * ROUNDS, "most reads of alice and the first bob went to another broker"
