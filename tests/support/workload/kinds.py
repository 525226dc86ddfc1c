"""The kinds of write: for each what must be there first, what one round writes, and which read must show it. Pure.

Every request has a fixed version that both Kafka 3.9 and 4.4 speak. Nothing of one kind or prefix is touched by
another, so kinds may run at the same time and on a cluster that others use.
"""

import abc
import datetime as dt
import enum
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from kio.schema.alter_client_quotas import v1 as alter_quotas
from kio.schema.alter_client_quotas.v1 import request as alter_quotas_request
from kio.schema.alter_user_scram_credentials import v0 as alter_scram
from kio.schema.alter_user_scram_credentials.v0 import request as alter_scram_request
from kio.schema.create_delegation_token import v3 as create_token
from kio.schema.create_partitions import v3 as create_partitions
from kio.schema.create_partitions.v3 import request as create_partitions_request
from kio.schema.describe_client_quotas import v1 as describe_quotas
from kio.schema.describe_client_quotas.v1 import request as describe_quotas_request
from kio.schema.describe_configs import v4 as describe_configs
from kio.schema.describe_configs.v4 import request as describe_configs_request
from kio.schema.describe_delegation_token import v3 as describe_tokens
from kio.schema.describe_topic_partitions import v0 as describe_topic_partitions
from kio.schema.describe_topic_partitions.v0 import request as describe_topic_partitions_request
from kio.schema.describe_user_scram_credentials import v0 as describe_scram
from kio.schema.describe_user_scram_credentials.v0 import request as describe_scram_request
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs import v1 as alter_configs
from kio.schema.incremental_alter_configs.v1 import request as alter_configs_request
from kio.schema.metadata import v12 as metadata
from kio.schema.types import TopicName
from kio.static.primitive import f64, i8, i32, i64Timedelta

from tests.support.workload.acls import erase_acls, read_acl, write_acls
from tests.support.workload.exchange import MISSING, STALE, Judgement, Read, Write, failed, fresh_if
from tests.support.workload.topics import (
    WRITE_TIMEOUT,
    erase_topics,
    judge_topics,
    metadata_of,
    read_topics,
    write_topics,
)

TOKEN_LIFETIME = i64Timedelta.parse(dt.timedelta(hours=1))
TOPIC, SET, SCRAM_SHA_256, EXACT = i8(2), i8(0), i8(1), i8(0)
SCRAM_ITERATIONS_MIN = 4096


class Depth(enum.Enum):
    """What of a broker the read shows: its metadata image, or what was built from that image a moment later."""

    VISIBLE = "visible"
    EFFECTIVE = "effective"


class Kind(abc.ABC):
    """One kind of write in one run. Rounds are numbered from 0."""

    name: ClassVar[str]
    depth: ClassVar[Depth] = Depth.VISIBLE
    needs_sasl: ClassVar[bool] = False

    def __init__(self, prefix: str, rounds: int, apis: frozenset[int]) -> None:
        """Prepare to write `rounds` times.

        Args:
            prefix: makes every name unique to this run.
            rounds: how many writes there will be.
            apis: the API keys that the nodes offer.
        """
        self.prefix = f"{prefix}-{self.name.replace('_', '-')}"
        self.rounds = rounds
        self.apis = apis

    def setup(self) -> Sequence[Write[Any]]:
        """What has to be written before the first round."""
        return ()

    def settled(self) -> Read[Any] | None:
        """The read that is fresh where everything of `setup` has arrived."""
        return None

    @abc.abstractmethod
    def write(self, round_number: int) -> Write[Any]:
        """The write of a round."""

    @abc.abstractmethod
    def read(self, round_number: int) -> Read[Any]:
        """The read that must show it; asked for once the write is acknowledged."""

    def cleanup(self) -> Sequence[Write[Any]]:
        """What removes all that the run has left."""
        return ()

    def numbered(self) -> list[str]:
        """A name for each round."""
        return [self.name_of(number) for number in range(self.rounds)]

    def name_of(self, round_number: int) -> str:
        """The name that belongs to a round."""
        return f"{self.prefix}-{round_number}"


class CreateTopic(Kind):
    """CreateTopics; Metadata must know the topic."""

    name = "create_topic"

    def write(self, round_number: int) -> Write[Any]:
        return write_topics([self.name_of(round_number)])

    def read(self, round_number: int) -> Read[Any]:
        return read_topics([self.name_of(round_number)])

    def cleanup(self) -> Sequence[Write[Any]]:
        return [erase_topics(self.numbered())]


class AlterTopicConfig(Kind):
    """IncrementalAlterConfigs of one topic; DescribeConfigs must show the new value."""

    name = "alter_topic_config"
    key = "retention.ms"

    def setup(self) -> Sequence[Write[Any]]:
        return [write_topics([self.prefix])]

    def settled(self) -> Read[Any]:
        return read_topics([self.prefix])

    def write(self, round_number: int) -> Write[Any]:
        config = alter_configs_request.AlterableConfig(
            name=self.key, config_operation=SET, value=self._value(round_number)
        )
        resource = alter_configs_request.AlterConfigsResource(
            resource_type=TOPIC, resource_name=self.prefix, configs=(config,)
        )
        return Write(
            request=alter_configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
            response_type=alter_configs.IncrementalAlterConfigsResponse,
            errors=lambda answer: [each.error_code for each in answer.responses],
        )

    def read(self, round_number: int) -> Read[Any]:
        def judge(answer: describe_configs.DescribeConfigsResponse) -> Judgement:
            (result,) = answer.results
            if result.error_code in MISSING:
                return STALE
            if result.error_code is not ErrorCode.none:
                return failed(result.error_code)
            return fresh_if(any(each.value == self._value(round_number) for each in result.configs))

        resource = describe_configs_request.DescribeConfigsResource(
            resource_type=TOPIC, resource_name=self.prefix, configuration_keys=(self.key,)
        )
        return Read(
            request=describe_configs.DescribeConfigsRequest(resources=(resource,)),
            response_type=describe_configs.DescribeConfigsResponse,
            judge=judge,
        )

    def cleanup(self) -> Sequence[Write[Any]]:
        return [erase_topics([self.prefix])]

    @staticmethod
    def _value(round_number: int) -> str:
        return str(1_000_000 + round_number)


class CreateAcl(Kind):
    """CreateAcls; DescribeAcls must show it. The authorizer that answers is built from the image: effective."""

    name = "create_acl"
    depth = Depth.EFFECTIVE

    def write(self, round_number: int) -> Write[Any]:
        return write_acls([self.name_of(round_number)])

    def read(self, round_number: int) -> Read[Any]:
        return read_acl(self.name_of(round_number), present=True)

    def cleanup(self) -> Sequence[Write[Any]]:
        return [erase_acls(self.numbered())]


class DeleteAcl(Kind):
    """DeleteAcls; DescribeAcls must no longer show it."""

    name = "delete_acl"
    depth = Depth.EFFECTIVE

    def setup(self) -> Sequence[Write[Any]]:
        return [write_acls(self.numbered())]

    def settled(self) -> Read[Any]:
        # One request made them all, and the last is the last to arrive.
        return read_acl(self.name_of(self.rounds - 1), present=True)

    def write(self, round_number: int) -> Write[Any]:
        return erase_acls([self.name_of(round_number)])

    def read(self, round_number: int) -> Read[Any]:
        return read_acl(self.name_of(round_number), present=False)

    def cleanup(self) -> Sequence[Write[Any]]:
        return [erase_acls(self.numbered())]


class AlterScramCredential(Kind):
    """AlterUserScramCredentials of one user; the description must show the new number of iterations."""

    name = "alter_scram_credential"

    def write(self, round_number: int) -> Write[Any]:
        credential = alter_scram_request.ScramCredentialUpsertion(
            name=self.prefix,
            mechanism=SCRAM_SHA_256,
            iterations=self._iterations(round_number),
            salt=b"0123456789abcdef",
            salted_password=bytes(32),
        )
        return self._alter((), (credential,))

    def read(self, round_number: int) -> Read[Any]:
        def judge(answer: describe_scram.DescribeUserScramCredentialsResponse) -> Judgement:
            if answer.error_code is not ErrorCode.none:
                return failed(answer.error_code)
            (result,) = answer.results
            if result.error_code in MISSING:
                return STALE
            if result.error_code is not ErrorCode.none:
                return failed(result.error_code)
            expected = self._iterations(round_number)
            return fresh_if(any(each.iterations == expected for each in result.credential_infos))

        user = describe_scram_request.UserName(name=self.prefix)
        return Read(
            request=describe_scram.DescribeUserScramCredentialsRequest(users=(user,)),
            response_type=describe_scram.DescribeUserScramCredentialsResponse,
            judge=judge,
        )

    def cleanup(self) -> Sequence[Write[Any]]:
        gone = alter_scram_request.ScramCredentialDeletion(name=self.prefix, mechanism=SCRAM_SHA_256)
        return [self._alter((gone,), ())]

    @staticmethod
    def _alter(
        deletions: tuple[alter_scram_request.ScramCredentialDeletion, ...],
        upsertions: tuple[alter_scram_request.ScramCredentialUpsertion, ...],
    ) -> Write[Any]:
        return Write(
            request=alter_scram.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions),
            response_type=alter_scram.AlterUserScramCredentialsResponse,
            errors=lambda answer: [each.error_code for each in answer.results],
        )

    @staticmethod
    def _iterations(round_number: int) -> i32:
        return i32(SCRAM_ITERATIONS_MIN + round_number)


class AlterClientQuota(Kind):
    """AlterClientQuotas of one user; DescribeClientQuotas must show the new rate."""

    name = "alter_client_quota"
    key = "producer_byte_rate"

    def write(self, round_number: int) -> Write[Any]:
        return self._alter(self._rate(round_number), remove=False)

    def read(self, round_number: int) -> Read[Any]:
        def judge(answer: describe_quotas.DescribeClientQuotasResponse) -> Judgement:
            if answer.error_code is not ErrorCode.none:
                return failed(answer.error_code)
            rates = [each.value for entry in answer.entries or () for each in entry.values]
            return fresh_if(self._rate(round_number) in rates)

        component = describe_quotas_request.ComponentData(entity_type="user", match_type=EXACT, match=self.prefix)
        return Read(
            request=describe_quotas.DescribeClientQuotasRequest(components=(component,), strict=True),
            response_type=describe_quotas.DescribeClientQuotasResponse,
            judge=judge,
        )

    def cleanup(self) -> Sequence[Write[Any]]:
        return [self._alter(f64(0.0), remove=True)]

    def _alter(self, rate: f64, *, remove: bool) -> Write[Any]:
        entity = alter_quotas_request.EntityData(entity_type="user", entity_name=self.prefix)
        change = alter_quotas_request.OpData(key=self.key, value=rate, remove=remove)
        entry = alter_quotas_request.EntryData(entity=(entity,), ops=(change,))
        return Write(
            request=alter_quotas.AlterClientQuotasRequest(entries=(entry,), validate_only=False),
            response_type=alter_quotas.AlterClientQuotasResponse,
            errors=lambda answer: [each.error_code for each in answer.entries],
        )

    @staticmethod
    def _rate(round_number: int) -> f64:
        return f64(1_000_000.0 + round_number)


class CreatePartitions(Kind):
    """CreatePartitions, one topic a round; DescribeTopicPartitions must show 2, or Metadata without that API."""

    name = "create_partitions"

    def setup(self) -> Sequence[Write[Any]]:
        return [write_topics(self.numbered())]

    def settled(self) -> Read[Any]:
        return read_topics(self.numbered())

    def write(self, round_number: int) -> Write[Any]:
        topic = create_partitions_request.CreatePartitionsTopic(
            name=TopicName(self.name_of(round_number)), count=i32(2), assignments=None
        )
        return Write(
            request=create_partitions.CreatePartitionsRequest(
                topics=(topic,), timeout=WRITE_TIMEOUT, validate_only=False
            ),
            response_type=create_partitions.CreatePartitionsResponse,
            errors=lambda answer: [each.error_code for each in answer.results],
        )

    def read(self, round_number: int) -> Read[Any]:
        topic = self.name_of(round_number)
        request = describe_topic_partitions.DescribeTopicPartitionsRequest
        if request.__api_key__ not in self.apis:
            return read_topics([topic], partitions=2)
        return Read(
            request=request(topics=(describe_topic_partitions_request.TopicRequest(name=TopicName(topic)),)),
            response_type=describe_topic_partitions.DescribeTopicPartitionsResponse,
            judge=functools.partial(judge_topics, partitions=2),
        )

    def cleanup(self) -> Sequence[Write[Any]]:
        return [erase_topics(self.numbered())]


class CreateDelegationToken(Kind):
    """CreateDelegationToken; DescribeDelegationToken must show it. The token cache is built from the image."""

    name = "create_delegation_token"
    depth = Depth.EFFECTIVE
    needs_sasl = True

    def __init__(self, prefix: str, rounds: int, apis: frozenset[int]) -> None:
        super().__init__(prefix, rounds, apis)
        self._token_ids: dict[int, str] = {}

    def write(self, round_number: int) -> Write[Any]:
        def errors(answer: create_token.CreateDelegationTokenResponse) -> list[ErrorCode]:
            self._token_ids[round_number] = answer.token_id
            return [answer.error_code]

        return Write(
            request=create_token.CreateDelegationTokenRequest(
                owner_principal_type=None, owner_principal_name=None, renewers=(), max_lifetime=TOKEN_LIFETIME
            ),
            response_type=create_token.CreateDelegationTokenResponse,
            errors=errors,
        )

    def read(self, round_number: int) -> Read[Any]:
        def judge(answer: describe_tokens.DescribeDelegationTokenResponse) -> Judgement:
            if answer.error_code is not ErrorCode.none:
                return failed(answer.error_code)
            return fresh_if(any(token.token_id == self._token_ids[round_number] for token in answer.tokens))

        return Read(
            request=describe_tokens.DescribeDelegationTokenRequest(owners=None),
            response_type=describe_tokens.DescribeDelegationTokenResponse,
            judge=judge,
        )


class DeleteTopic(Kind):
    """DeleteTopics; Metadata of all topics must no longer list it."""

    name = "delete_topic"

    def setup(self) -> Sequence[Write[Any]]:
        return [write_topics(self.numbered())]

    def settled(self) -> Read[Any]:
        return read_topics(self.numbered())

    def write(self, round_number: int) -> Write[Any]:
        return erase_topics([self.name_of(round_number)])

    def read(self, round_number: int) -> Read[Any]:
        gone = self.name_of(round_number)
        return Read(
            request=metadata_of(None),
            response_type=metadata.MetadataResponse,
            judge=lambda answer: fresh_if(all(topic.name != gone for topic in answer.topics)),
        )

    def cleanup(self) -> Sequence[Write[Any]]:
        return [erase_topics(self.numbered())]


KINDS: tuple[type[Kind], ...] = (
    CreateTopic,
    AlterTopicConfig,
    CreateAcl,
    DeleteAcl,
    AlterScramCredential,
    AlterClientQuota,
    CreatePartitions,
    CreateDelegationToken,
    DeleteTopic,
)
