"""AlterClientQuotas (49): quotas of users, clients and addresses. Errors and messages are Kafka 4.4's."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from backend.metadata.config_keys import INT_MAX, LONG_MAX, ConfigType
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.quotas import CLIENT_ID, IP, USER, QuotaEntity, entity_of
from backend.metadata.records import ClientQuotaRecord, EntityData
from backend.metadata.writes import Outcome, WriteRequest, error_fields
from codec.error_codes import ErrorCode

USER_QUOTAS: Final = {
    "producer_byte_rate": ConfigType.LONG,
    "consumer_byte_rate": ConfigType.LONG,
    "request_percentage": ConfigType.DOUBLE,
    "controller_mutation_rate": ConfigType.DOUBLE,
}
IP_QUOTAS: Final = {"connection_creation_rate": ConfigType.INT}
_MOST: Final = {ConfigType.INT: (INT_MAX, "an INT"), ConfigType.LONG: (LONG_MAX, "a LONG")}
_FRACTION: Final = 1e-6
_HOST: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*\.?")


def alter_client_quotas(request: WriteRequest, image: Image) -> Outcome:
    """AlterClientQuotas (49); of an entity that is named twice the first change counts and the answer is an error."""
    results: dict[QuotaEntity, ApiError | None] = {}
    records: list[ClientQuotaRecord] = []
    for entry in request.body["entries"]:
        parts = tuple(EntityData(entity_type=p["entity_type"], entity_name=p["entity_name"]) for p in entry["entity"])
        entity = entity_of(parts)
        keys = [op["key"] for op in entry["ops"]]
        if entity in results or len(set(keys)) < len(keys):
            reason = f"Ignoring duplicate entity ClientQuotaEntity(entries={_java_map(entity)})"
            results[entity] = ApiError(ErrorCode.INVALID_REQUEST, reason)
            continue
        try:
            records += _altered(image, parts, entity, entry["ops"])
            results[entity] = None
        except ApiError as error:
            results[entity] = error
    entries = [
        {
            **error_fields(error),
            "entity": [{"entity_type": entity_type, "entity_name": name} for entity_type, name in entity],
        }
        for entity, error in results.items()
    ]
    return Outcome(
        records=() if request.body["validate_only"] else tuple(records),
        response={"throttle_time_ms": 0, "entries": entries},
    )


def _altered(
    image: Image, parts: tuple[EntityData, ...], entity: QuotaEntity, ops: Iterable[Mapping[str, Any]]
) -> list[ClientQuotaRecord]:
    keys = _keys_of(entity)
    before = image.client_quotas.of(entity)
    records: list[ClientQuotaRecord] = []
    for op in ops:
        key, value = op["key"], op["value"]
        if op["remove"]:
            if key in before:
                records.append(ClientQuotaRecord(entity=parts, key=key, remove=True))
            continue
        reason = _value_fault(keys, key, value)
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST, reason)
        if before.get(key) != value:
            records.append(ClientQuotaRecord(entity=parts, key=key, value=value))
    return records


def _keys_of(entity: QuotaEntity) -> Mapping[str, ConfigType]:
    """The keys that an entity may have."""
    names: dict[str, str | None] = {}
    for entity_type, name in entity:
        if entity_type not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Empty {entity_type} not supported")
        names[entity_type] = name
    if not names:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    if IP not in names:
        return USER_QUOTAS
    if len(names) > 1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        )
    address = names[IP]
    if address is not None and not _may_be_host(address):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP or resolvable host.")
    return IP_QUOTAS


def _value_fault(keys: Mapping[str, ConfigType], key: str, value: float) -> str | None:
    quota_type = keys.get(key)
    if quota_type is None:
        return f"Invalid configuration key {key}"
    if not value > 0.0:
        return f"Quota {key} must be greater than 0"
    if quota_type is ConfigType.DOUBLE:
        return None
    most, name = _MOST[quota_type]
    if value > most:
        return f"Proposed value for {key} is too large for {name}."
    return f"{key} cannot be a fractional value." if abs(value % 1.0) > _FRACTION else None


def _may_be_host(address: str) -> bool:
    """Whether it is an address, or a name that could be resolved; Kafka resolves it, we ask nobody."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return _HOST.fullmatch(address) is not None
    return True


def _java_map(entity: QuotaEntity) -> str:
    return "{" + ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity) + "}"
