"""The configuration keys of groups, as Kafka 4.4 reports them, and what values they take.

Each key but a few has a broker's key behind it, whose value is the default. Brokers of ours leave those at Kafka's
defaults.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from backend.metadata.config_keys import Check, ConfigKey, ConfigType, Value, at_least, one_of
from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

_BY_DURATION: Final = re.compile(
    r"by_duration:P(?=[\dT])(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.IGNORECASE
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfigKey:
    """A group's key.

    Attributes:
        key: Name, type, default and checks.
        broker_name: The broker's key that gives the default.
        bounds: The least and the most that the broker's other keys allow, both included, or None.
    """

    key: ConfigKey
    broker_name: str
    bounds: tuple[int, int] | None


def validate_group_configs(configs: Mapping[str, str]) -> None:
    """Check the whole configuration that a group would have.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    values = {name: GROUP_CONFIGS[name].key.parse(text) for name, text in configs.items()}
    for name, value in values.items():
        bounds = GROUP_CONFIGS[name].bounds
        if bounds is not None:
            assert isinstance(value, int)
            if not bounds[0] <= value <= bounds[1]:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG, f"{name} must be in the range {bounds[0]} to {bounds[1]} inclusive."
                )
    standbys = values.get("streams.num.standby.replicas", 0)
    if isinstance(standbys, int) and standbys > STANDBY_REPLICAS_MAX:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"streams.num.standby.replicas must be less than or equal to {STANDBY_REPLICAS_MAX}",
        )
    assignor = values.get("streams.assignor.name", STREAMS_ASSIGNOR)
    if assignor != STREAMS_ASSIGNOR:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"streams.assignor.name '{assignor}' is not a registered task assignor. "
            f"Registered assignors are: [{STREAMS_ASSIGNOR}].",
        )


STANDBY_REPLICAS_MAX: Final = 2
STREAMS_ASSIGNOR: Final = "sticky"


def _offset_reset(name: str, value: Value) -> str | None:
    assert isinstance(value, str)
    if value in ("earliest", "latest") or _BY_DURATION.fullmatch(value):
        return None
    return (
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'."
    )


def _row(
    name: str,
    of: ConfigType,
    default: str | int,
    check: Check | None = None,
    *,
    bounds: tuple[int, int] | None = None,
    broker: str | None = None,
) -> GroupConfigKey:
    key = ConfigKey(name=name, type=of, default=str(default), check=check)
    return GroupConfigKey(key=key, broker_name=f"group.{name}" if broker is None else broker, bounds=bounds)


_B, _S, _I, _LIST = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LIST
_SESSION: Final = (45000, 60000)
_HEARTBEAT: Final = (5000, 15000)
_ASSIGNMENT: Final = (0, 15000)
_ROWS: Final = (
    _row("consumer.assignment.interval.ms", _I, 1000, at_least(0), bounds=_ASSIGNMENT),
    _row("consumer.heartbeat.interval.ms", _I, 5000, at_least(1), bounds=_HEARTBEAT),
    _row("consumer.session.timeout.ms", _I, 45000, at_least(1), bounds=_SESSION),
    _row("errors.deadletterqueue.copy.record.enable", _B, "false", broker="errors.deadletterqueue.copy.record.enable"),
    _row("errors.deadletterqueue.topic.name", _S, "", broker="errors.deadletterqueue.topic.name"),
    _row("share.assignment.interval.ms", _I, 1000, at_least(0), bounds=_ASSIGNMENT),
    _row("share.auto.offset.reset", _S, "latest", _offset_reset, broker="share.auto.offset.reset"),
    _row("share.delivery.count.limit", _I, 5, at_least(2), bounds=(2, 10)),
    _row("share.heartbeat.interval.ms", _I, 5000, at_least(1), bounds=_HEARTBEAT),
    _row(
        "share.isolation.level",
        _S,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        broker="share.isolation.level",
    ),
    _row("share.partition.max.record.locks", _I, 2000, at_least(100), bounds=(100, 4000)),
    _row("share.record.lock.duration.ms", _I, 30000, at_least(1000), bounds=(15000, 60000)),
    _row("share.renew.acknowledge.enable", _B, "true", broker="share.renew.acknowledge.enable"),
    _row("share.session.timeout.ms", _I, 45000, at_least(1), bounds=_SESSION),
    _row("streams.assignment.interval.ms", _I, 1000, at_least(0), bounds=_ASSIGNMENT),
    _row("streams.assignor.name", _S, STREAMS_ASSIGNOR, broker="group.streams.assignors"),
    _row("streams.heartbeat.interval.ms", _I, 5000, at_least(1), bounds=_HEARTBEAT),
    _row("streams.initial.rebalance.delay.ms", _I, 3000, at_least(0)),
    _row("streams.num.standby.replicas", _I, 0, at_least(0)),
    _row("streams.rack.aware.assignment.tags", _LIST, ""),
    _row("streams.session.timeout.ms", _I, 45000, at_least(1), bounds=_SESSION),
)
GROUP_CONFIGS: Final = {row.key.name: row for row in _ROWS}
"""Name to key, in order of the names."""
