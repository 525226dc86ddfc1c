"""The workload's verdicts: each kind tells fresh from stale from failed, and the counts add up."""

import asyncio
import dataclasses
import datetime as dt
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.create_delegation_token.v3 import CreateDelegationTokenResponse
from kio.schema.describe_acls.v3 import response as acls
from kio.schema.describe_client_quotas.v1 import response as quotas
from kio.schema.describe_configs.v4 import response as configs
from kio.schema.describe_delegation_token.v3 import response as tokens
from kio.schema.describe_topic_partitions.v0 import DescribeTopicPartitionsRequest
from kio.schema.describe_user_scram_credentials.v0 import response as scram
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import MetadataRequest
from kio.schema.metadata.v12 import response as metadata
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import TZAware, f64, i8, i32, i32Timedelta, i64

from tests.support.address import Address
from tests.support.workload import KINDS, Result, Tally, kinds, percentile
from tests.support.workload.exchange import FRESH, STALE, Judgement, Verdict, failed
from tests.support.workload.run import Port

NO_TIME = i32Timedelta.parse(dt.timedelta(0))
REFUSED = ErrorCode.cluster_authorization_failed


def of(kind: type[kinds.Kind], apis: frozenset[int] = frozenset()) -> Any:
    return kind("w", 3, apis)


def topic(name: str, partitions: int, error: ErrorCode = ErrorCode.none) -> metadata.MetadataResponseTopic:
    return metadata.MetadataResponseTopic(
        error_code=error,
        name=TopicName(name),
        topic_id=None,
        partitions=tuple(
            metadata.MetadataResponsePartition(
                error_code=ErrorCode.none, partition_index=i32(index), leader_id=BrokerId(1)
            )
            for index in range(partitions)
        ),
    )


def metadata_answer(*topics: metadata.MetadataResponseTopic) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(throttle_time=NO_TIME, brokers=(), topics=topics)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (metadata_answer(topic("w-create-topic-1", 1)), FRESH),
        (metadata_answer(topic("w-create-topic-1", 0, ErrorCode.unknown_topic_or_partition)), STALE),
        (metadata_answer(topic("w-create-topic-1", 0, REFUSED)), failed("cluster_authorization_failed")),
    ],
)
def test_a_created_topic_is_known(answer: metadata.MetadataResponse, expected: Judgement) -> None:
    assert of(kinds.CreateTopic).read(1).judge(answer) == expected


def test_a_deleted_topic_is_listed_no_more() -> None:
    read = of(kinds.DeleteTopic).read(1)
    assert read.request.topics is None
    assert read.judge(metadata_answer(topic("w-delete-topic-0", 1))) == FRESH
    assert read.judge(metadata_answer(topic("w-delete-topic-1", 1))) == STALE


def test_new_partitions_are_counted() -> None:
    read = of(kinds.CreatePartitions).read(1)
    assert isinstance(read.request, MetadataRequest)
    assert read.judge(metadata_answer(topic("w-create-partitions-1", 2))) == FRESH
    assert read.judge(metadata_answer(topic("w-create-partitions-1", 1))) == STALE


def test_partitions_are_read_by_their_own_api_where_it_is_offered() -> None:
    read = of(kinds.CreatePartitions, frozenset({75})).read(1)
    assert isinstance(read.request, DescribeTopicPartitionsRequest)


def config_answer(error: ErrorCode, value: str) -> configs.DescribeConfigsResponse:
    entry = configs.DescribeConfigsResourceResult(
        name="retention.ms", value=value, read_only=False, is_sensitive=False, synonyms=(), documentation=None
    )
    result = configs.DescribeConfigsResult(
        error_code=error, error_message=None, resource_type=i8(2), resource_name="w", configs=(entry,)
    )
    return configs.DescribeConfigsResponse(throttle_time=NO_TIME, results=(result,))


def test_a_config_has_the_value_of_this_round() -> None:
    judge = of(kinds.AlterTopicConfig).read(2).judge
    assert judge(config_answer(ErrorCode.none, "1000002")) == FRESH
    assert judge(config_answer(ErrorCode.none, "1000001")) == STALE
    assert judge(config_answer(ErrorCode.unknown_topic_or_partition, "")) == STALE
    assert judge(config_answer(REFUSED, "1000002")).verdict is Verdict.ERROR


def acl_answer(error: ErrorCode, count: int) -> acls.DescribeAclsResponse:
    acl = acls.AclDescription(principal="User:bob", host="*", operation=i8(3), permission_type=i8(3))
    resource = acls.DescribeAclsResource(resource_type=i8(2), resource_name="w", acls=(acl,) * count)
    return acls.DescribeAclsResponse(throttle_time=NO_TIME, error_code=error, error_message=None, resources=(resource,))


def test_an_acl_is_there_once_created_and_gone_once_deleted() -> None:
    created, deleted = of(kinds.CreateAcl).read(0).judge, of(kinds.DeleteAcl).read(0).judge
    assert [created(acl_answer(ErrorCode.none, count)) for count in (1, 0)] == [FRESH, STALE]
    assert [deleted(acl_answer(ErrorCode.none, count)) for count in (1, 0)] == [STALE, FRESH]
    assert {judge(acl_answer(REFUSED, 0)).verdict for judge in (created, deleted)} == {Verdict.ERROR}


def scram_answer(error: ErrorCode, iterations: int) -> scram.DescribeUserScramCredentialsResponse:
    credential = scram.CredentialInfo(mechanism=i8(1), iterations=i32(iterations))
    result = scram.DescribeUserScramCredentialsResult(
        user="w", error_code=error, error_message=None, credential_infos=(credential,)
    )
    return scram.DescribeUserScramCredentialsResponse(
        throttle_time=NO_TIME, error_code=ErrorCode.none, error_message=None, results=(result,)
    )


def test_a_credential_has_the_iterations_of_this_round() -> None:
    judge = of(kinds.AlterScramCredential).read(2).judge
    assert judge(scram_answer(ErrorCode.none, 4098)) == FRESH
    assert judge(scram_answer(ErrorCode.none, 4097)) == STALE
    assert judge(scram_answer(ErrorCode.resource_not_found, 4097)) == STALE
    assert judge(scram_answer(REFUSED, 4098)).verdict is Verdict.ERROR


def quota_answer(error: ErrorCode, *rates: float) -> quotas.DescribeClientQuotasResponse:
    values = tuple(quotas.ValueData(key="producer_byte_rate", value=f64(rate)) for rate in rates)
    return quotas.DescribeClientQuotasResponse(
        throttle_time=NO_TIME,
        error_code=error,
        error_message=None,
        entries=(quotas.EntryData(entity=(), values=values),) if rates else None,
    )


def test_a_quota_has_the_rate_of_this_round() -> None:
    judge = of(kinds.AlterClientQuota).read(2).judge
    assert judge(quota_answer(ErrorCode.none, 1_000_002.0)) == FRESH
    assert judge(quota_answer(ErrorCode.none, 1_000_001.0)) == STALE
    assert judge(quota_answer(ErrorCode.none)) == STALE
    assert judge(quota_answer(REFUSED)).verdict is Verdict.ERROR


def token_answer(error: ErrorCode, token_id: str) -> tokens.DescribeDelegationTokenResponse:
    token = tokens.DescribedDelegationToken(
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="alice",
        issue_timestamp=i64(0),
        expiry_timestamp=i64(0),
        max_timestamp=i64(0),
        token_id=token_id,
        hmac=b"",
        renewers=(),
    )
    return tokens.DescribeDelegationTokenResponse(error_code=error, tokens=(token,), throttle_time=NO_TIME)


def test_a_token_is_looked_for_by_the_id_that_its_creation_gave() -> None:
    kind = of(kinds.CreateDelegationToken)
    when = TZAware.parse(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    created = CreateDelegationTokenResponse(
        error_code=ErrorCode.none,
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="alice",
        issue_timestamp=when,
        expiry_timestamp=when,
        max_timestamp=when,
        token_id="mine",
        hmac=b"",
        throttle_time=NO_TIME,
    )
    assert kind.write(0).errors(created) == [ErrorCode.none]
    assert kind.read(0).judge(token_answer(ErrorCode.none, "mine")) == FRESH
    assert kind.read(0).judge(token_answer(ErrorCode.none, "another")) == STALE
    assert kind.read(0).judge(token_answer(REFUSED, "mine")).verdict is Verdict.ERROR
    refused = dataclasses.replace(created, error_code=REFUSED)
    assert kind.write(1).errors(refused) == [REFUSED]


def test_no_two_kinds_share_a_name() -> None:
    assert len({kind("w", 1, frozenset()).prefix for kind in KINDS}) == len(KINDS) == 9


async def test_a_node_that_hangs_up_is_an_error_and_gets_a_new_connection() -> None:
    connections = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = Port(address=Address(*server.sockets[0].getsockname()), login=None, client_id="test")
        read = of(kinds.CreateTopic).read(0)
        assert [await port.read(read) for _ in range(2)] == [failed("the peer closed the connection")] * 2
        await port.close()
    assert connections == 2


def test_a_tally_separates_stale_answers_from_errors() -> None:
    tally = Tally()
    for judgement in (FRESH, STALE, STALE, STALE, failed("gone")):
        tally.count(judgement, 2.0)
    assert (tally.reads, tally.stale, tally.errors) == (5, 3, {"gone": 1})
    assert tally.latencies_ms == [2.0] * 4
    assert tally.stale_share == 0.75


def test_a_result_adds_up_by_kind_and_by_node() -> None:
    result = Result()
    for kind, node_id in [("a", 1), ("a", 2), ("b", 1)]:
        result.tallies[kind, node_id].count(STALE, 1.0)
    assert [result.total().stale, result.total("a").stale, result.total("a", 2).stale] == [3, 2, 1]
    assert (result.total("b", 2).reads, result.total("b", 2).stale_share) == (0, 0.0)
    assert result.kinds == ["a", "b"]


def test_a_table_has_every_count() -> None:
    result = Result()
    result.tallies["create_topic", 1].count(STALE, 1.5)
    result.tallies["create_topic", 1].count(failed("gone"), 9.0)
    result.write_errors["create_topic", "busy"] += 1
    assert result.table().splitlines() == [
        "kind          node  reads  stale  errors  p50 ms  p99 ms  causes",
        "create_topic  1     2      1      1       1.5     1.5     gone 1",
        "write failed: create_topic: busy 1",
    ]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.floats(0.1, 100))
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(values: list[int], share: float) -> None:
    found = percentile(values, share)
    at_most = sum(value <= found for value in values)
    below = sum(value < found for value in values)
    assert found in values
    assert below < len(values) * share / 100 <= at_most


def test_a_percentile_of_nothing_is_not_a_number() -> None:
    assert math.isnan(percentile([], 50))
    with pytest.raises(ValueError, match="share must be above 0"):
        percentile([1.0], 0)
