"""Kafka's own tools judge nodes of the backend that run as processes: what they say, and what they write to disk."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from backend.app import embedded
from backend.net import snapshots
from tests.support.backend import BackendThread
from tests.support.backend_processes import CLUSTER_ID, BackendProcesses
from tests.support.kafka.jars import VERSIONS
from tests.support.kafka.java import Java, end_group

pytestmark = pytest.mark.kafka

CONSOLE: Final = Path(__file__).parent / "java" / "Console.java"
TOPICS: Final = 20
PARTITIONS: Final = 40
TIMEOUT_S: Final = 30


class Tools:
    """Kafka's console tools in one JVM."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, tool: str, *args: str) -> str:
        """What a tool printed; it must end well."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"tool": f"org.apache.kafka.tools.{tool}", "args": args, "stdin": ""}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["code"] == 0, answer
        return str(answer["out"])


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """The tools of the newest Kafka."""
    java = Java(VERSIONS[0], tmp_path_factory.mktemp("java"))
    name, classes = java.compile(CONSOLE)
    process = java.start(name, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, classes=classes)
    try:
        yield Tools(process)
    finally:
        end_group(process)
        process.communicate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackendProcesses]:
    """Three controllers and two brokers, a process each."""
    with BackendProcesses(tmp_path_factory.mktemp("cluster")) as nodes:
        nodes.start(*nodes.controllers, *nodes.brokers)
        nodes.wait_ready(*nodes.controllers, *nodes.brokers)
        yield nodes


def fields(text: str) -> dict[str, str]:
    """The lines `Name:   value` of a status."""
    return dict(re.findall(r"^(\w+): +(.*)$", text, re.MULTILINE))


def test_the_quorum_is_described_through_brokers_and_through_controllers(
    cluster: BackendProcesses, tools: Tools
) -> None:
    ways = ("--bootstrap-server", cluster.bootstrap), ("--bootstrap-controller", cluster.bootstrap_controllers)
    for way in ways:
        status = fields(tools.run("MetadataQuorumCommand", *way, "describe", "--status"))
        assert status["ClusterId"] == CLUSTER_ID
        assert int(status["LeaderId"]) in cluster.controllers
        assert int(status["HighWatermark"]) > 0
        assert [voter["id"] for voter in json.loads(status["CurrentVoters"])] == [*cluster.controllers]
        assert [observer["id"] for observer in json.loads(status["CurrentObservers"])] == [*cluster.brokers]
        replication = tools.run("MetadataQuorumCommand", *way, "describe", "--replication").splitlines()
        header, *rows = (re.split(r"\s+|\t", line.strip()) for line in replication if line.strip())
        assert header[0] == "NodeId"
        roles = {int(row[0]): row[-1] for row in rows}
        assert sorted(roles.values()) == ["Follower", "Follower", "Leader", "Observer", "Observer"]
        assert roles[int(status["LeaderId"])] == "Leader"
        assert {node_id for node_id, role in roles.items() if role == "Observer"} == set(cluster.brokers)


def test_controllers_are_administered_themselves(cluster: BackendProcesses, tools: Tools) -> None:
    way = ("--bootstrap-controller", cluster.bootstrap_controllers)
    assert CLUSTER_ID in tools.run("ClusterTool", "cluster-id", *way)
    assert tools.run("ClusterTool", "list-endpoints", *way).count("controller") >= len(cluster.controllers)
    tools.run("ConfigCommand", *way, "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", NODE)
    described = tools.run("ConfigCommand", "--bootstrap-server", cluster.bootstrap, *ALL_BROKERS, "--describe")
    assert "log.cleaner.threads" in described
    tools.run("AclCommand", *way, "--add", "--allow-principal", "User:carol", "--operation", "Read", "--topic", "t")
    assert "User:carol" in tools.run("AclCommand", *way, "--list", "--topic", "t")


NODE: Final = "log.cleaner.threads=2"
ALL_BROKERS: Final = ("--entity-type", "brokers", "--entity-default")


def test_what_nodes_write_under_load_is_read_by_kafkas_own_tool(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_RECORDS", 300)
    settings = replace(embedded(brokers=1, noop_interval_ms=5), data_dir=tmp_path)
    with BackendThread(settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for number in range(TOPICS):
            done = admin.create_topics([NewTopic(f"topic-{number}", PARTITIONS, 1)])
            done[f"topic-{number}"].result(TIMEOUT_S)
        cluster.settle()
        nodes = [*cluster.turn(lambda backend: backend.controllers), 1]
    for node_id in nodes:
        directory = tmp_path / f"node-{node_id}" / "__cluster_metadata-0"
        segment, *_ = sorted(directory.glob("*.log"))
        *_, snapshot = sorted(directory.glob("*.checkpoint"))
        dumps = [
            tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(file))
            for file in (segment, snapshot)
        ]
        for dump in dumps:
            assert dump.count('"type":"PARTITION_RECORD"') > 300
            assert not re.search("corrupt|invalid|mismatch|Found non-consecutive|exception", dump, re.IGNORECASE)
        assert "LeaderChange" in dumps[0]
        assert "SnapshotFooter" in dumps[1]
