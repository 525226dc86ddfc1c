"""From the operations on a resource's configuration to records: what IncrementalAlterConfigs and CreateTopics share.

The checks are those of Kafka's controller; those of the broker that is asked are in `config_writes`.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, final

from backend.metadata.broker_configs import BROKER_CONFIGS, ELR_FEATURE, MIN_INSYNC_REPLICAS
from backend.metadata.client_metrics_configs import validate_client_metrics_configs
from backend.metadata.config_keys import ConfigKey, ConfigType
from backend.metadata.configs import ResourceType
from backend.metadata.errors import ApiError
from backend.metadata.group_configs import validate_group_configs
from backend.metadata.image import Image
from backend.metadata.records import ConfigRecord
from backend.metadata.topic_configs import TOPIC_CONFIGS, validate_topic_configs
from backend.metadata.topic_names import validate_topic_name
from codec.error_codes import ErrorCode


@final
class OpType(enum.IntEnum):
    """Kafka's AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One operation on one key."""

    name: str
    operation: int
    value: str | None


def changes_of_new_topic(configs: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], list[Change]]:
    """The configuration that CreateTopics asks for, as a mapping and as operations; of a key named twice the last one.

    Raises:
        ApiError: INVALID_CONFIG for a null value.
    """
    wanted = {config["name"]: config["value"] for config in configs}
    nulls = [name for name, value in wanted.items() if value is None]
    if nulls:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return wanted, [Change(name, OpType.SET, value) for name, value in wanted.items()]


def alter_configs(
    image: Image, resource_type: ResourceType, resource_name: str, changes: Iterable[Change], *, newly_created: bool
) -> tuple[ConfigRecord, ...]:
    """The records that the operations on one resource come to; what is set already needs none, except for brokers.

    Raises:
        ApiError: The configuration that would result is not allowed, or the resource does not exist.
    """
    before = image.configs.of(resource_type, resource_name)
    after = dict(before)
    records: list[ConfigRecord] = []
    for change in changes:
        old = before.get(change.name)
        new = _new_value(resource_type, change, old)
        if new is None:
            after.pop(change.name, None)
        else:
            after[change.name] = new
        # KAFKA-14136: a broker reloads what its value points to when the value is set again.
        if new != old or resource_type is ResourceType.BROKER:
            records.append(
                ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=change.name, value=new)
            )
    _validate(resource_type, resource_name, after)
    if resource_type is ResourceType.BROKER and image.features.get(ELR_FEATURE, 0) > 0:
        _check_min_insync_replicas(resource_name, records)
    if not newly_created and resource_type is ResourceType.TOPIC and resource_name not in image.topics.by_name:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource_name}' does not exist.")
    return tuple(records)


def _new_value(resource_type: ResourceType, change: Change, old: str | None) -> str | None:
    match change.operation:
        case OpType.SET:
            return change.value
        case OpType.DELETE:
            return None
        case OpType.APPEND | OpType.SUBTRACT:
            return _edited(resource_type, change, old)
        case _:
            # Kafka's controller fails on a null here, and says so to nobody.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _edited(resource_type: ResourceType, change: Change, old: str | None) -> str:
    key = _KEYS.get(resource_type, {}).get(change.name)
    if key is None or key.type is not ConfigType.LIST:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {OpType(change.operation).name} to key {change.name} because its type is not LIST.",
        )
    assert change.value is not None
    parts = [part for part in ((key.default or "") if old is None else old).split(",") if part]
    for value in change.value.split(","):
        if change.operation == OpType.APPEND:
            if value not in parts:
                parts.append(value)
        elif value in parts:
            parts.remove(value)
    return ",".join(parts)


def _validate(resource_type: ResourceType, resource_name: str, configs: Mapping[str, str]) -> None:
    match resource_type:
        case ResourceType.TOPIC:
            if not resource_name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            validate_topic_name(resource_name)
            validate_topic_configs(configs)
        case ResourceType.CLIENT_METRICS:
            validate_client_metrics_configs(resource_name, configs)
        case ResourceType.GROUP:
            if not resource_name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            validate_group_configs(configs)
        case _:
            # A broker's configuration was checked by that broker.
            pass


def _check_min_insync_replicas(resource_name: str, records: Iterable[ConfigRecord]) -> None:
    for record in records:
        if record.name == MIN_INSYNC_REPLICAS and resource_name:
            raise ApiError(
                ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            )
        if record.name == MIN_INSYNC_REPLICAS and record.value is None:
            raise ApiError(
                ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            )


_KEYS: Final[Mapping[ResourceType, Mapping[str, ConfigKey]]] = {
    ResourceType.TOPIC: {name: row.key for name, row in TOPIC_CONFIGS.items()},
    ResourceType.BROKER: BROKER_CONFIGS,
}
