"""Metadata records that bracket others, valid together or not at all (KIP-868), and of the ZooKeeper migration."""

from codec.schema import INT8, STRING, field, record

BEGIN_TRANSACTION = record(
    23,
    "BeginTransactionRecord",
    "0",
    field("name", STRING, nullable=True, tag=0, default=None),
    flexible="0+",
)

END_TRANSACTION = record(
    24,
    "EndTransactionRecord",
    "0",
    flexible="0+",
)

ABORT_TRANSACTION = record(
    25,
    "AbortTransactionRecord",
    "0",
    field("reason", STRING, nullable=True, tag=0, default=None),
    flexible="0+",
)

ZK_MIGRATION_STATE = record(
    21,
    "ZkMigrationStateRecord",
    "0",
    field("zk_migration_state", INT8),
    flexible="0+",
)

TABLES = (
    BEGIN_TRANSACTION,
    END_TRANSACTION,
    ABORT_TRANSACTION,
    ZK_MIGRATION_STATE,
)
