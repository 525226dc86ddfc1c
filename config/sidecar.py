"""The sidecar's configuration: every key, its default, its bounds and one sentence about it.

The sentences below the keys become the help of the JSON Schema and of docs/configuration.md. Keys and defaults are a
public interface: add, never rename. Which values this version does not do yet is said in `unsupported`, which rules
several keys must keep together in `rules`; reading files is the business of `load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from config import rules
from config.values import (
    SPLIT_AT_COMMAS,
    Address,
    Entries,
    File,
    Flag,
    HostPort,
    PortRange,
    Ports,
    ReachableHost,
    Text,
    Whole,
)

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
HeadSource: TypeAlias = Literal["describe_quorum", "controller_fetch", "broker_max", "header"]
Level: TypeAlias = Literal[
    "eventual", "bounded", "monotonic", "read_your_writes", "session", "causal", "linearizable", "linearizable_strict"
]
Scope: TypeAlias = Literal["connection", "client_id", "principal", "label", "service", "fleet"]
OnTimeout: TypeAlias = Literal["error", "freshest", "stale", "close"]
Depth: TypeAlias = Literal["auto", "visible", "effective"]
WriteBarrier: TypeAlias = Literal["committed", "visible_local", "visible_all", "effective_all"]
GatedApi: TypeAlias = Literal[
    "metadata",
    "describe_acls",
    "describe_configs",
    "describe_log_dirs",
    "describe_delegation_token",
    "describe_client_quotas",
    "describe_user_scram_credentials",
    "describe_cluster",
    "list_config_resources",
    "describe_topic_partitions",
]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
TIB = 2**40


class Section(BaseModel):
    """A group of keys: immutable, unknown keys refused, values kept out of error texts."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True, validate_default=False
    )


class Ssl(Section):
    """TLS files and checks of one side."""

    ca_file: File | None = None
    """PEM file with the certificate authorities to trust; towards brokers, null trusts those of the system."""
    cert_file: File | None = None
    """PEM file with the own certificate chain."""
    key_file: File | None = None
    """PEM file with the private key of the certificate; null: it is in `cert_file`."""
    key_password_file: File | None = None
    """File that holds the password of the private key."""
    verify_hostname: Flag = True
    """Whether a broker's certificate must carry the host name that was dialled."""


class Sasl(Section):
    """SASL login of the sidecar's own connections."""

    mechanism: SaslMechanism | None = None
    """SASL mechanism; required with a SASL protocol."""
    username: Text | None = None
    """User name for PLAIN and SCRAM."""
    password_file: File | None = None
    """File that holds the password for PLAIN and SCRAM; one newline at its end is ignored."""
    token_file: File | None = None
    """File that holds the token for OAUTHBEARER; read again for every login."""


class ClusterSecurity(Section):
    """How the sidecar's own connections (probes, discovery, routed reads of anonymous clients) are secured."""

    protocol: SecurityProtocol = "PLAINTEXT"
    """Security protocol of the brokers' listener."""
    ssl: Ssl = Ssl()
    sasl: Sasl = Sasl()

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(rules.security_faults(self))
        return self


class Probe(Section):
    """When the position of a broker and the head are asked for."""

    idle_interval_ms: Annotated[int, Whole(10, HOUR_MS)] = 1000
    """Time between two probes of a broker while no request waits."""
    min_interval_ms: Annotated[int, Whole(1, 10_000)] = 2
    """Least time between two probes of a broker while requests wait."""
    timeout_ms: Annotated[int, Whole(10, 60_000)] = 1000
    """Time after which a probe without an answer has failed."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(rules.probe_faults(self))
        return self


class Cluster(Section):
    """The Kafka cluster behind the sidecar."""

    bootstrap_servers: Annotated[tuple[Address, ...], Entries(1, 100), SPLIT_AT_COMMAS]
    """Brokers to ask for all the others: a list, or one text with commas; required."""
    security: ClusterSecurity = ClusterSecurity()
    head_source: HeadSource = "describe_quorum"
    """Where the offset of the last committed metadata record is learnt."""
    controllers: Annotated[tuple[Address, ...], Entries(0, 100), SPLIT_AT_COMMAS] = ()
    """Controllers to fetch from, for `controller_fetch`."""
    probe: Probe = Probe()


class ListenerSecurity(Section):
    """What clients must speak on a listener."""

    protocol: SecurityProtocol = "PLAINTEXT"
    """Security protocol for clients; their SASL passes through to the broker, whatever it says of SASL."""
    ssl: Ssl = Ssl()
    client_auth: Literal["none", "optional", "required"] = "none"
    """Whether clients must show a certificate."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(rules.listener_security_faults(self))
        return self


class Listener(Section):
    """One bootstrap port and a range of ports, one for each broker."""

    name: Text = "default"
    """Name of the listener in logs; unique."""
    bind: Address = HostPort("127.0.0.1", 19092)
    """Address of the bootstrap port: what clients use as `bootstrap.servers`."""
    advertised_host: ReachableHost = "127.0.0.1"
    """Host that clients are told to connect to; an IPv6 address goes without brackets."""
    node_ports: Ports = PortRange(19101, 19199)
    """Ports for brokers, on the host of `bind`: node id n takes the first + n - 1, or else the next free one."""
    advertised_node_ports: Ports | None = None
    """Ports that clients are told instead, as many as `node_ports`, where a port mapping lies between."""
    security: ListenerSecurity = ListenerSecurity()
    session: Text | None = None
    """Label of the session that all clients of this listener share."""
    identity: Literal["client", "sidecar"] = "client"
    """Who logs in to brokers: each client itself, or the sidecar for its clients, with `cluster.security`."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(rules.listener_faults(self))
        return self


class ApiOverride(Section):
    """What one API requires instead of the general level and depth."""

    level: Level | None = None
    """Level of this API; null takes `consistency.level`."""
    depth: Depth | None = None
    """Depth of this API; null takes `consistency.depth`."""


class Bounded(Section):
    """How stale an answer may be at level `bounded`."""

    max_lag_records: Annotated[int, Whole(0, INT64_MAX)] = 0
    """Records that a broker may be behind the head."""
    max_lag_ms: Annotated[int, Whole(0, HOUR_MS)] = 0
    """Time that a broker may be behind the head."""


class Consistency(Section):
    """What reads of metadata may show, and what happens when no broker can show it in time."""

    level: Level = "session"
    """What a gated read must show: nothing in particular, the session's past, or the latest."""
    scope: Scope = "service"
    """Who shares a session: one connection, one client id, or all clients of this sidecar."""
    wait_timeout_ms: Annotated[int, Whole(1, 300_000)] = 3000
    """Time that a read is held at most; keep it well below the request timeout of the clients (often 30 s)."""
    on_timeout: OnTimeout = "error"
    """What a read gets when that time is over: a retriable error, the best or any broker's answer, or a close."""
    depth: Depth = "auto"
    """Whether a change must be visible only or in effect too; `auto` decides by API."""
    apis: Mapping[GatedApi, ApiOverride] = Field(default_factory=dict)
    """Level and depth of single APIs, for example `{describe_acls: {level: linearizable, depth: effective}}`."""
    write_barrier: WriteBarrier = "committed"
    """Until when the answer to a metadata write is held."""
    barrier_grace_ms: Annotated[int, Whole(0, 300_000)] = 1000
    """Time after which a write barrier gives up on a broker."""
    barrier_on_grace: Literal["release", "error"] = "release"
    """What a write gets when a broker was given up."""
    effective_grace_ms: Annotated[int, Whole(1, 300_000)] = 2000
    """Time to wait for the proof that a change is in effect before `on_timeout` applies."""
    serialize_writes: Flag = False
    """Whether the metadata writes of a session are sent one after the other."""
    gate_data_plane: Flag = False
    """Whether produce, fetch and the like are held until their broker shows the session's past."""
    bounded: Bounded = Bounded()
    expose_state: Flag = False
    """Whether ConsistencyState stays in answers to clients."""


class Limits(Section):
    """Bounds on what clients can make the sidecar keep."""

    connections: Annotated[int, Whole(1, 1_000_000)] = 10_000
    """Client connections; further ones are closed at once."""
    in_flight_per_connection: Annotated[int, Whole(1, 100_000)] = 1000
    """Unanswered requests of a connection before reading from it pauses."""
    frame_bytes: Annotated[int, Whole(1024, INT32_MAX)] = 104_857_600
    """Size of a request or answer; a larger one closes its connection."""
    held_requests: Annotated[int, Whole(1, 1_000_000)] = 10_000
    """Requests that wait for a broker to catch up, in all."""
    held_bytes: Annotated[int, Whole(1024, TIB)] = 67_108_864
    """Bytes of the requests that wait, in all."""
    overtaken_answer_bytes: Annotated[int, Whole(0, INT32_MAX)] = 1_048_576
    """Bytes of answers kept behind a held read of a connection before reading from its client pauses."""
    sessions: Annotated[int, Whole(1, 10_000_000)] = 10_000
    """Sessions remembered; the one longest unused goes first."""
    session_idle_ms: Annotated[int, Whole(1000, 30 * DAY_MS)] = 1_800_000
    """Time after which an unused session is forgotten."""
    drain_timeout_ms: Annotated[int, Whole(0, HOUR_MS)] = 30_000
    """Time that clients have to close by themselves after SIGTERM."""


class Admin(Section):
    """The HTTP listener for metrics, health and state."""

    bind: Address = HostPort("127.0.0.1", 9464)
    """Address of the admin listener."""
    token_file: File | None = None
    """File with the bearer token that requests must carry, except for `/livez` and, without reasons, `/readyz`."""


class Logging(Section):
    """Log lines on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is logged."""
    format: Literal["text", "json"] = "text"
    """One line of text, or one JSON object, for each event."""


class Fleet(Section):
    """A store that several sidecars share."""

    url: Text | None = None
    """Address of the store for scope `fleet`."""


class SidecarConfig(Section):
    """The whole configuration of a sidecar."""

    cluster: Cluster
    listeners: Annotated[tuple[Listener, ...], Entries(1, 100)] = (Listener(),)
    consistency: Consistency = Consistency()
    limits: Limits = Limits()
    admin: Admin = Admin()
    logging: Logging = Logging()
    state_file: File | None = None
    """File that remembers the port of each broker over restarts."""
    fleet: Fleet = Fleet()

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        rules.refuse(rules.sidecar_faults(self))
        return self
