"""IncrementalAlterConfigs (44) and AlterConfigs (33): the configuration of topics, brokers, groups, client metrics.

First come the checks that Kafka's broker makes before it forwards, then those of its controller (`config_changes`).
Each resource is refused or changed by itself. Errors and messages are Kafka 4.4's.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from backend.metadata.authorizer import Access, Operation
from backend.metadata.broker_configs import BROKER_CONFIGS, validate_broker_configs
from backend.metadata.config_access import config_refusal
from backend.metadata.config_changes import Change, OpType, alter_configs
from backend.metadata.config_keys import ConfigType
from backend.metadata.configs import ResourceType
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.records import Record
from backend.metadata.writes import Outcome, WriteContext, WriteRequest, error_fields
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

LOG_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
ROOT_LOGGER: Final = "root"
_BROKERS_OWN: Final = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_OPERATIONS: Final = {OpType.APPEND: "append", OpType.SUBTRACT: "subtract"}


def incremental_alter_configs(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """IncrementalAlterConfigs (44): operations on single keys."""
    return _alter_all(request, image, context, _operations)


def alter_configs_in_full(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """AlterConfigs (33): what is set from now on; whatever else was set for the resource is removed."""
    return _alter_all(request, image, context, _replacement)


Changes = tuple[list[Change], list[Change]]
"""What a client asks for in so many words, and what follows from it."""


def _operations(resource: Mapping[str, Any], _: Image) -> Changes:
    asked = [Change(config["name"], config["config_operation"], config["value"]) for config in resource["configs"]]
    return asked, []


def _replacement(resource: Mapping[str, Any], image: Image) -> Changes:
    asked = [Change(config["name"], OpType.SET, config["value"]) for config in resource["configs"]]
    left_out = set(image.configs.of(resource["resource_type"], resource["resource_name"])) - {c.name for c in asked}
    return asked, [Change(name, OpType.DELETE, None) for name in sorted(left_out)]


def _alter_all(
    request: WriteRequest,
    image: Image,
    context: WriteContext,
    changes_of: Callable[[Mapping[str, Any], Image], Changes],
) -> Outcome:
    resources: list[Mapping[str, Any]] = request.body["resources"]
    counts = Counter((resource["resource_type"], resource["resource_name"]) for resource in resources)
    access = context.access(request.client, image)
    records: list[Record] = []
    responses = []
    for resource in resources:
        error = None
        try:
            if counts[resource["resource_type"], resource["resource_name"]] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            records += _altered(request, image, access, resource, changes_of(resource, image))
        except ApiError as refusal:
            error = refusal
        responses.append(
            {
                **error_fields(error),
                "resource_type": resource["resource_type"],
                "resource_name": resource["resource_name"],
            }
        )
    return Outcome(
        records=() if request.body["validate_only"] else tuple(records),
        response={"throttle_time_ms": 0, "responses": responses},
    )


def _altered(
    request: WriteRequest, image: Image, access: Access, resource: Mapping[str, Any], changes: Changes
) -> tuple[Record, ...]:
    name: str = resource["resource_name"]
    asked, following = changes
    if len({change.name for change in asked}) < len(asked):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [change.name for change in asked if change.value is None and change.operation != OpType.DELETE]
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    resource_type = ResourceType.of(resource["resource_type"])
    is_brokers = request.api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS and resource_type in _BROKERS_OWN
    if is_brokers and not access.allows_on_cluster(Operation.ALTER_CONFIGS):
        # Kafka's broker refuses this one before it forwards, and says no more than the code.
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    match resource_type:
        case ResourceType.BROKER_LOGGER if request.api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS:
            _check_loggers(name, asked, request.broker_id)
            return ()
        case ResourceType.UNKNOWN | ResourceType.BROKER_LOGGER:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource['resource_type']}")
        case ResourceType.BROKER:
            _check_broker(image, name, [*asked, *following], request.broker_id)
        case _:
            pass
    refusal = config_refusal(access, Operation.ALTER_CONFIGS, resource)
    if refusal is not None:
        raise refusal
    return alter_configs(image, resource_type, name, [*asked, *following], newly_created=False)


def _check_broker(image: Image, name: str, changes: Iterable[Change], broker_id: int) -> None:
    """A broker's configuration is checked by that broker, the default of all brokers by any."""
    if name and _node_id(name) != broker_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {broker_id}, but received {name}")
    after = dict(image.configs.of(ResourceType.BROKER, name))
    for change in changes:
        match change.operation:
            case OpType.SET:
                assert change.value is not None
                after[change.name] = change.value
            case OpType.DELETE:
                after.pop(change.name, None)
            case OpType.APPEND | OpType.SUBTRACT as operation:
                key = BROKER_CONFIGS.get(change.name)
                if key is None:
                    raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
                if key.type is not ConfigType.LIST:
                    raise ApiError(
                        ErrorCode.INVALID_CONFIG,
                        f"Config value {_OPERATIONS[OpType(operation)]} is not allowed for config key: {change.name}",
                    )
            case _:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")
    validate_broker_configs(after)


def _check_loggers(name: str, changes: Iterable[Change], broker_id: int) -> None:
    """Kafka's checks of log levels. A broker of ours has no logger of Kafka's, so what passes is refused too."""
    if _node_id(name) != broker_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {broker_id}, but received {name}")
    for change in changes:
        match change.operation:
            case OpType.SET if change.value not in LOG_LEVELS:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
                    f"Valid log levels are {', '.join(LOG_LEVELS)}",
                )
            case OpType.DELETE if change.name == ROOT_LOGGER:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
            case OpType.SET | OpType.DELETE:
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
            case OpType.APPEND | OpType.SUBTRACT as operation:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"{OpType(operation).name} operation is not allowed for the BROKER_LOGGER resource",
                )
            case _:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {change.operation}")


def _node_id(name: str) -> int:
    if not _INTEGER.fullmatch(name):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    return int(name)
