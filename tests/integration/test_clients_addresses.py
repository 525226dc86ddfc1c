"""Every version of the requests whose answers always name brokers, raw, straight and through the sidecar."""

import dataclasses
import importlib
from collections.abc import Iterable
from typing import Any, Final

import pytest
from kio.schema.api_versions.v3.response import ApiVersionsResponse

from tests.support.address import Address
from tests.support.kafka import KafkaCluster
from tests.support.raw_client import API_VERSIONS, ask_once
from tests.support.ways import Way

pytestmark = pytest.mark.kafka

METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER = 3, 10, 60
MODULES: Final = {METADATA: "metadata", FIND_COORDINATOR: "find_coordinator", DESCRIBE_CLUSTER: "describe_cluster"}
GROUP: Final = "addresses"
BROKERS, CONTROLLERS = 1, 2


def offered(address: Address, api_key: int) -> range:
    """The versions of an API that a client may use there."""
    answer = ask_once(address, API_VERSIONS, ApiVersionsResponse)
    (found,) = [each for each in answer.api_keys if each.api_key == api_key]
    return range(found.min_version, found.max_version + 1)


def ask(address: Address, api_key: int, version: int, **values: Any) -> Any:
    """Ask with those of `values` that this version has."""
    module = f"kio.schema.{MODULES[api_key]}.v{version}"
    name = MODULES[api_key].title().replace("_", "")
    request_type = getattr(importlib.import_module(f"{module}.request"), f"{name}Request")
    names = {field.name for field in dataclasses.fields(request_type)}
    request = request_type(**{key: value for key, value in values.items() if key in names})
    return ask_once(address, request, getattr(importlib.import_module(f"{module}.response"), f"{name}Response"))


def brokers(way: Way, answer: Any) -> list[str]:
    """The brokers of a Metadata or DescribeCluster answer."""
    ids = [each.node_id if hasattr(each, "node_id") else each.broker_id for each in answer.brokers]
    return sorted(way.place(node_id, each.host, each.port) for node_id, each in zip(ids, answer.brokers, strict=True))


def describe_cluster(address: Address, version: int, endpoint_type: int = BROKERS) -> Any:
    """The cluster, its brokers or from version 1 on its controllers."""
    return ask(
        address,
        DESCRIBE_CLUSTER,
        version,
        include_cluster_authorized_operations=False,
        endpoint_type=endpoint_type,
        include_fenced_brokers=False,
    )


@pytest.mark.row("4.1")
@pytest.mark.parametrize("api_key", MODULES)
def test_the_sidecar_offers_every_version(ways: Iterable[Way], api_key: int) -> None:
    direct, through = (offered(way.nodes[1], api_key) for way in ways)
    assert through == direct


@pytest.mark.row("1")
def test_metadata(ways: Iterable[Way]) -> None:
    for way in ways:
        for version in offered(way.nodes[1], METADATA):
            answer = ask(
                way.nodes[2],
                METADATA,
                version,
                topics=(),
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )
            assert brokers(way, answer) == way.places, version


@pytest.mark.row("1")
def test_describe_cluster(ways: Iterable[Way]) -> None:
    for way in ways:
        for version in offered(way.nodes[1], DESCRIBE_CLUSTER):
            assert brokers(way, describe_cluster(way.nodes[2], version)) == way.places, version


@pytest.mark.row("1")
def test_describe_cluster_names_no_controller_at_a_port_of_the_sidecar(ways: Iterable[Way]) -> None:
    direct, through = (describe_cluster(way.nodes[1], 1, CONTROLLERS) for way in ways)
    assert (through.error_code, through.brokers) == (direct.error_code, direct.brokers)


@pytest.mark.row("1")
@pytest.mark.parametrize("key_type", [0, 1], ids=["group", "transaction"])
def test_find_coordinator(kafka: KafkaCluster, ways: Iterable[Way], key_type: int) -> None:
    def found(way: Way, version: int) -> Any:
        answer = ask(way.nodes[3], FIND_COORDINATOR, version, key=GROUP, key_type=key_type, coordinator_keys=(GROUP,))
        return answer.coordinators[0] if hasattr(answer, "coordinators") else answer

    direct, through = ways
    # The first request creates the internal topic.
    kafka.wait_until(lambda: found(direct, 6).node_id >= 0, "there is no coordinator")
    expected = f"node {found(direct, 6).node_id}"
    for way in (direct, through):
        for version in offered(way.nodes[1], FIND_COORDINATOR):
            # Version 0 knows of groups only.
            if version == 0 and key_type != 0:
                continue
            coordinator = found(way, version)
            assert way.place(coordinator.node_id, coordinator.host, coordinator.port) == expected, version
