"""A partition moves from broker to broker under clients at work: they go on, and meet only the sidecar's ports.

Both ways are run, so that what is shown of the sidecar is known to be able to fail: straight, the same watch sees the
clients at the brokers, and the same answers name the brokers. Connections are seen twice: by the kernel, and in what
the clients log of each that they open.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support import raw_topics
from tests.support.kafka import KafkaCluster
from tests.support.kafka.java import end_group
from tests.support.raw_client import RawConnection
from tests.support.raw_records import batch, fetch, fetch_request, produce, produce_request
from tests.support.sockets import ConnectionWatch
from tests.support.ways import Way

pytestmark = pytest.mark.kafka

JAVA = Path(__file__).parent / "java" / "SteadyClient.java"
MOVES = (2, 3, 1)
RECORDS_BETWEEN_MOVES = 200

Start = Callable[[KafkaCluster, Way, str], "subprocess.Popen[str]"]


def librdkafka(kafka: KafkaCluster, way: Way, topic: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.steady_client", way.bootstrap, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def java(kafka: KafkaCluster, way: Way, topic: str) -> "subprocess.Popen[str]":
    return kafka.start_java(JAVA, way.bootstrap, topic)


def move(kafka: KafkaCluster, topic: str, node_id: int) -> None:
    """Move the only partition to this broker; returns when every broker knows."""
    raw_topics.reassign(kafka.brokers[1], topic, [node_id])

    def has_moved() -> bool:
        found = [raw_topics.partition(address, topic) for address in kafka.brokers.values()]
        return all(each is not None and (each.leader_id, each.replicas) == (node_id, (node_id,)) for each in found)

    kafka.wait_until(has_moved, f"{topic} has not moved to broker {node_id}")


def work_through_moves(kafka: KafkaCluster, way: Way, topic: str, start: Start) -> tuple[dict[str, Any], set[int]]:
    """What a client reports that worked while its partition moved, and the ports to which it was connected."""
    raw_topics.create(kafka.brokers[1], topic, [1])
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
        with ConnectionWatch(process.pid) as watch:
            done = wait_for_progress()
            for node_id in MOVES:
                move(kafka, topic, node_id)
                goal = done + RECORDS_BETWEEN_MOVES
                while done < goal:
                    done = wait_for_progress()
            watch.look()
        process.stdin.close()
        *_, last = output
        process.wait(30)
    finally:
        end_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return json.loads(last), watch.ports


@pytest.mark.row("1")
@pytest.mark.parametrize("start", [librdkafka, java])
def test_clients_go_on_through_the_ports_of_the_sidecar_alone(
    kafka: KafkaCluster, ways: Iterable[Way], topic_name: str, start: Start
) -> None:
    direct, through = ways
    real = {address.port for address in kafka.brokers.values()}
    own = {address.port for address in through.nodes.values()} | {int(through.bootstrap.rpartition(":")[2])}

    result, ports = work_through_moves(kafka, direct, f"{topic_name}-{direct.name}", start)
    assert (result["errors"], result["lost"], result["out_of_order"]) == ([], 0, 0)
    assert ports == set(result["connects"]) == real

    result, ports = work_through_moves(kafka, through, f"{topic_name}-{through.name}", start)
    assert (result["errors"], result["lost"], result["out_of_order"]) == ([], 0, 0)
    assert result["consumed"] > len(MOVES) * RECORDS_BETWEEN_MOVES
    assert ports <= set(result["connects"]) <= own
    assert {address.port for address in through.nodes.values()} <= ports


@pytest.mark.parametrize("version", [10, 11, 12, 13])
async def test_an_answer_to_produce_names_the_new_leader_at_its_own_port(
    kafka: KafkaCluster, ways: Iterable[Way], topic_name: str, version: int
) -> None:
    found = await asyncio.to_thread(_moved_topic, kafka, topic_name)
    for way in ways:
        async with await RawConnection.open(way.nodes[1]) as connection:
            request = produce_request(version, topic_name, found.topic_id, batch([b"value"]))
            answer = await produce(connection, version, request)
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code.name == "not_leader_or_follower"
        assert partition.current_leader.leader_id == 2
        assert [(e.node_id, (e.host, e.port)) for e in answer.node_endpoints] == [(2, way.nodes[2])]


@pytest.mark.parametrize("version", [16, 17, 18])
async def test_an_answer_to_fetch_names_the_new_leader_at_its_own_port(
    kafka: KafkaCluster, ways: Iterable[Way], topic_name: str, version: int
) -> None:
    found = await asyncio.to_thread(_moved_topic, kafka, topic_name)
    for way in ways:
        async with await RawConnection.open(way.nodes[1]) as connection:
            answer = await fetch(connection, version, fetch_request(version, topic_name, found.topic_id))
        (partition,) = answer.responses[0].partitions
        assert partition.error_code.name == "not_leader_or_follower"
        assert partition.current_leader.leader_id == 2
        assert [(e.node_id, (e.host, e.port)) for e in answer.node_endpoints] == [(2, way.nodes[2])]


def _moved_topic(kafka: KafkaCluster, topic: str) -> raw_topics.Partition:
    """A topic that broker 1 led and broker 2 leads now."""
    raw_topics.create(kafka.brokers[1], topic, [1])
    kafka.wait_caught_up()
    move(kafka, topic, 2)
    found = raw_topics.partition(kafka.brokers[1], topic)
    assert found is not None
    return found
