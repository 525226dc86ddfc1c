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
from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.tokens import TokenSettings
from backend.net.security import Security
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
        self.topic = topic
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
        given = [arg.replace("TOPIC", self.topic) for arg in ((*args, *server) if at_end else (*server, *args))]
        order = {"tool": f"org.apache.kafka.tools.{tool}", "args": given, "stdin": ""}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["code"] == code, answer
        text = str(answer["out"])
        for address, place in self._places.items():
            text = re.sub(address, place, text)
        text = re.sub(r"TopicId: \S+", "TopicId: *", text.replace(self.topic, "TOPIC"))
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


LOGINS: Final = {
    "root": 'sasl.mechanism=PLAIN\nsasl.jaas.config={0}.plain.PlainLoginModule required username="root" '
    'password="root-secret";\n',
    "carol": 'sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={0}.scram.ScramLoginModule required username="carol" '
    'password="carol-secret";\n',
    "token": 'sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={0}.scram.ScramLoginModule required username="{1}" '
    'password="{2}" tokenauth="true";\n',
}


class Logins:
    """`--command-config` for those who log in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.token = ("", "")

    def __call__(self, who: str) -> tuple[str, str]:
        path = self._folder / who
        login = LOGINS[who].format("org.apache.kafka.common.security", *self.token)
        path.write_text(f"security.protocol=SASL_PLAINTEXT\n{login}")
        return "--command-config", str(path)


def as_users(tools: Tools, cluster: BackendThread, logins: Logins, folder: Path) -> None:
    """An administrator lets a user in, who is given a topic, a token, and nothing else."""
    root, carol = logins("root"), logins("carol")
    tools.run("TopicCommand", *root, "--create", "--topic", "TOPIC", "--replica-assignment", "1:2")
    password = ("--add-config", "SCRAM-SHA-512=[password=carol-secret]")
    tools.run("ConfigCommand", *root, "--entity-type", "users", "--entity-name", "carol", "--alter", *password)
    cluster.settle()
    assert tools.run("TopicCommand", *carol, "--list").strip() == ""
    assert "Authorization failed" in tools.run("TopicCommand", *carol, "--create", "--topic", "more", code=1)
    rule = ("--allow-principal", "User:carol", "--operation", "All", "--topic", "TOPIC")
    tools.run("AclCommand", *root, "--add", *rule)
    cluster.settle()
    assert "PartitionCount: 1" in tools.run("TopicCommand", *carol, "--describe", "--topic", "TOPIC")
    tools.run("AclCommand", *carol, "--list", code=1)

    made = tools.run("DelegationTokenCommand", *carol, "--create", "--max-life-time-period", "-1")
    found = re.search(r"^(\S{22}) +(\S{88}) +User:carol +User:carol ", made, re.MULTILINE)
    assert found is not None, made
    logins.token = (found[1], found[2])
    cluster.settle()
    by_token = logins("token")
    assert "TOPIC" in tools.run("TopicCommand", *by_token, "--list")
    tools.run("DelegationTokenCommand", *by_token, "--describe", code=1)
    expiry = ("--expiry-time-period", "-1", "--hmac", found[2])
    tools.run("DelegationTokenCommand", *carol, "--expire", *expiry)
    cluster.settle()
    assert found[1] not in tools.run("DelegationTokenCommand", *carol, "--describe")

    moves = folder / "moves.json"
    wanted = {"topic": tools.topic, "partition": 0, "replicas": [3, 1]}
    moves.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    given = ("--reassignment-json-file", str(moves))
    assert "Successfully started" in tools.run("reassign.ReassignPartitionsCommand", *root, *given, "--execute")
    cluster.settle()
    verified = tools.run("reassign.ReassignPartitionsCommand", *root, *given, "--verify")
    assert "Reassignment of partition TOPIC-0 is completed." in verified
    elected = ("--election-type", "preferred", "--topic", "TOPIC", "--partition", "0")
    admin_config = ("--admin.config", root[1])
    assert "Successfully completed leader election" in tools.run("LeaderElectionCommand", *admin_config, *elected)
    cluster.settle()
    assert "Leader: 3\tReplicas: 3,1" in tools.run("TopicCommand", *carol, "--describe", "--topic", "TOPIC")


def test_the_console_tools_log_in(java: Java, tmp_path: Path) -> None:
    security = Security(
        protocol="SASL_PLAINTEXT",
        passwords={"root": "root-secret"},
        tokens=TokenSettings(secret="token secret"),
        authorizer=AuthorizerSettings(super_users=frozenset({"User:root"})),
    )
    name, classes = java.compile(FOLDER / "Console.java")
    with BackendThread(embedded(security=security)) as cluster:
        process = java.start(name, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, classes=classes)
        try:
            tools = Tools(process, cluster.way(), f"orders-{secrets.token_hex(4)}")
            as_users(tools, cluster, Logins(tmp_path), tmp_path)
        finally:
            end_group(process)
            process.communicate()


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
