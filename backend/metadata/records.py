"""The records of Kafka's metadata log, as values.

Names and fields are those of the record definitions in Kafka's metadata module, in snake_case; an id is 16 raw bytes.
Their bytes in a log are not this module's business. Every change of the image is one of these, and nothing else is.
"""

from dataclasses import dataclass, field
from typing import Final, final

Uuid = bytes
"""16 raw bytes."""

UUID_ZERO: Final[Uuid] = bytes(16)
UNASSIGNED_DIRECTORY: Final[Uuid] = UUID_ZERO
"""Where a replica lives before its broker has said so (KIP-858)."""

NO_LEADER: Final = -1
LEADER_UNCHANGED: Final = -2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """One listener of a broker as clients reach it; `security_protocol` is Kafka's number, 0 for PLAINTEXT."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature:
    """The levels of one feature that a broker supports."""

    name: str
    min_supported_version: int
    max_supported_version: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker process has registered, in place of any before it. `broker_epoch` is the record's own offset."""

    broker_id: int
    incarnation_id: Uuid
    broker_epoch: int
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    is_migrating_zk_broker: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    """A broker has left for good."""

    broker_id: int
    broker_epoch: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """A registration has changed in part.

    Attributes:
        broker_id: Whose.
        broker_epoch: That registration's epoch.
        fenced: 1 is now fenced, -1 is no longer, 0 as before.
        in_controlled_shutdown: 1 is now shutting down, 0 as before.
        log_dirs: The directories that are available now; empty for as before.
        cordoned_log_dirs: The directories that take no new replicas; None for as before.
    """

    broker_id: int
    broker_epoch: int
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A topic exists from now on; its partitions follow."""

    name: str
    topic_id: Uuid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """A topic is gone, with its partitions and its configuration."""

    topic_id: Uuid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """The whole state of a partition. `directories` goes with `replicas`, in the same order (KIP-858)."""

    partition_id: int
    topic_id: Uuid
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int
    leader_recovery_state: int = 0
    leader_epoch: int
    partition_epoch: int
    directories: tuple[Uuid, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """What has changed in a partition: None, -2 for the leader and -1 for its recovery state mean as before."""

    partition_id: int
    topic_id: Uuid
    isr: tuple[int, ...] | None = None
    leader: int = LEADER_UNCHANGED
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int = -1
    directories: tuple[Uuid, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """One configuration key of a resource; a null value removes it. `resource_type` is Kafka's ConfigResource.Type."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord:
    """An access rule; the numbers are Kafka's ResourceType, PatternType, AclOperation and AclPermissionType."""

    id: Uuid
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord:
    """An access rule is gone."""

    id: Uuid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    """One part of a quota's entity: `user`, `client-id` or `ip`, and its name or None for the default of that type."""

    entity_type: str
    entity_name: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    """One quota key of an entity is set, or removed."""

    entity: tuple[EntityData, ...]
    key: str
    value: float = 0.0
    remove: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord:
    """A SCRAM credential; what could be used to log in is left out of its repr."""

    name: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord:
    """A SCRAM credential is gone."""

    name: str
    mechanism: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord:
    """A delegation token, all of it; principals are `Type:name`, times milliseconds since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord:
    """A delegation token is gone."""

    token_id: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """The finalized level of a feature, `metadata.version` above all; 0 removes it."""

    name: str
    feature_level: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    """Nothing but an offset: keeps positions moving on an idle cluster (KIP-835). Control records count as these."""


Record = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | ClientQuotaRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | FeatureLevelRecord
    | NoOpRecord
)
"""Any record that the image understands."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records that were committed together, at consecutive offsets from `base_offset`, by the leader of an epoch."""

    base_offset: int
    leader_epoch: int
    records: tuple[Record, ...]

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + len(self.records) - 1
