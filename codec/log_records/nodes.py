"""Metadata records of brokers and controllers.

RegisterBrokerRecord v1 and v2 are of the migration from ZooKeeper, v3 adds directories (KIP-858), v4 cordoned ones.
"""

from codec.schema import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, UUID, array, field, record

REGISTER_BROKER = record(
    0,
    "RegisterBrokerRecord",
    "0-4",
    field("broker_id", INT32),
    field("is_migrating_zk_broker", BOOL, "2+"),
    field("incarnation_id", UUID),
    field("broker_epoch", INT64),
    array(
        "end_points",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
        field("security_protocol", INT16),
    ),
    array(
        "features",
        field("name", STRING),
        field("min_supported_version", INT16),
        field("max_supported_version", INT16),
    ),
    field("rack", STRING, nullable=True),
    field("fenced", BOOL, default=True),
    field("in_controlled_shutdown", BOOL, "1+"),
    array("log_dirs", UUID, versions="3+", tag=0),
    array("cordoned_log_dirs", UUID, versions="4+", nullable=True, tag=1, default=None),
    flexible="0+",
)

UNREGISTER_BROKER = record(
    1,
    "UnregisterBrokerRecord",
    "0",
    field("broker_id", INT32),
    field("broker_epoch", INT64),
    flexible="0+",
)

BROKER_REGISTRATION_CHANGE = record(
    17,
    "BrokerRegistrationChangeRecord",
    "0-3",
    field("broker_id", INT32),
    field("broker_epoch", INT64),
    field("fenced", INT8, tag=0),
    field("in_controlled_shutdown", INT8, "1+", tag=1),
    array("log_dirs", UUID, versions="2+", tag=2),
    array("cordoned_log_dirs", UUID, versions="3+", nullable=True, tag=3, default=None),
    flexible="0+",
)

FENCE_BROKER = record(
    7,
    "FenceBrokerRecord",
    "0",
    field("id", INT32),
    field("epoch", INT64),
    flexible="0+",
)

UNFENCE_BROKER = record(
    8,
    "UnfenceBrokerRecord",
    "0",
    field("id", INT32),
    field("epoch", INT64),
    flexible="0+",
)

REGISTER_CONTROLLER = record(
    27,
    "RegisterControllerRecord",
    "0",
    field("controller_id", INT32),
    field("incarnation_id", UUID),
    field("zk_migration_ready", BOOL),
    array(
        "end_points",
        field("name", STRING),
        field("host", STRING),
        field("port", UINT16),
        field("security_protocol", INT16),
    ),
    array(
        "features",
        field("name", STRING),
        field("min_supported_version", INT16),
        field("max_supported_version", INT16),
    ),
    flexible="0+",
)

UNREGISTER_CONTROLLER = record(
    29,
    "UnregisterControllerRecord",
    "0",
    field("controller_id", INT32),
    flexible="0+",
)

TABLES = (
    REGISTER_BROKER,
    UNREGISTER_BROKER,
    BROKER_REGISTRATION_CHANGE,
    FENCE_BROKER,
    UNFENCE_BROKER,
    REGISTER_CONTROLLER,
    UNREGISTER_CONTROLLER,
)
