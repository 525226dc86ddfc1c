"""Fixtures for tests with real Kafka: one cluster a run for each version, healed after every test.

All such tests must run in one process: without `-n`, or with `--dist loadgroup`. They run last, those of the older
version after those of the newer, so that two clusters never compete for the machine.
"""

import os
import re
import secrets
from collections.abc import Iterator

import pytest

from tests.support.kafka import KafkaCluster
from tests.support.kafka.jars import VERSIONS, missing
from tests.support.sidecar import SidecarProcess
from tests.support.ways import Way, both_ways

FIXTURES = {"kafka": VERSIONS[0], "kafka_39": VERSIONS[1]}
REQUIRE = "TIDEGATE_REQUIRE_KAFKA"
NIGHTLY = "TIDEGATE_NIGHTLY"
TOPIC_NAME_MAX = 200


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not os.environ.get(NIGHTLY):
        dear = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=dear)
    for item in items:
        if item.get_closest_marker("kafka"):
            item.add_marker(pytest.mark.xdist_group("kafka"))
    items.sort(key=_order)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not item.get_closest_marker("kafka"):
        return
    for version in _versions(item) or VERSIONS[:1]:
        reason = missing(version)
        if reason and os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{reason}, and {REQUIRE}=1 insists on it", pytrace=False)
        elif reason:
            pytest.skip(reason)
    if hasattr(item.config, "workerinput") and not item.config.getoption("loadgroup"):
        pytest.fail(
            "tests with real Kafka share one cluster: run them without -n or with --dist loadgroup", pytrace=False
        )


class _Slot:
    """Holds the one cluster that runs."""

    def __init__(self) -> None:
        self._cluster: KafkaCluster | None = None

    def get(self, version: str) -> KafkaCluster:
        """The running cluster of this version; ends one of another version first."""
        if self._cluster is None or self._cluster.version != version:
            self.close()
            self._cluster = KafkaCluster(version=version)
        return self._cluster

    def heal(self) -> None:
        """Undo the faults of the last test."""
        if self._cluster is not None:
            self._cluster.heal()

    def close(self) -> None:
        """End the cluster, if any."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


@pytest.fixture(scope="session")
def kafka_slot() -> Iterator[_Slot]:
    """Where the running cluster is kept."""
    slot = _Slot()
    yield slot
    slot.close()


@pytest.fixture(scope="session")
def kafka(kafka_slot: _Slot) -> KafkaCluster:
    """Real Kafka, the newest version that the project tests: 3 controllers, 3 brokers, the last one able to lag."""
    return kafka_slot.get(FIXTURES["kafka"])


@pytest.fixture(scope="session")
def kafka_39(kafka_slot: _Slot) -> KafkaCluster:
    """The same with Kafka 3.9."""
    return kafka_slot.get(FIXTURES["kafka_39"])


@pytest.fixture(scope="module")
def sidecar(kafka: KafkaCluster) -> Iterator[SidecarProcess]:
    """A sidecar with the default settings in front of `kafka`, one a module; it must end well and without a fault."""
    # A client that a failed test left open must not hold up the end for long.
    with SidecarProcess(kafka.bootstrap, settings={"limits": {"drain_timeout_ms": 3000}}) as process:
        yield process
        process.terminate()
        code = process.wait()
        faults = [line for line in process.log if "ERROR" in line or "Traceback" in line]
        assert (code, faults) == (0, []), process.log_tail()


@pytest.fixture(scope="module")
def ways(kafka: KafkaCluster, sidecar: SidecarProcess) -> tuple[Way, Way]:
    """Straight to `kafka`, and to it through `sidecar`."""
    return both_ways(kafka, sidecar)


@pytest.fixture(autouse=True)
def heal_kafka(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test meets the faults of the one before: no lag, every node running, every broker caught up."""
    yield
    if not FIXTURES.keys().isdisjoint(request.fixturenames):
        request.getfixturevalue("kafka_slot").heal()


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)[:TOPIC_NAME_MAX]
    return f"{test}-{secrets.token_hex(4)}"


def _order(item: pytest.Item) -> int:
    if not item.get_closest_marker("kafka"):
        return -1
    return max((VERSIONS.index(version) for version in _versions(item)), default=0)


def _versions(item: pytest.Item) -> list[str]:
    names = item.fixturenames if isinstance(item, pytest.Function) else []
    return [version for fixture, version in FIXTURES.items() if fixture in names]
