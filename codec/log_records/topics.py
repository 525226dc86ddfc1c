"""Metadata records of topics and partitions.

PartitionRecord v1 and PartitionChangeRecord v1 add directories (KIP-858), v2 eligible leader replicas (KIP-966).
"""

from codec.schema import INT8, INT32, STRING, UUID, array, field, record

TOPIC = record(
    2,
    "TopicRecord",
    "0",
    field("name", STRING),
    field("topic_id", UUID),
    flexible="0+",
)

PARTITION = record(
    3,
    "PartitionRecord",
    "0-2",
    field("partition_id", INT32, default=-1),
    field("topic_id", UUID),
    array("replicas", INT32),
    array("isr", INT32),
    array("removing_replicas", INT32),
    array("adding_replicas", INT32),
    field("leader", INT32, default=-1),
    field("leader_recovery_state", INT8, tag=0),
    field("leader_epoch", INT32, default=-1),
    field("partition_epoch", INT32, default=-1),
    array("directories", UUID, versions="1+"),
    array("eligible_leader_replicas", INT32, versions="2+", nullable=True, tag=1, default=None),
    array("last_known_elr", INT32, versions="2+", nullable=True, tag=2, default=None),
    flexible="0+",
)

PARTITION_CHANGE = record(
    5,
    "PartitionChangeRecord",
    "0-2",
    field("partition_id", INT32, default=-1),
    field("topic_id", UUID),
    array("isr", INT32, nullable=True, tag=0, default=None),
    field("leader", INT32, tag=1, default=-2),
    array("replicas", INT32, nullable=True, tag=2, default=None),
    array("removing_replicas", INT32, nullable=True, tag=3, default=None),
    array("adding_replicas", INT32, nullable=True, tag=4, default=None),
    field("leader_recovery_state", INT8, tag=5, default=-1),
    array("directories", UUID, versions="1+", nullable=True, tag=8, default=None),
    array("eligible_leader_replicas", INT32, versions="2+", nullable=True, tag=6, default=None),
    array("last_known_elr", INT32, versions="2+", nullable=True, tag=7, default=None),
    flexible="0+",
)

REMOVE_TOPIC = record(
    9,
    "RemoveTopicRecord",
    "0",
    field("topic_id", UUID),
    flexible="0+",
)

CLEAR_ELR = record(
    28,
    "ClearElrRecord",
    "0",
    field("topic_name", STRING),
    flexible="0+",
)

TABLES = (
    TOPIC,
    PARTITION,
    PARTITION_CHANGE,
    REMOVE_TOPIC,
    CLEAR_ELR,
)
