"""Configuration: what texts mean, what is set, and Kafka's rules that a cluster without KIP-966 does not show."""

from typing import Any

import pytest

from backend.metadata.config_keys import ConfigKey, ConfigType, java_double
from backend.metadata.errors import ApiError
from backend.metadata.topic_configs import TOPIC_CONFIGS
from codec.api_keys import ApiKey
from tests.support.memory_backend import ELR, FRESH, MemoryBackend

SET, DELETE = 0, 1


def alter(backend: MemoryBackend, of: int, resource: str, key: str, operation: int, value: str | None) -> Any:
    configs = [{"name": key, "config_operation": operation, "value": value}]
    resources = [{"resource_type": of, "resource_name": resource, "configs": configs}]
    answer = backend.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources, "validate_only": False})
    return answer["responses"][0]["error_code"], answer["responses"][0]["error_message"]


def offset_moves(backend: MemoryBackend, *change: Any) -> int:
    before = backend.image.highest_offset
    assert alter(backend, *change) == (0, None)
    return backend.image.highest_offset - before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (-3.0, "-3.0"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-9e9, "-9.0E9"),
        (99999999999999.0, "9.9999999999999E13"),
        (0.0001, "1.0E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("of", "text", "shown"),
    [
        (ConfigType.INT, " +7 ", "7"),
        (ConfigType.LONG, "-1", "-1"),
        (ConfigType.BOOLEAN, "TRUE", "true"),
        (ConfigType.DOUBLE, ".50", "0.5"),
        (ConfigType.DOUBLE, "1e3f", "1000.0"),
        (ConfigType.LIST, " a , b", "a,b"),
        (ConfigType.LIST, "", ""),
        (ConfigType.STRING, " x y ", "x y"),
    ],
)
def test_a_value_is_shown_in_its_normal_form(of: ConfigType, text: str, shown: str) -> None:
    assert ConfigKey(name="k", type=of, default=None).canonical(text) == shown


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (ConfigType.INT, "2147483648"),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "٣"),
        (ConfigType.INT, "9" * 5000),
        (ConfigType.DOUBLE, "nope"),
        (ConfigType.BOOLEAN, "1"),
    ],
)
def test_what_java_does_not_read_is_refused(of: ConfigType, text: str) -> None:
    with pytest.raises(ApiError, match="Invalid value"):
        ConfigKey(name="k", type=of, default=None).parse(text)


def test_every_default_is_a_value_that_its_key_takes() -> None:
    for row in TOPIC_CONFIGS.values():
        assert row.key.default is not None
        assert row.key.canonical(row.key.default) == row.key.default


def test_the_page_is_in_order() -> None:
    assert list(TOPIC_CONFIGS) == sorted(TOPIC_CONFIGS)


def test_what_is_set_already_needs_no_record_but_a_broker_gets_one() -> None:
    backend = MemoryBackend()
    backend.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]})
    assert offset_moves(backend, 2, "t", "retention.ms", SET, "5") == 1
    assert offset_moves(backend, 2, "t", "retention.ms", SET, "5") == 0
    assert offset_moves(backend, 2, "t", "flush.ms", DELETE, None) == 0
    assert offset_moves(backend, 4, "1", "log.retention.ms", SET, "5") == 1
    assert offset_moves(backend, 4, "1", "log.retention.ms", SET, "5") == 1


def test_with_eligible_leader_replicas_brokers_share_one_number_of_in_sync_replicas() -> None:
    backend = MemoryBackend((*FRESH, *ELR))
    key = "min.insync.replicas"
    refused = 40
    assert alter(backend, 4, "1", key, SET, "2") == (
        refused,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    )
    assert alter(backend, 4, "", key, DELETE, None) == (
        refused,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    )
    assert alter(backend, 4, "", key, SET, "2") == (0, None)
