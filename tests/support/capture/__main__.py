"""`python -m tests.support.capture [CLIENT...]`: record what real clients and a real Kafka say to each other.

For each client one file in `tests/golden/captured`: who spoke to whom, and of each API, version and direction the first
frame that is not large. Needs Java and Maven; franz-go needs `go`, kafkajs `node` and `npm`, which fetch what
`go.mod` and `package.json` here name. One broker, so that one recorder is enough.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from codec.registry import known_versions
from tests.support.capture.recorder import Recorded, Recorder
from tests.support.kafka import KafkaCluster
from tests.support.kafka.jars import VERSIONS

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parents[1] / "golden" / "captured"
TOPIC: Final = "captured"
FRAME_BYTES_MAX: Final = 4096
PYTHON: Final = "tests.support.capture.python"
CLIENTS: Final[Mapping[str, list[str]]] = {
    "java": [],
    "librdkafka": [sys.executable, "-m", f"{PYTHON}.librdkafka"],
    "aiokafka": [sys.executable, "-m", f"{PYTHON}.aiokafka_client"],
    "kafka-python": [sys.executable, "-m", f"{PYTHON}.kafka_python"],
    "franz-go": [str(HERE / "go" / "build" / "capture")],
    "kafkajs": ["node", str(HERE / "js" / "client.mjs")],
}


def main() -> None:
    """Capture the named clients, or all of them, with each version of Kafka."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.capture", description=main.__doc__)
    parser.add_argument("--kafka", action="append", choices=VERSIONS)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(CLIENTS)}")
    args = parser.parse_args()
    clients = args.clients or list(CLIENTS)
    prepare(clients)
    for version in args.kafka or VERSIONS:
        with KafkaCluster(version=version, controllers=1, brokers=1) as cluster:
            for client in clients:
                capture(cluster, client)


def prepare(clients: Iterable[str]) -> None:
    """Build what is not Python or Java."""
    if "franz-go" in clients:
        subprocess.run(["go", "build", "-o", "build/capture", "."], cwd=HERE / "go", check=True)
    if "kafkajs" in clients:
        subprocess.run(["npm", "install", "--no-package-lock", "--silent"], cwd=HERE / "js", check=True)


def capture(cluster: KafkaCluster, client: str) -> None:
    """Lead one client through its calls, and write down what was said."""
    recorder = Recorder(next(iter(cluster.brokers.values())))
    with tempfile.TemporaryFile("w+") as log:
        arguments = [str(recorder.address), f"{TOPIC}-{client}"]
        if client == "java":
            process = cluster.start_java(HERE / "java" / "CaptureClient.java", *arguments, cluster.version)
        else:
            process = subprocess.Popen(
                [*CLIENTS[client], *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        name = lead(process, recorder, cluster)
        recorder.close()
        if process.wait(60):
            log.seek(0)
            sys.exit(f"{client} ended with {process.returncode}:\n{log.read()}")
    write(name, cluster.version, recorder.recorded)


def lead(process: "subprocess.Popen[str]", recorder: Recorder, cluster: KafkaCluster) -> str:
    """Let the program make one call after the other, each once all see the last; returns what it calls itself."""
    assert process.stdin is not None
    assert process.stdout is not None
    name = ""
    for line in process.stdout:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "client":
            name = rest
        elif word == "call":
            cluster.wait_caught_up()
            recorder.call = rest
            process.stdin.write("\n")
            process.stdin.flush()
    process.stdin.close()
    return name


def write(client: str, kafka: str, recorded: Iterable[Recorded]) -> None:
    """One file for a client and a version of Kafka."""
    chosen: dict[tuple[int, int, str], Recorded] = {}
    for frame in recorded:
        if known_versions(frame.api_key) and len(frame.payload) <= FRAME_BYTES_MAX:
            chosen.setdefault((frame.api_key, frame.api_version, frame.direction), frame)
    frames = [
        {
            "call": frame.call,
            "direction": frame.direction,
            "api_key": frame.api_key,
            "api_version": frame.api_version,
            "hex": frame.payload.hex(),
        }
        for _, frame in sorted(chosen.items())
    ]
    lines = ",\n".join(f"  {json.dumps(frame)}" for frame in frames)
    GOLDEN.mkdir(exist_ok=True)
    file = GOLDEN / f"{client.split()[0]}-kafka-{kafka}.json"
    head = f' "client": {json.dumps(client)},\n "kafka": {json.dumps(kafka)}'
    file.write_text(f'{{\n{head},\n "frames": [\n{lines}\n ]\n}}\n')
    sys.stdout.write(f"{file.name}: {len(frames)} frames\n")


if __name__ == "__main__":
    main()
