"""franz-go, sarama, kafkajs and kcat, straight and through the sidecar: the same script, the same results.

Nightly: Go and npm fetch what `go/go.sum` and `js/package.json` name, and kcat is Debian's, whose librdkafka is old.
With both versions of Kafka.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support import raw_topics
from tests.support.kafka import KafkaCluster
from tests.support.kafka.java import end_group
from tests.support.sidecar import SidecarProcess
from tests.support.ways import Way, both_ways

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]

HERE = Path(__file__).parent
NODE = re.compile(r"(\d+)@([^:\s]+):(\d+)")
BUILD_TIMEOUT_S = 600
TIMEOUT_S = 120.0
RECORDS = 3000
EXPECTED = {
    "nodes": "node 1 node 2 node 3",
    "partitions": "3",
    "end offsets": str(RECORDS),
    "consumed": f"{RECORDS}, {RECORDS} different, value-0 to value-999",
    "group": "Empty",
    "committed transactions": f"{RECORDS + 10}, {RECORDS + 10} different, transaction-true-0 to value-999",
    "altered": "7200000",
    "still listed": "false",
    "done": "yes",
}


@pytest.fixture(scope="module")
def commands() -> dict[str, list[str]]:
    """What to run for each client, built."""
    subprocess.run(["go", "build", "-o", "build/clients", "."], cwd=HERE / "go", check=True, timeout=BUILD_TIMEOUT_S)
    npm = ["npm", "install", "--no-package-lock", "--silent"]
    subprocess.run(npm, cwd=HERE / "js", check=True, timeout=BUILD_TIMEOUT_S)
    go = str(HERE / "go" / "build" / "clients")
    return {
        "franz-go": [go, "franz-go"],
        "sarama": [go, "sarama"],
        "kafkajs": ["node", str(HERE / "js" / "clients.mjs"), "kafkajs"],
    }


def run_script(command: list[str], way: Way, topic: str) -> dict[str, str]:
    """What the script saw, every address made a place."""
    process = subprocess.Popen(
        [*command, way.bootstrap, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen: dict[str, str] = {}
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            name, is_result, value = line.rstrip("\n").partition(" = ")
            if is_result:
                seen[name] = NODE.sub(lambda m: way.place(int(m[1]), m[2], int(m[3])), value).replace(topic, "TOPIC")
                continue
            assert name == "settle", line
            way.settle()
            process.stdin.write("\n")
            process.stdin.flush()
        _, log = process.communicate(timeout=TIMEOUT_S)
    finally:
        end_group(process)
    assert (process.returncode, seen.get("done")) == (0, "yes"), log
    return seen


CLIENTS = ("franz-go", "sarama", "kafkajs")


@pytest.mark.parametrize("client", CLIENTS)
def test_every_call_of_the_script(
    commands: dict[str, list[str]], ways: Iterable[Way], topic_name: str, client: str
) -> None:
    direct, through = (run_script(commands[client], way, f"{topic_name}-{way.name}") for way in ways)
    assert through == direct
    assert {name: through[name] for name in EXPECTED} == EXPECTED


@pytest.fixture
def ways_39(kafka_39: KafkaCluster) -> Iterator[tuple[Way, Way]]:
    """As `ways`, with the older Kafka."""
    with SidecarProcess(kafka_39.bootstrap, settings={"limits": {"drain_timeout_ms": 3000}}) as sidecar:
        yield both_ways(kafka_39, sidecar)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_call_of_the_script_with_the_older_kafka(
    commands: dict[str, list[str]], ways_39: Iterable[Way], topic_name: str, client: str
) -> None:
    direct, through = (run_script(commands[client], way, f"{topic_name}-{way.name}") for way in ways_39)
    assert through == direct
    assert {name: through[name] for name in EXPECTED} == EXPECTED


def kcat(way: Way, *args: str, stdin: str = "") -> str:
    """What kcat printed, every address made a place."""
    done = subprocess.run(
        ["kcat", "-b", way.bootstrap, *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return re.sub(r"broker (\d+) at ([^:\s]+):(\d+)", lambda m: way.place(int(m[1]), m[2], int(m[3])), done.stdout)


def through_kcat(kafka: KafkaCluster, way: Way, topic: str) -> dict[str, str]:
    """Produce with several codecs, list, query, consume in a group."""
    raw_topics.create(kafka.brokers[1], topic, [1, 2])
    kafka.wait_caught_up()
    lines = [f"value-{number}" for number in range(RECORDS)]
    seen = {}
    for index, codec in enumerate(("none", "gzip", "snappy", "lz4")):
        part = "".join(f"{line}\n" for line in lines[index::4])
        seen[f"produce {codec}"] = kcat(
            way, "-P", "-t", topic, "-z", codec, "-X", "enable.idempotence=true", stdin=part
        )
    listed = kcat(way, "-L", "-t", topic)
    seen["list"] = re.sub(r"\(from broker .*|, +\(controller\)| \(controller\)", "", listed.replace(topic, "TOPIC"))
    seen["query"] = kcat(way, "-Q", "-t", f"{topic}:0:-1").replace(topic, "TOPIC")
    earliest = ("-X", "auto.offset.reset=earliest")
    consumed = kcat(way, "-q", *earliest, "-c", str(RECORDS), "-G", f"{topic}-group", topic)
    assert sorted(consumed.splitlines()) == sorted(lines)
    return seen


def test_the_librdkafka_of_debian(kafka: KafkaCluster, ways: Iterable[Way], topic_name: str) -> None:
    direct, through = (through_kcat(kafka, way, f"{topic_name}-{way.name}") for way in ways)
    nodes = [re.findall(r"node \d", seen.pop("list")) for seen in (direct, through)]
    assert sorted(nodes[1]) == sorted(nodes[0]) == ["node 1", "node 2", "node 3"]
    assert through == direct
    assert through["query"] == f"TOPIC [0] offset {RECORDS}\n"
