"""The control records of the logs: who leads, which snapshot, which voters, which transaction ends.

They stand in control batches of their own; the record's key says which one it is. Framed by `codec.control_records`.
"""

from codec.schema import INT16, INT32, INT64, STRING, UINT16, UUID, array, field, record, struct

ABORT = record(
    0,
    "EndTxnMarker",
    "0",
    field("coordinator_epoch", INT32),
    flexible=None,
)

COMMIT = record(
    1,
    "EndTxnMarker",
    "0",
    field("coordinator_epoch", INT32),
    flexible=None,
)

LEADER_CHANGE = record(
    2,
    "LeaderChangeMessage",
    "0-1",
    field("version", INT16),
    field("leader_id", INT32),
    array(
        "voters",
        field("voter_id", INT32),
        field("voter_directory_id", UUID, "1+"),
    ),
    array(
        "granting_voters",
        field("voter_id", INT32),
        field("voter_directory_id", UUID, "1+"),
    ),
    flexible="0+",
)

SNAPSHOT_HEADER = record(
    3,
    "SnapshotHeaderRecord",
    "0",
    field("version", INT16),
    field("last_contained_log_timestamp", INT64),
    flexible="0+",
)

SNAPSHOT_FOOTER = record(
    4,
    "SnapshotFooterRecord",
    "0",
    field("version", INT16),
    flexible="0+",
)

KRAFT_VERSION = record(
    5,
    "KRaftVersionRecord",
    "0",
    field("version", INT16),
    field("k_raft_version", INT16),
    flexible="0+",
)

VOTERS = record(
    6,
    "VotersRecord",
    "0",
    field("version", INT16),
    array(
        "voters",
        field("voter_id", INT32),
        field("voter_directory_id", UUID),
        array(
            "endpoints",
            field("name", STRING),
            field("host", STRING),
            field("port", UINT16),
        ),
        struct(
            "k_raft_version_feature",
            field("min_supported_version", INT16),
            field("max_supported_version", INT16),
        ),
    ),
    flexible="0+",
)

TABLES = (
    ABORT,
    COMMIT,
    LEADER_CHANGE,
    SNAPSHOT_HEADER,
    SNAPSHOT_FOOTER,
    KRAFT_VERSION,
    VOTERS,
)
