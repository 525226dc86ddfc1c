"""Kafka's console tools, straight and through the sidecar: the same commands, the same output.

The tools run in one JVM (`java/Console.java`). Before outputs are compared, addresses become the nodes that the way
promises at them, and what differs between any two runs (ids, offsets of the metadata log, times) is masked.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.kafka import KafkaCluster
from tests.support.kafka.java import end_group
from tests.support.sidecar import SidecarProcess
from tests.support.ways import Way

pytestmark = pytest.mark.kafka

TOOLS = "org.apache.kafka.tools."
RECORDS = 300
MEASURED = 500


class Console:
    """The JVM with the tools."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, tool: str, *args: str, stdin: str = "") -> str:
        """What a tool printed, which must have ended well."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"tool": TOOLS + tool, "args": args, "stdin": stdin}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["code"] == 0, answer
        return str(answer["out"])


@pytest.fixture(scope="module")
def console(kafka: KafkaCluster, sidecar: SidecarProcess) -> Iterator[Console]:
    """Ends before the sidecar does, for some tools leave connections open."""
    assert sidecar.nodes
    process = kafka.start_java(Path(__file__).parent / "java" / "Console.java")
    yield Console(process)
    end_group(process)
    process.communicate()


class Session:
    """Tools on one way, with one topic."""

    def __init__(self, console: Console, way: Way, topic: str) -> None:
        self.way, self.topic, self.group = way, topic, f"{topic}-group"
        self._console = console
        self._places = {str(address): f"<node {node_id}>" for node_id, address in way.nodes.items()}

    def run(self, tool: str, *args: str, stdin: str = "", at_end: bool = False) -> str:
        """What a tool printed, with places for addresses, TOPIC for the topic and columns of no width."""
        server = ("--bootstrap-server", self.way.bootstrap)
        text = self._console.run(tool, *((*args, *server) if at_end else (*server, *args)), stdin=stdin)
        for address, place in self._places.items():
            text = text.replace(address, place)
        return re.sub(" +", " ", text.replace(self.topic, "TOPIC"))

    def topics(self, *args: str) -> str:
        """kafka-topics for the topic."""
        text = self.run("TopicCommand", "--topic", self.topic, *args)
        return re.sub(r"TopicId: \S+", "TopicId: *", text)

    def configs(self, *args: str) -> str:
        """kafka-configs for the topic."""
        return self.run("ConfigCommand", "--entity-type", "topics", "--entity-name", self.topic, *args)

    def acls(self, *args: str) -> str:
        """kafka-acls for the topic."""
        return self.run("AclCommand", "--topic", self.topic, *args)

    def groups(self, *args: str) -> str:
        """kafka-consumer-groups for the group; the broker that coordinates it follows from its name."""
        text = self.run("consumer.group.ConsumerGroupCommand", "--group", self.group, *args)
        return re.sub(r"<node \d> +\(\d\)", "<a node>", text)


def topics(session: Session) -> Iterator[tuple[str, str]]:
    """Create, describe, widen."""
    replicas = "1:2,2:3,3:1"
    yield "create", session.topics("--create", "--replica-assignment", replicas, "--config", "retention.ms=3600000")
    session.way.settle()
    yield "describe", session.topics("--describe")
    yield "list", session.topics("--list")
    yield "alter", session.topics("--alter", "--partitions", "4", "--replica-assignment", f"{replicas},1:3")
    session.way.settle()
    yield "describe altered", session.topics("--describe")


def configs(session: Session) -> Iterator[tuple[str, str]]:
    """Set, read, unset, read."""
    yield "set", session.configs("--alter", "--add-config", "retention.ms=7200000")
    session.way.settle()
    yield "read", session.configs("--describe")
    yield "unset", session.configs("--alter", "--delete-config", "retention.ms")
    session.way.settle()
    yield "read again", session.configs("--describe")


def acls(session: Session) -> Iterator[tuple[str, str]]:
    """Grant, list, revoke, list."""
    rule = ("--allow-principal", "User:carol", "--operation", "Read")
    yield "add", session.acls("--add", *rule)
    session.way.settle_access()
    yield "list", session.acls("--list")
    yield "remove", session.acls("--remove", "--force", *rule)
    session.way.settle_access()
    yield "list again", session.acls("--list")


def records(session: Session) -> Iterator[tuple[str, str]]:
    """Produce, consume as a group, look at offsets and at the group."""
    lines = "".join(f"key-{number}:value-{number}\n" for number in range(RECORDS))
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    yield "produce", session.run("ConsoleProducer", "--topic", session.topic, *keyed, stdin=lines)
    consumed = session.run(
        "consumer.ConsoleConsumer",
        *("--topic", session.topic, "--group", session.group, "--from-beginning"),
        *("--max-messages", str(RECORDS), "--timeout-ms", "60000"),
    )
    yield "consume", "\n".join(sorted(consumed.splitlines()))
    yield "offsets", session.run("GetOffsetShell", "--topic", session.topic)
    yield "group", session.groups("--describe", "--offsets")
    yield "group state", session.groups("--describe", "--state")
    yield "delete group", session.groups("--delete")


def shared(session: Session) -> Iterator[tuple[str, str]]:
    """The same records as a share group, and what is said of it."""
    group = f"{session.topic}-shared"
    start = ("--add-config", "share.auto.offset.reset=earliest")
    yield "config", session.run("ConfigCommand", "--entity-type", "groups", "--entity-name", group, "--alter", *start)
    session.way.settle_access()
    consumed = session.run(
        "consumer.ConsoleShareConsumer",
        *("--topic", session.topic, "--group", group, "--max-messages", str(RECORDS), "--timeout-ms", "60000"),
    )
    yield "consume", "\n".join(sorted(consumed.splitlines()))
    yield "list", session.run("consumer.group.ShareGroupCommand", "--list")
    state = session.run("consumer.group.ShareGroupCommand", "--group", group, "--describe", "--state")
    yield "state", re.sub(r"<node \d> +\(\d\)", "<a node>", state)
    yield "delete", session.run("consumer.group.ShareGroupCommand", "--group", group, "--delete")


def performance(session: Session) -> Iterator[tuple[str, str]]:
    """The tools that measure, and how many records they say that they saw."""
    size = ("--num-records", str(MEASURED), "--record-size", "1000", "--throughput", "-1")
    produced = session.run("ProducerPerformance", "--topic", session.topic, *size)
    yield "producer", produced.splitlines()[-1].partition(",")[0]
    count = ("--num-records", str(RECORDS + MEASURED), "--timeout", "60000")
    consumed = session.run("ConsumerPerformance", "--topic", session.topic, "--group", f"{session.group}-perf", *count)
    yield "consumer", consumed.splitlines()[-1].split(", ")[4]


def cluster(session: Session) -> Iterator[tuple[str, str]]:
    """What the operator's tools say of the cluster itself."""
    quorum = session.run("MetadataQuorumCommand", "describe", "--status")
    yield "quorum", re.sub(r"(HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs): +-?\d+", r"\1: *", quorum)
    replication = session.run("MetadataQuorumCommand", "describe", "--replication")
    yield "replication", "\n".join(sorted(f"{row.split()[0]} {row.split()[-1]}" for row in replication.splitlines()))
    yield "cluster id", session.run("ClusterTool", "cluster-id", at_end=True)
    yield "features", re.sub(r"Epoch: \d+", "Epoch: *", session.run("FeatureCommand", "describe"))
    log_dirs = session.run("LogDirsCommand", "--describe", "--topic-list", session.topic, "--broker-list", "1,2,3")
    answer = json.loads(log_dirs.splitlines()[-1])
    held = [
        (broker["broker"], sorted(each["partition"] for each in log_dir["partitions"]))
        for broker in answer["brokers"]
        for log_dir in broker["logDirs"]
    ]
    yield "log dirs", json.dumps(sorted(held))
    # Of one partition: what else in the cluster has lost its preferred leader depends on the tests before.
    where = ("--topic", session.topic, "--partition", "0")
    yield "election", session.run("LeaderElectionCommand", "--election-type", "preferred", *where)


def delete(session: Session) -> Iterator[tuple[str, str]]:
    """Delete, and list all."""
    yield "delete", session.topics("--delete")
    session.way.settle()
    listed = session.run("TopicCommand", "--list").splitlines()
    yield "still listed", str("TOPIC" in listed)


PARTS: tuple[Callable[[Session], Iterator[tuple[str, str]]], ...] = (
    topics,
    configs,
    acls,
    records,
    shared,
    performance,
    cluster,
    delete,
)


def test_every_tool(console: Console, ways: Iterable[Way], topic_name: str) -> None:
    printed = []
    for way in ways:
        session = Session(console, way, f"{topic_name}-{way.name}")
        printed.append({f"{part.__name__} {name}": text for part in PARTS for name, text in part(session)})
    direct, through = printed
    for name, text in direct.items():
        assert through[name] == text, name
    assert through["topics create"] == "Created topic TOPIC.\n"
    assert through["topics describe altered"].count("Leader: ") == 4
    assert "retention.ms=7200000" in through["configs read"]
    assert "retention.ms" not in through["configs read again"]
    assert "principal=User:carol" in through["acls list"]
    assert "carol" not in through["acls list again"]
    assert through["records consume"].splitlines() == sorted(f"value-{number}" for number in range(RECORDS))
    assert through["records group"].count("TOPIC-group TOPIC ") == 4
    assert through["shared consume"] == through["records consume"]
    assert through["performance producer"] == f"{MEASURED} records sent"
    assert through["performance consumer"] == str(RECORDS + MEASURED)
    assert "LeaderId" in through["cluster quorum"]
    assert through["delete still listed"] == "False"


@pytest.mark.row("4.1")
def test_versions_of_every_broker(console: Console, ways: Iterable[Way]) -> None:
    direct, through = (Session(console, way, "-").run("BrokerApiVersionsCommand") for way in ways)
    assert versions(through) == versions(direct)
    assert all("ShareAcknowledge(79)" in offered for offered in versions(through).values())
    assert [broker.partition(" (")[0] for broker in sorted(versions(through))] == ["<node 1>", "<node 2>", "<node 3>"]


def versions(text: str) -> dict[str, dict[str, str]]:
    """Broker to API to what the tool says of it, of the APIs that the broker offers."""
    found: dict[str, dict[str, str]] = {}
    broker = ""
    for line in text.splitlines():
        if line.startswith("<"):
            broker = line.partition(" -> ")[0]
            found[broker] = {}
        elif line.startswith("\t") and "UNSUPPORTED" not in line:
            api, _, offer = line.strip().rstrip(",").partition(": ")
            found[broker][api] = offer
    return found
