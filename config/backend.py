"""The backend's configuration: every key, its default, its bounds and one sentence about it.

As `sidecar` does for the sidecar; the same rules hold. Which values this version does not do yet is said in
`unsupported`, which rules several keys must keep together in `backend_rules`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import model_validator

from config import backend_rules, rules
from config.sidecar import DAY_MS, HOUR_MS, INT32_MAX, Logging, Section, SecurityProtocol, Ssl
from config.values import (
    SPLIT_AT_COMMAS,
    SPLIT_AT_SEMICOLONS,
    Address,
    Entries,
    File,
    Flag,
    Principal,
    ReachableHost,
    Text,
    Whole,
)

Role: TypeAlias = Literal["controller", "broker"]
ClientAuth: TypeAlias = Literal["none", "optional", "required"]
Authorizer: TypeAlias = Literal["none", "standard"]
ReadConsistency: TypeAlias = Literal["local", "linearizable"]

NodeId: TypeAlias = Annotated[int, Whole(0, INT32_MAX)]
INT16_MAX = 2**15 - 1


class Node(Section):
    """One node of the cluster: a controller, a broker, or both."""

    id: NodeId
    """Node id, unique in the cluster; required."""
    roles: Annotated[tuple[Role, ...], Entries(1, 2), SPLIT_AT_COMMAS]
    """What the node is: a list of one or both words, or one text with commas; required."""
    listen: Address | None = None
    """Address of a broker's port for clients; required for brokers."""
    controller_listen: Address | None = None
    """Address at which other nodes and Kafka's tools reach a controller; required for controllers."""
    advertised_host: ReachableHost | None = None
    """Host that clients are told to connect to; null takes that of `listen`."""
    replay_delay_ms: Annotated[int, Whole(0, HOUR_MS)] = 0
    """Time that a broker shows committed metadata late: lag on purpose."""
    publish_delay_ms: Annotated[int, Whole(0, HOUR_MS)] = 0
    """Time that a broker acts upon metadata after it shows it: access rules and credentials come late."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(backend_rules.node_faults(self))
        return self


class Quorum(Section):
    """Time limits of the metadata quorum."""

    election_timeout_ms: Annotated[int, Whole(10, HOUR_MS)] = 1000
    """Time without votes after which a candidate starts another election."""
    fetch_timeout_ms: Annotated[int, Whole(10, HOUR_MS)] = 2000
    """Time without contact to the leader after which a follower stands for election."""


class Defaults(Section):
    """What topics get that leave it to the cluster."""

    num_partitions: Annotated[int, Whole(1, 100_000)] = 1
    """Partitions of such a topic."""
    replication_factor: Annotated[int, Whole(1, INT16_MAX)] = 1
    """Replicas of its partitions, not more than there are brokers."""


class BackendSecurity(Section):
    """What clients of the brokers must speak."""

    protocol: SecurityProtocol = "PLAINTEXT"
    """Security protocol of the brokers' ports for clients."""
    ssl: Ssl = Ssl()
    client_auth: ClientAuth = "none"
    """Whether clients must show a certificate."""
    users_file: File | None = None
    """File with the users of SASL PLAIN, `NAME:PASSWORD` a line; null offers SCRAM alone."""
    session_lifetime_ms: Annotated[int, Whole(0, DAY_MS)] = HOUR_MS
    """Time after which a client must log in again by SASL; 0 for never."""
    delegation_token_secret_file: File | None = None
    """File that holds the secret of delegation tokens; null for no tokens."""
    authorizer: Authorizer = "none"
    """Whether access rules are enforced: `standard` does as Kafka's StandardAuthorizer."""
    super_users: Annotated[tuple[Principal, ...], Entries(0, 1000), SPLIT_AT_SEMICOLONS] = ()
    """Principals such as `User:admin` that may do everything: a list, or one text with semicolons."""
    allow_everyone_if_no_acl_found: Flag = False
    """Whether everybody may do what no access rule is about."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(backend_rules.security_faults(self))
        return self


class BackendAdmin(Section):
    """The HTTP listener for metrics and health."""

    bind: Address | None = None
    """Address of the admin listener; null for none."""
    token_file: File | None = None
    """File that holds the bearer token which requests must carry."""


class BackendConfig(Section):
    """The whole configuration of a backend."""

    cluster_id: Text
    """Cluster id, as clients see it; required."""
    data_dir: File | None = None
    """Directory with one folder for each node's log and snapshots; null keeps them in memory."""
    local: Annotated[tuple[NodeId, ...], Entries(1, 100), SPLIT_AT_COMMAS] | None = None
    """Ids of the nodes that this process runs; null for all."""
    noop_interval_ms: Annotated[int, Whole(0, HOUR_MS)] = 500
    """Time between two NoOp records that keep positions moving; 0 for none."""
    state_wait_ms: Annotated[int, Whole(0, 300_000)] = 3000
    """Time that a broker waits for the token of a request before STALE_METADATA; 0 answers at once."""
    read_consistency: ReadConsistency = "local"
    """What reads without a token show: what the broker has, or all that was committed before they came."""
    nodes: Annotated[tuple[Node, ...], Entries(1, 100)]
    quorum: Quorum = Quorum()
    defaults: Defaults = Defaults()
    security: BackendSecurity = BackendSecurity()
    admin: BackendAdmin = BackendAdmin()
    logging: Logging = Logging()

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(backend_rules.backend_faults(self))
        return self
