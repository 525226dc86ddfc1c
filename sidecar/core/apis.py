"""What each API means to the guarantee: which requests read metadata, which write it, which must stay where they are.

The table of consistency.md sections 4 to 6 in one place. Keys that are not here are passed through untouched.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from codec.api_keys import ApiKey


class Kind(Enum):
    """How a request takes its place among the others of its connection (`sidecar.core.connection`)."""

    PLAIN = "plain"
    """Goes on to the client's own broker as it comes."""
    READ = "read"
    """A gated read: waits until a broker is proven to show what the session has seen."""
    WRITE = "write"
    """A metadata write, or a login: goes to the client's own broker, never ahead of a read that came before it."""
    CREATE = "create"
    """A Metadata request that creates topics: gated like a read, on the client's own broker, answered like a write."""


class Trace(Enum):
    """What the answer to a request leaves behind in the session (consistency.md section 4)."""

    NONE = "none"
    BROKER = "broker"
    """At least what the answering broker had."""
    HEAD = "head"
    """At least the head of the log: the controller produced the answer."""
    HEAD_EFFECTIVE = "head_effective"
    """The same, and acted upon by the broker: ACLs, SCRAM credentials, delegation tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The row of one API.

    Attributes:
        effective: depth ``auto`` asks that the broker acts on what it shows.
        pinned: only the client's own broker can answer.
    """

    kind: Kind
    trace: Trace
    effective: bool = False
    pinned: bool = False


def api_name(api_key: int) -> str:
    """The name of an API as Kafka writes it, for log and metrics: ``Metadata``; one name for all unknown keys."""
    try:
        return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))
    except ValueError:
        return "Unknown"


PLAIN: Final = Traits(kind=Kind.PLAIN, trace=Trace.NONE)
_READ: Final = Traits(kind=Kind.READ, trace=Trace.BROKER)
_WRITE: Final = Traits(kind=Kind.WRITE, trace=Trace.HEAD)
_ACCESS: Final = Traits(kind=Kind.WRITE, trace=Trace.HEAD_EFFECTIVE)

TRAITS: Final[dict[int, Traits]] = {
    # Gated reads
    ApiKey.METADATA: _READ,
    ApiKey.DESCRIBE_ACLS: Traits(kind=Kind.READ, trace=Trace.BROKER, effective=True),
    ApiKey.DESCRIBE_CONFIGS: _READ,
    ApiKey.DESCRIBE_LOG_DIRS: Traits(kind=Kind.READ, trace=Trace.BROKER, effective=True, pinned=True),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Traits(kind=Kind.READ, trace=Trace.BROKER, effective=True),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _READ,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _READ,
    ApiKey.DESCRIBE_CLUSTER: _READ,
    ApiKey.LIST_CONFIG_RESOURCES: _READ,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _READ,
    # Metadata writes
    ApiKey.CREATE_TOPICS: _WRITE,
    ApiKey.DELETE_TOPICS: _WRITE,
    ApiKey.CREATE_ACLS: _ACCESS,
    ApiKey.DELETE_ACLS: _ACCESS,
    ApiKey.ALTER_CONFIGS: _WRITE,
    ApiKey.CREATE_PARTITIONS: _WRITE,
    ApiKey.CREATE_DELEGATION_TOKEN: _ACCESS,
    ApiKey.RENEW_DELEGATION_TOKEN: _ACCESS,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _ACCESS,
    ApiKey.ELECT_LEADERS: _WRITE,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _WRITE,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _WRITE,
    ApiKey.ALTER_CLIENT_QUOTAS: _WRITE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ACCESS,
    ApiKey.UPDATE_FEATURES: _WRITE,
    ApiKey.UNREGISTER_BROKER: _WRITE,
    ApiKey.ADD_RAFT_VOTER: _WRITE,
    ApiKey.REMOVE_RAFT_VOTER: _WRITE,
    ApiKey.UNREGISTER_CONTROLLER: _WRITE,
    # May create their internal topics
    ApiKey.FIND_COORDINATOR: _WRITE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _WRITE,
    # A login, or a new one on a live connection: in the middle of it a broker takes no request that was held before
    ApiKey.SASL_HANDSHAKE: Traits(kind=Kind.WRITE, trace=Trace.NONE),
    ApiKey.SASL_AUTHENTICATE: Traits(kind=Kind.WRITE, trace=Trace.NONE),
    # Passed through, but answered by the controller, which may be ahead of every broker
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Traits(kind=Kind.PLAIN, trace=Trace.HEAD),
    ApiKey.DESCRIBE_QUORUM: Traits(kind=Kind.PLAIN, trace=Trace.HEAD),
}

TIED: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
"""After these a broker keeps what it forgets when the connection ends: who it is, records that are locked for it."""

GATED_READS: Final = frozenset(key for key, traits in TRAITS.items() if traits.kind is Kind.READ)
