"""Metadata records of access rules, credentials and delegation tokens."""

from codec.schema import BYTES, INT8, INT32, INT64, STRING, UUID, array, field, record

ACCESS_CONTROL_ENTRY = record(
    18,
    "AccessControlEntryRecord",
    "0",
    field("id", UUID),
    field("resource_type", INT8),
    field("resource_name", STRING),
    field("pattern_type", INT8),
    field("principal", STRING),
    field("host", STRING),
    field("operation", INT8),
    field("permission_type", INT8),
    flexible="0+",
)

REMOVE_ACCESS_CONTROL_ENTRY = record(
    19,
    "RemoveAccessControlEntryRecord",
    "0",
    field("id", UUID),
    flexible="0+",
)

USER_SCRAM_CREDENTIAL = record(
    11,
    "UserScramCredentialRecord",
    "0",
    field("name", STRING),
    field("mechanism", INT8),
    field("salt", BYTES),
    field("stored_key", BYTES),
    field("server_key", BYTES),
    field("iterations", INT32),
    flexible="0+",
)

REMOVE_USER_SCRAM_CREDENTIAL = record(
    22,
    "RemoveUserScramCredentialRecord",
    "0",
    field("name", STRING),
    field("mechanism", INT8),
    flexible="0+",
)

DELEGATION_TOKEN = record(
    10,
    "DelegationTokenRecord",
    "0",
    field("owner", STRING),
    field("requester", STRING),
    array("renewers", STRING),
    field("issue_timestamp", INT64),
    field("max_timestamp", INT64),
    field("expiration_timestamp", INT64),
    field("token_id", STRING),
    flexible="0+",
)

REMOVE_DELEGATION_TOKEN = record(
    26,
    "RemoveDelegationTokenRecord",
    "0",
    field("token_id", STRING),
    flexible="0+",
)

TABLES = (
    ACCESS_CONTROL_ENTRY,
    REMOVE_ACCESS_CONTROL_ENTRY,
    USER_SCRAM_CREDENTIAL,
    REMOVE_USER_SCRAM_CREDENTIAL,
    DELEGATION_TOKEN,
    REMOVE_DELEGATION_TOKEN,
)
