"""The configuration of client metrics subscriptions (KIP-714): three keys, and what values they take."""

import re
from collections.abc import Mapping
from typing import Final

from backend.metadata.config_keys import ConfigKey, ConfigType
from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"
INTERVAL_MIN_MS: Final = 100
INTERVAL_MAX_MS: Final = 3600000

CLIENT_METRICS_CONFIGS: Final = {
    INTERVAL_MS: ConfigKey(name=INTERVAL_MS, type=ConfigType.INT, default="300000"),
    MATCH: ConfigKey(name=MATCH, type=ConfigType.LIST, default=""),
    "metrics": ConfigKey(name="metrics", type=ConfigType.LIST, default=""),
}
"""Name to key, in order of the names."""

_SELECTORS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def validate_client_metrics_configs(subscription: str, configs: Mapping[str, str]) -> None:
    """Check the whole configuration that a subscription would have.

    Raises:
        ApiError: INVALID_REQUEST or INVALID_CONFIG, as Kafka has it.
    """
    if not subscription:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for name in configs:
        if name not in CLIENT_METRICS_CONFIGS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in configs.items()}
    interval_ms = values.get(INTERVAL_MS)
    if isinstance(interval_ms, int) and not INTERVAL_MIN_MS <= interval_ms <= INTERVAL_MAX_MS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between {INTERVAL_MIN_MS} and "
            f"{INTERVAL_MAX_MS} (1 hour)",
        )
    patterns = values.get(MATCH, [])
    assert isinstance(patterns, list)
    for pattern in patterns:
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    selector, equals, expression = pattern.partition("=")
    legal = bool(equals) and selector.strip() in _SELECTORS
    if legal:
        try:
            re.compile(expression.strip())
        except re.error:
            legal = False
    if not legal:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
