"""The image: everything that the metadata log says up to one offset, as one immutable value.

`apply` turns an image and the next batch into the next image. What the batch does not touch is shared between the two,
so an image is cheap to keep and a read that holds an old one never sees a change. A broker publishes an image by
replacing one reference. Knows no request and no answer; see `controller` and `reads`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self, assert_never, final

from rpds import HashTrieMap

from backend.metadata.acls import AclsImage
from backend.metadata.cluster import ClusterImage
from backend.metadata.configs import ConfigsImage
from backend.metadata.errors import ReplayError
from backend.metadata.quotas import ClientQuotasImage
from backend.metadata.records import (
    AccessControlEntryRecord,
    Batch,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from backend.metadata.scram import ScramImage
from backend.metadata.tokens import TokensImage
from backend.metadata.topics import TopicsDelta, TopicsImage


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """All metadata at one offset.

    Attributes:
        cluster_id: Which cluster; never changes.
        highest_offset: The offset of the last record in it, -1 for none: Kafka's position of a broker.
        highest_epoch: The leader epoch of that record, -1 for none.
        topics: Topics and partitions.
        cluster: Brokers.
        configs: What was set for topics, brokers, groups and client metrics.
        acls: Access rules.
        client_quotas: Quotas.
        scram: SCRAM credentials.
        tokens: Delegation tokens.
        features: Feature name to finalized level.
    """

    cluster_id: str
    highest_offset: int
    highest_epoch: int
    topics: TopicsImage
    cluster: ClusterImage
    configs: ConfigsImage
    acls: AclsImage
    client_quotas: ClientQuotasImage
    scram: ScramImage
    tokens: TokensImage
    features: HashTrieMap[str, int]

    @classmethod
    def empty(cls, cluster_id: str) -> Self:
        """The image before the first record."""
        return cls(
            cluster_id=cluster_id,
            highest_offset=-1,
            highest_epoch=-1,
            topics=TopicsImage.empty(),
            cluster=ClusterImage.empty(),
            configs=ConfigsImage.empty(),
            acls=AclsImage.empty(),
            client_quotas=ClientQuotasImage.empty(),
            scram=ScramImage.empty(),
            tokens=TokensImage.empty(),
            features=HashTrieMap(),
        )

    @classmethod
    def loaded(cls, cluster_id: str, records: Iterable[Record], *, highest_offset: int, highest_epoch: int) -> Image:
        """The image that a snapshot's records make, at the offset and epoch of the snapshot.

        Raises:
            ReplayError: A record does not fit.
        """
        delta = _Delta(cls.empty(cluster_id))
        for number, record in enumerate(records):
            try:
                delta.replay(record)
            except ReplayError as error:
                raise ReplayError(f"{type(record).__name__}, number {number} of a snapshot: {error}") from None
        return delta.apply(highest_offset, highest_epoch)

    def apply(self, batch: Batch) -> Image:
        """The image after the next batch of the log; this one stays as it is. A batch without records changes nothing.

        Raises:
            ReplayError: A record does not fit, or the batch is not above this image in offset, or below it in epoch.
        """
        if not batch.records:
            return self
        if batch.base_offset <= self.highest_offset or batch.leader_epoch < self.highest_epoch:
            raise ReplayError(
                f"a batch at offset {batch.base_offset} of epoch {batch.leader_epoch} cannot follow "
                f"offset {self.highest_offset} of epoch {self.highest_epoch}"
            )
        delta = _Delta(self)
        for offset, record in enumerate(batch.records, batch.base_offset):
            try:
                delta.replay(record)
            except ReplayError as error:
                raise ReplayError(f"{type(record).__name__} at offset {offset}: {error}") from None
        return delta.apply(batch.last_offset, batch.leader_epoch)


@final
class _Delta:
    """What a batch changes: the parts of the image, each replaced as its records come."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._topics = TopicsDelta(image.topics)
        self._topics_changed = False
        self._cluster = image.cluster
        self._configs = image.configs
        self._acls = image.acls
        self._client_quotas = image.client_quotas
        self._scram = image.scram
        self._tokens = image.tokens
        self._features = image.features

    def replay(self, record: Record) -> None:
        match record:
            case TopicRecord() | RemoveTopicRecord() | PartitionRecord() | PartitionChangeRecord():
                self._replay_topic(record)
            case RegisterBrokerRecord():
                self._cluster = self._cluster.register(record)
            case UnregisterBrokerRecord():
                self._cluster = self._cluster.unregister(record)
            case BrokerRegistrationChangeRecord():
                self._cluster = self._cluster.change(record)
            case ConfigRecord():
                self._configs = self._configs.set(record)
            case AccessControlEntryRecord():
                self._acls = self._acls.add(record)
            case RemoveAccessControlEntryRecord():
                self._acls = self._acls.remove(record)
            case ClientQuotaRecord():
                self._client_quotas = self._client_quotas.set(record)
            case UserScramCredentialRecord():
                self._scram = self._scram.set(record)
            case RemoveUserScramCredentialRecord():
                self._scram = self._scram.remove(record)
            case DelegationTokenRecord():
                self._tokens = self._tokens.set(record)
            case RemoveDelegationTokenRecord():
                self._tokens = self._tokens.remove(record)
            case FeatureLevelRecord():
                self._replay_feature(record)
            case NoOpRecord():
                pass
            case _:
                assert_never(record)

    def apply(self, highest_offset: int, highest_epoch: int) -> Image:
        return replace(
            self._image,
            highest_offset=highest_offset,
            highest_epoch=highest_epoch,
            topics=self._topics.apply() if self._topics_changed else self._image.topics,
            cluster=self._cluster,
            configs=self._configs,
            acls=self._acls,
            client_quotas=self._client_quotas,
            scram=self._scram,
            tokens=self._tokens,
            features=self._features,
        )

    def _replay_topic(self, record: TopicRecord | RemoveTopicRecord | PartitionRecord | PartitionChangeRecord) -> None:
        self._topics_changed = True
        match record:
            case TopicRecord():
                self._topics.create(record)
            case RemoveTopicRecord():
                self._configs = self._configs.remove_topic(self._topics.remove(record))
            case PartitionRecord():
                self._topics.set_partition(record)
            case PartitionChangeRecord():
                self._topics.change_partition(record)
            case _:
                assert_never(record)

    def _replay_feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level:
            self._features = self._features.insert(record.name, record.feature_level)
        else:
            self._features = self._features.discard(record.name)
