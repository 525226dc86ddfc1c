"""The sidecar under test: the command `tidegate run` as a process of its own, on free loopback ports.

Knows the command, its configuration file, its ready line and its signals; nothing of what is inside. Every method
blocks; an async test calls it through `asyncio.to_thread`.
"""

import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from tests.support.address import Address
from tests.support.kafka.java import end_group
from tests.support.kafka.ports import HOST, free_ports
from tests.support.kafka.watchdog import Watchdog

COMMAND: Final = ("-m", "tidegate", "run")
START_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = 30.0
LOG_LINES: Final = 40
NODE_PORTS: Final = 8
"""Node ports of a sidecar in these tests: more than any of their clusters has brokers."""

_READY: Final = re.compile(
    r"^tidegate ready: bootstrap (?P<bootstrap>\S+), nodes (?P<nodes>[^,]*), admin (?P<admin>\S+)$"
)


class SidecarError(Exception):
    """The sidecar did not start or did not end; the message has its last log lines."""


class SidecarProcess:
    """Starts on construction; serves when the constructor returns, unless told not to wait.

    Attributes:
        bootstrap: where clients come in.
        admin: where its admin HTTP is.
        nodes: node id to the address at which its clients find that broker; empty until `wait_ready` has returned.
        pid: of the process.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        settings: Mapping[str, Any] | None = None,
        listener: Mapping[str, Any] | None = None,
        wait: bool = True,
        python_options: Sequence[str] = ("-P",),
    ) -> None:
        """Start a sidecar.

        Args:
            bootstrap: `HOST:PORT,...` of the real brokers.
            settings: sections of the configuration file, laid over those that the cluster and the free ports demand;
                `{"consistency": {"level": "eventual"}}` changes one key, a list replaces the whole list.
            listener: keys of its only listener besides name and ports.
            wait: return only when it serves.
            python_options: of the interpreter.

        Raises:
            SidecarError: if it ends or does not serve within `START_TIMEOUT_S`.
        """
        bootstrap_port, admin_port, *node_ports = free_ports(2 + NODE_PORTS)
        self.bootstrap, self.admin = Address(HOST, bootstrap_port), Address(HOST, admin_port)
        self.nodes: dict[int, Address] = {}
        own: dict[str, Any] = {
            "cluster": {"bootstrap_servers": bootstrap.split(",")},
            "listeners": [
                {
                    "name": "default",
                    "bind": str(self.bootstrap),
                    "node_ports": f"{node_ports[0]}-{node_ports[-1]}",
                    **(listener or {}),
                }
            ],
            "admin": {"bind": str(self.admin)},
        }
        self._scratch = tempfile.TemporaryDirectory(prefix="tidegate-sidecar-")
        file = Path(self._scratch.name) / "sidecar.yaml"
        file.write_text(yaml.safe_dump(_laid_over(own, settings or {})))
        command = [sys.executable, *python_options, *COMMAND, "--config", str(file)]
        self._log: list[str] = []
        self._grown = threading.Condition()
        self._ended = False
        self._watchdog = Watchdog()
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.pid = self._process.pid
        self._watchdog.watch(self.pid)
        self._reader = threading.Thread(target=self._read_log, name="sidecar log", daemon=True)
        self._reader.start()
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.close()
                raise

    def wait_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when the sidecar has said that it serves; fills `nodes`.

        Raises:
            SidecarError: if it has ended or takes longer.
        """
        found = _READY.match(self.wait_for_line(_READY, timeout_s=timeout_s))
        assert found is not None
        self.bootstrap, self.admin = Address.parse(found["bootstrap"]), Address.parse(found["admin"])
        pairs = (pair.partition("=") for pair in found["nodes"].split())
        self.nodes = {int(node_id): Address.parse(address) for node_id, _, address in pairs}

    def wait_for_line(self, pattern: str | re.Pattern[str], *, start: int = 0, timeout_s: float = 10.0) -> str:
        """The first line of the log, from index `start` on, in which `pattern` is found; waits for it.

        Raises:
            SidecarError: if the sidecar ends without it, or it takes longer than `timeout_s`.
        """
        expression = re.compile(pattern)
        seen = start
        found: list[str] = []

        def settled() -> bool:
            nonlocal seen
            fresh, seen = self._log[seen:], len(self._log)
            found.extend(line for line in fresh if expression.search(line))
            return bool(found) or self._ended

        with self._grown:
            in_time = self._grown.wait_for(settled, timeout_s)
        if found:
            return found[0]
        reason = "it ended" if in_time else f"{timeout_s} s passed"
        raise SidecarError(f"{reason} before the sidecar logged {expression.pattern!r}:\n{self.log_tail()}")

    @property
    def log(self) -> list[str]:
        """Every line that it has written to standard error so far."""
        with self._grown:
            return list(self._log)

    def log_tail(self, lines: int = LOG_LINES) -> str:
        """The last lines of the log."""
        return "\n".join(self.log[-lines:])

    def terminate(self) -> None:
        """SIGTERM; returns at once."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self, *, timeout_s: float = END_TIMEOUT_S) -> int:
        """Its exit code, once it has ended and its log is complete.

        Raises:
            SidecarError: if it takes longer than `timeout_s`.
        """
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise SidecarError(f"the sidecar did not end within {timeout_s} s:\n{self.log_tail()}") from None
        self._reader.join(timeout_s)
        return code

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        end_group(self._process)
        self._reader.join(END_TIMEOUT_S)

    def close(self) -> None:
        """Kill it if it still runs, and delete its files. Harmless when done twice."""
        self.kill()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._watchdog.close()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._grown:
                self._log.append(line.rstrip("\n"))
                self._grown.notify_all()
        with self._grown:
            self._ended = True
            self._grown.notify_all()


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both trees in one; where both have a value that is no mapping, that of `above`."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        deeper = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _laid_over(below[key], value) if deeper else value
    return merged
