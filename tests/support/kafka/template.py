"""Formatted data directories without one JVM a node.

`StorageTool format` writes the same files for every node of a version, but for three ids in `meta.properties`. It runs
once a version; its result is kept beside the jars and copied with new ids.
"""

import base64
import fcntl
import os
import shutil
import tempfile
import uuid
from pathlib import Path

from tests.support.kafka.errors import KafkaHarnessError
from tests.support.kafka.jars import kafka_dir
from tests.support.kafka.java import Java
from tests.support.kafka.properties import Value, render

FORMATTER: dict[str, Value] = {
    "node.id": 1,
    "process.roles": "controller",
    "controller.quorum.voters": "1@127.0.0.1:1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:1",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
}


def random_id() -> str:
    """A fresh id as Kafka writes them: 22 characters of URL-safe base 64, none of them a leading dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def format_node(java: Java, data_dir: Path, *, cluster_id: str, node_id: int, is_controller: bool) -> None:
    """Make `data_dir` what `StorageTool format` would have made of it."""
    template = _template(java)
    if is_controller:
        shutil.copytree(template, data_dir)
    else:
        # The bootstrap records are the controllers' business; a formatted broker has only its ids.
        data_dir.mkdir()
    meta: dict[str, Value] = {"version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": random_id()}
    (data_dir / "meta.properties").write_text(render(meta))


def _template(java: Java) -> Path:
    folder = kafka_dir()
    template = folder / f"format-{java.version}"
    if template.exists():
        return template
    with open(folder / f"format-{java.version}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if template.exists():
            return template
        with tempfile.TemporaryDirectory(dir=folder, prefix="format-") as name:
            scratch = Path(name)
            (scratch / "node.properties").write_text(render(FORMATTER | {"log.dirs": f"{scratch}/data"}))
            done = java.run(
                "kafka.tools.StorageTool", "format", "-t", random_id(), "-c", str(scratch / "node.properties")
            )
            if done.returncode:
                raise KafkaHarnessError(f"StorageTool could not format:\n{done.stdout}{done.stderr}")
            os.replace(scratch / "data", template)
    return template
