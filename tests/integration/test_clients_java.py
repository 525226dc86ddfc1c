"""Kafka's own Java clients, straight and through the sidecar: the same script, the same results."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.kafka import KafkaCluster
from tests.support.kafka.java import end_group
from tests.support.ways import Way

pytestmark = pytest.mark.kafka

SCRIPT = Path(__file__).parent / "java" / "ClientScript.java"
NODE = re.compile(r"(\d+)@([^:\s]+):(\d+)")


def run_script(kafka: KafkaCluster, way: Way, topic: str) -> dict[str, str]:
    """What the script saw, every address made a place."""
    seen: dict[str, str] = {}
    process = kafka.start_java(SCRIPT, way.bootstrap, topic)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            name, is_result, value = line.rstrip("\n").partition(" = ")
            if is_result:
                seen[name] = NODE.sub(lambda m: way.place(int(m[1]), m[2], int(m[3])), value).replace(topic, "TOPIC")
                continue
            assert name in ("settle", "settle access")
            (way.settle if name == "settle" else way.settle_access)()
            process.stdin.write("\n")
            process.stdin.flush()
        _, log = process.communicate(timeout=30)
    finally:
        end_group(process)
    assert (process.returncode, seen.get("done")) == (0, "yes"), log
    return seen


def test_every_call_of_the_script(kafka: KafkaCluster, ways: Iterable[Way], topic_name: str) -> None:
    direct, through = (run_script(kafka, way, f"{topic_name}-{way.name}") for way in ways)
    # Which broker coordinates a group follows from the group's name, which differs.
    for protocol in ("classic", "consumer"):
        for seen in (direct, through):
            assert re.fullmatch(r"node [123]", seen.pop(f"coordinator {protocol} is a node"))
    assert through == direct
    assert through["nodes"] == "[node 1, node 2, node 3]"
    assert through["delivered"] == "[3334, 3333, 3333]"
    assert (through["config"], through["altered"]) == (
        "3600000 DYNAMIC_TOPIC_CONFIG",
        "7200000 DYNAMIC_TOPIC_CONFIG",
    )
    assert (through["granted"], through["revoked"]) == ("1", "0")
    assert (through["read_committed"], through["still listed"]) == ("{first=100, third=100}", "false")
    assert through["group consumer"] == "Empty Consumer"
