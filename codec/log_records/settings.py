"""Metadata records of configurations, quotas, features and producer ids; NoOp says that the leader lives."""

from codec.schema import BOOL, FLOAT64, INT8, INT16, INT32, INT64, STRING, array, field, record

CONFIG = record(
    4,
    "ConfigRecord",
    "0",
    field("resource_type", INT8),
    field("resource_name", STRING),
    field("name", STRING),
    field("value", STRING, nullable=True),
    flexible="0+",
)

CLIENT_QUOTA = record(
    14,
    "ClientQuotaRecord",
    "0",
    array(
        "entity",
        field("entity_type", STRING),
        field("entity_name", STRING, nullable=True),
    ),
    field("key", STRING),
    field("value", FLOAT64),
    field("remove", BOOL),
    flexible="0+",
)

FEATURE_LEVEL = record(
    12,
    "FeatureLevelRecord",
    "0",
    field("name", STRING),
    field("feature_level", INT16),
    flexible="0+",
)

PRODUCER_IDS = record(
    15,
    "ProducerIdsRecord",
    "0",
    field("broker_id", INT32),
    field("broker_epoch", INT64, default=-1),
    field("next_producer_id", INT64),
    flexible="0+",
)

NO_OP = record(
    20,
    "NoOpRecord",
    "0",
    flexible="0+",
)

TABLES = (
    CONFIG,
    CLIENT_QUOTA,
    FEATURE_LEVEL,
    PRODUCER_IDS,
    NO_OP,
)
