"""DescribeConfigs (32) and ListConfigResources (74): what is configured, and for what.

What is in a topic's answer depends on the brokers' configuration too, and a broker's own is told by that broker only.
Errors and messages are Kafka 4.4's.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from backend.metadata.authorizer import Operation
from backend.metadata.broker_configs import BrokerConfig, broker_configs, default_broker_configs
from backend.metadata.client_metrics_configs import CLIENT_METRICS_CONFIGS
from backend.metadata.config_access import config_refusal
from backend.metadata.config_keys import ConfigSource, ConfigType
from backend.metadata.configs import ResourceType
from backend.metadata.errors import ApiError
from backend.metadata.group_configs import GROUP_CONFIGS
from backend.metadata.reader import Reader
from backend.metadata.topic_configs import Synonym, effective_configs
from backend.metadata.topic_names import validate_topic_name
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode

UNEXPECTED_REQUEST: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def describe_configs(request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeConfigs (32); a type that Kafka does not know makes it refuse all resources of the request."""
    resources: list[Mapping[str, Any]] = request["resources"]
    known = all(ResourceType.of(resource["resource_type"]) in _DESCRIBE for resource in resources)
    results = []
    for resource in resources:
        code, message, configs = ErrorCode.NONE, "", list[Body]()
        try:
            if not known:
                raise ApiError(ErrorCode.INVALID_REQUEST, UNEXPECTED_REQUEST)
            _check_access(reader, resource)
            describe = _DESCRIBE[ResourceType.of(resource["resource_type"])]
            configs = _selected(describe(resource["resource_name"], reader), resource["configuration_keys"])
        except ApiError as error:
            code, message = error.code, error.message or ""
        if not request["include_synonyms"]:
            configs = [{**config, "synonyms": []} for config in configs]
        results.append(
            {
                "error_code": code.value,
                "error_message": message,
                "resource_type": resource["resource_type"],
                "resource_name": resource["resource_name"],
                "configs": configs,
            }
        )
    return {"throttle_time_ms": 0, "results": results}


def _check_access(reader: Reader, resource: Mapping[str, Any]) -> None:
    """A topic's and a group's configuration is theirs, all other is the cluster's."""
    error = config_refusal(reader.access, Operation.DESCRIBE_CONFIGS, resource)
    if error is not None:
        raise error


def list_config_resources(api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """ListConfigResources (74): v0 knows client metrics only; no type named means every type."""
    wanted = request["resource_types"] if api_version >= 1 else [ResourceType.CLIENT_METRICS]
    types = [ResourceType.of(number) for number in wanted] or list(_LISTED)
    if ResourceType.UNKNOWN in types:
        return {"throttle_time_ms": 0, "error_code": ErrorCode.UNSUPPORTED_VERSION.value, "config_resources": []}
    resources = [
        {"resource_name": name, "resource_type": resource_type.value}
        for resource_type in _LISTED
        if resource_type in types
        for name in _names(resource_type, reader)
    ]
    return {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "config_resources": resources}


_LISTED: Final = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def _names(resource_type: ResourceType, reader: Reader) -> list[str]:
    match resource_type:
        case ResourceType.TOPIC:
            return sorted(reader.image.topics.by_name)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(broker.broker_id) for broker in reader.image.cluster.registered()]
        case _:
            resources = reader.image.configs.resources
            return sorted(name for of, name in resources if of == resource_type)


def _topic(name: str, reader: Reader) -> list[Body]:
    validate_topic_name(name)
    if name not in reader.image.topics.by_name:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    own = reader.image.configs.of(ResourceType.TOPIC, name)
    effective = effective_configs(own, reader.image.configs, reader.node_id, reader.static_configs)
    return [
        _entry(config.key.name, config.value, config.key.type, config.source, synonyms=config.synonyms)
        for config in effective
    ]


def _broker(name: str, reader: Reader) -> list[Body]:
    if not name:
        return [_broker_entry(config) for config in default_broker_configs(reader.image.configs)]
    if _broker_id(name) != reader.node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {reader.node_id} or empty string, but received {name}",
        )
    configs = broker_configs(reader.image.configs, reader.node_id, reader.static_configs)
    return [_broker_entry(config) for config in configs]


def _broker_logger(name: str, reader: Reader) -> list[Body]:
    """A broker of ours has none of Kafka's loggers."""
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if _broker_id(name) != reader.node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {reader.node_id} but received {name}"
        )
    return []


def _client_metrics(name: str, reader: Reader) -> list[Body]:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    own = reader.image.configs.of(ResourceType.CLIENT_METRICS, name)
    entries = []
    for key in CLIENT_METRICS_CONFIGS.values():
        if key.name in own:
            set_here = Synonym(name=key.name, value=own[key.name], source=ConfigSource.CLIENT_METRICS)
            entries.append(_entry(key.name, set_here.value, key.type, set_here.source, synonyms=(set_here,)))
        else:
            entries.append(_entry(key.name, key.default, key.type, ConfigSource.DEFAULT))
    return entries


def _group(name: str, reader: Reader) -> list[Body]:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    own = reader.image.configs.of(ResourceType.GROUP, name)
    entries = []
    for row in GROUP_CONFIGS.values():
        key = row.key
        assert key.default is not None
        synonyms = [Synonym(name=row.broker_name, value=key.default, source=ConfigSource.DEFAULT)]
        if key.name in own:
            synonyms.insert(0, Synonym(name=key.name, value=key.canonical(own[key.name]), source=ConfigSource.GROUP))
        entries.append(_entry(key.name, synonyms[0].value, key.type, synonyms[0].source, synonyms=synonyms))
    return entries


_DESCRIBE: Final[Mapping[ResourceType, Callable[[str, Reader], list[Body]]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _broker_logger,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}


def _selected(configs: list[Body], names: Iterable[str] | None) -> list[Body]:
    wanted = set(names or ())
    return [config for config in configs if config["name"] in wanted] if wanted else configs


def _broker_entry(config: BrokerConfig) -> Body:
    """A key that nobody knows may hold a secret, so its value stays with us, as in Kafka."""
    secret = config.key is None
    return _entry(
        config.name,
        config.value,
        ConfigType.UNKNOWN if config.key is None else config.key.type,
        config.source,
        synonyms=config.synonyms,
        read_only=config.read_only,
        secret=secret,
    )


def _entry(
    name: str,
    value: str | None,
    config_type: ConfigType,
    source: ConfigSource,
    *,
    synonyms: Iterable[Synonym] = (),
    read_only: bool = False,
    secret: bool = False,
) -> Body:
    return {
        "name": name,
        "value": value,
        "read_only": read_only,
        "config_source": source.value,
        "is_sensitive": secret,
        "synonyms": [
            {"name": synonym.name, "value": None if secret else synonym.value, "source": synonym.source.value}
            for synonym in synonyms
        ],
        "config_type": config_type.value,
        "documentation": None,
    }


def _broker_id(name: str) -> int:
    if not _INTEGER.fullmatch(name):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return int(name)
