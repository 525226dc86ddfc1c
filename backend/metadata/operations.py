"""Authorized operations, as bits: what a client that is not restricted may do to a topic or the cluster (KIP-430)."""

from typing import Final

from backend.metadata.acls import OPERATIONS

NOT_ASKED: Final = -(2**31)
"""What stands there when the client did not ask."""

_TOPIC: Final = ("READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
_CLUSTER: Final = (
    "CREATE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "ALTER",
    "DESCRIBE",
)


def topic_operations() -> int:
    """All operations on a topic."""
    return _bits(_TOPIC)


def cluster_operations() -> int:
    """All operations on the cluster."""
    return _bits(_CLUSTER)


def _bits(names: tuple[str, ...]) -> int:
    return sum(1 << OPERATIONS.index(name) for name in names)
