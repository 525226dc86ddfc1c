"""Kafka's Java AdminClient and console tools against the embedded cluster, straight and through the sidecar.

One broker lags by 150 ms. Straight at it the scripts wait for all brokers between a write and its read; through the
sidecar they wait for nothing.
"""

import json
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from backend.app import embedded
from tests.support.backend import BackendThread
from tests.support.kafka.jars import VERSIONS
from tests.support.kafka.java import Java, end_group
from tests.support.sidecar import SidecarProcess
from tests.support.ways import Way

pytestmark = pytest.mark.kafka

FOLDER: Final = Path(__file__).parent / "java"
NODE: Final = re.compile(r"(\d+)@([^:\s]+):(\d+)")
LAG_MS: Final = 150
TIMEOUT_S: Final = 60


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    """The jars of the newest Kafka."""
    return Java(VERSIONS[0], tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Way, Way]]:
    """Straight to a cluster, and to it through a sidecar."""
    with BackendThread(embedded()) as cluster:
        cluster.lag(3, LAG_MS)
        with SidecarProcess(cluster.bootstrap, settings={"limits": {"drain_timeout_ms": 1000}}) as sidecar:
            through = Way(
                name="sidecar",
                bootstrap=str(sidecar.bootstrap),
                nodes=sidecar.nodes,
                settle=lambda: None,
                settle_access=lambda: None,
            )
            yield cluster.way(), through


def administer(java: Java, way: Way, topic: str) -> dict[str, str]:
    """What the AdminClient saw, every address made a place."""
    name, classes = java.compile(FOLDER / "AdminScript.java")
    process = java.start(name, way.bootstrap, topic, stdin=subprocess.PIPE, classes=classes)
    seen: dict[str, str] = {}
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            what, is_result, value = line.rstrip("\n").partition(" = ")
            if is_result:
                seen[what] = NODE.sub(lambda m: way.place(int(m[1]), m[2], int(m[3])), value).replace(topic, "TOPIC")
                continue
            assert what == "settle"
            way.settle()
            process.stdin.write("\n")
            process.stdin.flush()
        _, log = process.communicate(timeout=TIMEOUT_S)
    finally:
        end_group(process)
    assert (process.returncode, seen.get("done")) == (0, "yes"), log
    return seen


def test_the_admin_client(java: Java, ways: tuple[Way, Way]) -> None:
    topic = f"orders-{secrets.token_hex(4)}"
    direct, through = (administer(java, way, f"{topic}-{way.name}") for way in ways)
    assert through == direct
    assert (direct["cluster"], direct["nodes"]) == ("tidegate-embedded", "[node 1, node 2, node 3]")
    assert (direct["voters"], direct["groups"], direct["log dirs"]) == ("3", "[]", "[1, 2, 3]")
    assert direct["described"] == ("[0 led by node 1 of [1, 2], 1 led by node 2 of [2, 3], 2 led by node 3 of [3, 1]]")
    assert direct["widened"].endswith(", 3 led by node 1 of [1, 3]]")
    assert direct["config"] == "3600000 DYNAMIC_TOPIC_CONFIG"
    assert direct["altered"] == "7200000 DYNAMIC_TOPIC_CONFIG"
    assert (direct["granted"], direct["revoked"], direct["quotas"]) == ("1", "0", "{consumer_byte_rate=5000.0}")
    assert "8192" in direct["scram"]
    assert (direct["listed"], direct["resources"], direct["still listed"]) == ("true", "true", "false")
    refused = {name: direct[name].partition(":")[0] for name in REFUSALS}
    assert refused == REFUSALS
    assert direct["exists"] == "TopicExistsException: Topic 'TOPIC' already exists."


REFUSALS: Final = {
    "exists": "TopicExistsException",
    "too wide": "InvalidReplicationFactorException",
    "bad name": "InvalidTopicException",
    "unknown config": "InvalidConfigurationException",
    "fewer": "InvalidPartitionsException",
    "absent": "UnknownTopicOrPartitionException",
    "bad value": "InvalidConfigurationException",
    "nobody": "ResourceNotFoundException",
}


class Tools:
    """Kafka's console tools in one JVM, on one way."""

    def __init__(self, process: "subprocess.Popen[str]", way: Way, topic: str) -> None:
        self._process = process
        self._way = way
        self._topic = topic
        # Some tools put a colon between host and port, some a column.
        self._places = {
            rf"{re.escape(host)}(:| +){port}\b": f"<node {node_id}>" for node_id, (host, port) in way.nodes.items()
        }
        self.seen: list[str] = []

    def run(self, tool: str, *args: str, code: int = 0, at_end: bool = False) -> str:
        """What a tool printed, with places for addresses and without what differs between two runs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        server = ("--bootstrap-server", self._way.bootstrap)
        given = [arg.replace("TOPIC", self._topic) for arg in ((*args, *server) if at_end else (*server, *args))]
        order = {"tool": f"org.apache.kafka.tools.{tool}", "args": given, "stdin": ""}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["code"] == code, answer
        text = str(answer["out"])
        for address, place in self._places.items():
            text = re.sub(address, place, text)
        text = re.sub(r"TopicId: \S+", "TopicId: *", text.replace(self._topic, "TOPIC"))
        self.seen.append(text)
        return text


def with_tools(process: "subprocess.Popen[str]", way: Way, topic: str) -> list[str]:
    """What the tools printed."""
    tools = Tools(process, way, topic)
    topic_of = ("--topic", "TOPIC")
    replicas = ("--replica-assignment", "1:2,2:3,3:1")
    tools.run("TopicCommand", "--create", *topic_of, *replicas, "--config", "retention.ms=5000")
    way.settle()
    assert "PartitionCount: 3" in tools.run("TopicCommand", "--describe", *topic_of)
    assert "already exists" in tools.run("TopicCommand", "--create", *topic_of, code=1)
    tools.run("TopicCommand", "--alter", *topic_of, "--partitions", "4", *replicas[:1], "1:2,2:3,3:1,1:3")
    way.settle()
    assert "PartitionCount: 4" in tools.run("TopicCommand", "--describe", *topic_of)

    entity = ("--entity-type", "topics", "--entity-name", "TOPIC")
    tools.run("ConfigCommand", *entity, "--alter", "--add-config", "retention.ms=7000")
    way.settle()
    assert "retention.ms=7000" in tools.run("ConfigCommand", *entity, "--describe")
    user = ("--entity-type", "users", "--entity-name", "TOPIC")
    tools.run("ConfigCommand", *user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=x]")
    tools.run("ConfigCommand", *user, "--alter", "--add-config", "consumer_byte_rate=5")
    way.settle()
    described = tools.run("ConfigCommand", *user, "--describe")
    assert "SCRAM-SHA-256=iterations=4096" in described
    assert "consumer_byte_rate=5.0" in described

    rule = ("--allow-principal", "User:carol", "--operation", "Read", *topic_of)
    tools.run("AclCommand", "--add", *rule)
    way.settle_access()
    assert "principal=User:carol" in tools.run("AclCommand", "--list", *topic_of)
    tools.run("AclCommand", "--remove", "--force", *rule)
    way.settle_access()
    assert "principal=User:carol" not in tools.run("AclCommand", "--list", *topic_of)

    assert "Cluster ID: tidegate-embedded" in tools.run("ClusterTool", "cluster-id", at_end=True)
    assert tools.run("ClusterTool", "list-endpoints", at_end=True).count("unfenced") == 3
    quorum = tools.run("MetadataQuorumCommand", "describe", "--status")
    tools.seen.pop()
    assert re.search(r"LeaderId: +3001\n", quorum)
    assert '"id": 3003' in quorum
    assert "4.4-IV2" in tools.run("FeatureCommand", "describe")
    tools.seen.pop()
    assert tools.run("BrokerApiVersionsCommand").count("Metadata(3): 0 to 13") == 3
    # The brokers come in any order.
    tools.seen.pop()
    assert tools.run("consumer.group.ConsumerGroupCommand", "--list").strip() == ""

    tools.run("TopicCommand", "--delete", *topic_of)
    way.settle()
    assert "TOPIC" not in tools.run("TopicCommand", "--list")
    return tools.seen


def test_the_console_tools(java: Java, ways: tuple[Way, Way]) -> None:
    topic = f"orders-{secrets.token_hex(4)}"
    name, classes = java.compile(FOLDER / "Console.java")
    process = java.start(name, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, classes=classes)
    try:
        direct, through = (with_tools(process, way, f"{topic}-{way.name}") for way in ways)
    finally:
        end_group(process)
        process.communicate()
    assert [re.sub(" +", " ", text) for text in through] == [re.sub(" +", " ", text) for text in direct]
