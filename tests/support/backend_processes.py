"""A cluster of the backend, every node a process of its own with its own directory, that can be killed and started.

Knows the command, its configuration file and its ready line; nothing of what is inside. Methods do not wait unless they
say so.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from tests.support.address import Address
from tests.support.kafka.java import end_group
from tests.support.kafka.ports import HOST, free_ports

CLUSTER_ID: Final = "killed-cluster"
READY: Final = "tidegate backend ready: "
START_TIMEOUT_S: Final = 60.0
END_TIMEOUT_S: Final = 20.0
LOG_BYTES: Final = 4000


class NodeFailed(Exception):
    """A node did not do what it should; the message has the end of its log."""


class BackendProcesses:
    """The nodes; none runs at first.

    Attributes:
        brokers: node id to the address of each broker's port for clients.
        controllers: node id to that of each controller.
        folder: of the nodes' directories, `data`, and of their logs.
    """

    def __init__(
        self, folder: Path, *, controllers: int = 3, brokers: int = 2, settings: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder
        ports = iter(free_ports(controllers + brokers))
        self.controllers = {3001 + n: Address(HOST, next(ports)) for n in range(controllers)}
        self.brokers = {1 + n: Address(HOST, next(ports)) for n in range(brokers)}
        nodes: list[dict[str, Any]] = [
            {"id": node_id, "roles": ["controller"], "controller_listen": str(at)}
            for node_id, at in self.controllers.items()
        ]
        nodes += [{"id": node_id, "roles": ["broker"], "listen": str(at)} for node_id, at in self.brokers.items()]
        config = {
            "cluster_id": CLUSTER_ID,
            "data_dir": str(folder / "data"),
            "local": "${NODE}",
            "nodes": nodes,
            **(settings or {}),
        }
        (folder / "backend.yaml").write_text(yaml.safe_dump(config))
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._began_at: dict[int, int] = {}

    @property
    def bootstrap(self) -> str:
        """`bootstrap.servers`."""
        return ",".join(map(str, self.brokers.values()))

    @property
    def bootstrap_controllers(self) -> str:
        """`bootstrap.controllers`."""
        return ",".join(map(str, self.controllers.values()))

    def directory(self, node_id: int) -> Path:
        """Where a node keeps its metadata log."""
        return self.folder / "data" / f"node-{node_id}" / "__cluster_metadata-0"

    def is_running(self, node_id: int) -> bool:
        """Whether the node was started, and neither killed nor ended since."""
        process = self._running.get(node_id)
        return process is not None and process.poll() is None

    def start(self, *node_ids: int) -> None:
        """Start nodes."""
        for node_id in node_ids:
            with (self.folder / f"{node_id}.log").open("ab") as log:
                self._running[node_id] = subprocess.Popen(
                    [sys.executable, "-P", "-m", "tidegate", "backend", "--config", str(self.folder / "backend.yaml")],
                    env={**os.environ, "NODE": str(node_id)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    text=True,
                )
                self._began_at[node_id] = log.tell()

    def kill(self, node_id: int) -> None:
        """SIGKILL; returns when the process is gone."""
        process = self._running.pop(node_id)
        process.kill()
        process.wait()

    def stop(self, node_id: int) -> int:
        """SIGTERM; returns the exit code."""
        process = self._running.pop(node_id)
        process.send_signal(signal.SIGTERM)
        return process.wait(END_TIMEOUT_S)

    def wait_ready(self, *node_ids: int) -> None:
        """Return when the nodes have said that they serve, since they were last started.

        Raises:
            NodeFailed: One has ended, or does not say so.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        for node_id in node_ids:
            while READY not in self.log(node_id)[self._began_at[node_id] :]:
                if not self.is_running(node_id) or time.monotonic() > deadline:
                    raise NodeFailed(f"node {node_id} does not serve:\n{self.log(node_id)[-LOG_BYTES:]}")
                time.sleep(0.02)

    def log(self, node_id: int) -> str:
        """All that a node has said."""
        return (self.folder / f"{node_id}.log").read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running.values():
            end_group(process)
            process.wait()
