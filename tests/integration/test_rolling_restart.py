"""Every broker, and then the sidecar, restart one after the other under a client that produces and consumes.

Straight to Kafka the same client goes through the same restarts of brokers: what it meets through the sidecar must not
be worse. Nightly: every restart takes its time.
"""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition

from tests.integration.test_clients_moved_leader import java, librdkafka
from tests.support import raw_topics
from tests.support.kafka import KafkaCluster
from tests.support.kafka.java import end_group
from tests.support.kafka.ports import HOST, free_ports
from tests.support.sidecar import NODE_PORTS, SidecarProcess
from tests.support.ways import Way

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]

RECORDS_BETWEEN_RESTARTS = 300
TIMEOUT_S = 60.0

Start = Callable[[KafkaCluster, Way, str], "subprocess.Popen[str]"]
Restart = Callable[[], None]


def way_to(kafka: KafkaCluster, sidecar: SidecarProcess | None) -> Way:
    """Straight, or through the sidecar; nothing is settled on either."""
    return Way(
        name="direct" if sidecar is None else "sidecar",
        bootstrap=kafka.bootstrap if sidecar is None else str(sidecar.bootstrap),
        nodes=kafka.brokers if sidecar is None else sidecar.nodes,
        settle=lambda: None,
        settle_access=lambda: None,
    )


def restart_of(kafka: KafkaCluster, node_id: int) -> Restart:
    def restart() -> None:
        kafka.shut_down(node_id)
        kafka.start(node_id)
        kafka.wait_ready()

    return restart


def work_through(
    kafka: KafkaCluster, way: Way, topic: str, start: Start, restarts: list[Restart]
) -> tuple[dict[str, Any], int]:
    """What a client reports that worked through these restarts, and how many records its topic has in the end."""
    raw_topics.create(kafka.brokers[1], topic, [1, 2, 3])
    kafka.wait_caught_up()
    process = start(kafka, way, topic)
    assert process.stdin is not None
    assert process.stdout is not None
    output = process.stdout

    def wait_for_progress() -> int:
        word, _, number = output.readline().partition(" ")
        assert word == "progress", f"the client ended: {word}"
        return int(number)

    try:
        done = wait_for_progress()
        for restart in restarts:
            restart()
            # Most of what comes now was under way meanwhile.
            goal = done + RECORDS_BETWEEN_RESTARTS
            while done < goal:
                done = wait_for_progress()
        process.stdin.close()
        *_, last = output
        process.wait(TIMEOUT_S)
    finally:
        end_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return json.loads(last), end_of(kafka, topic)


def end_of(kafka: KafkaCluster, topic: str) -> int:
    """How many records the only partition has."""
    consumer = KafkaConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"{topic}-unused"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
    finally:
        consumer.close()
    return int(end)


class Sidecars:
    """One sidecar after the other on the same ports."""

    def __init__(self, kafka: KafkaCluster) -> None:
        bootstrap, admin, *nodes = free_ports(2 + NODE_PORTS)
        self._kafka = kafka
        self._settings = {
            "listeners": [{"bind": f"{HOST}:{bootstrap}", "node_ports": f"{nodes[0]}-{nodes[-1]}"}],
            "admin": {"bind": f"{HOST}:{admin}"},
            "limits": {"drain_timeout_ms": 1000},
        }
        self.running = self._started()

    def restart(self) -> None:
        """SIGTERM, the drain, and another one."""
        self.end()
        self.running = self._started()

    def end(self) -> None:
        """Ends the one that runs, which must end well and without a fault."""
        self.running.terminate()
        code = self.running.wait()
        faults = [line for line in self.running.log if "ERROR" in line or "Traceback" in line]
        self.running.close()
        assert (code, faults) == (0, [])

    def _started(self) -> SidecarProcess:
        return SidecarProcess(self._kafka.bootstrap, settings=self._settings)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("start", [librdkafka, java])
def test_nothing_is_lost_or_doubled_that_is_not_without_the_sidecar(
    kafka: KafkaCluster, topic_name: str, start: Start
) -> None:
    brokers = [restart_of(kafka, node_id) for node_id in kafka.brokers]
    straight, straight_end = work_through(kafka, way_to(kafka, None), f"{topic_name}-direct", start, brokers)
    assert (straight["errors"], straight["lost"], straight_end) == ([], 0, straight["sent"])
    sidecars = Sidecars(kafka)
    try:
        restarts = [*brokers, sidecars.restart]
        way = way_to(kafka, sidecars.running)
        found, end = work_through(kafka, way, f"{topic_name}-sidecar", start, restarts)
    finally:
        sidecars.end()
    assert (found["errors"], found["lost"], end) == ([], 0, found["sent"])
    assert found["consumed"] > len(restarts) * RECORDS_BETWEEN_RESTARTS
