"""`tidegate run`: what it refuses, and a real process from its ready line to its end."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.fake_broker import FakeCluster
from tests.support.kafka.ports import free_ports
from tidegate.cli.group import tidegate

ROOT = Path(__file__).parents[3]
PATIENCE_S = 30.0


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tidegate, ("run", *arguments), prog_name="tidegate")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say which Kafka to serve: --config FILE or --bootstrap HOST:PORT"),
        (("--listen", "127.0.0.1:1"), "say which Kafka to serve: --config FILE or --bootstrap HOST:PORT"),
        (("--config", "x", "--bootstrap", "b:1"), "--bootstrap does not go with --config: set it in the file"),
        (("--config", "x", "--admin", "b:1"), "--admin does not go with --config: set it in the file"),
    ],
)
def test_a_file_or_options_but_not_both(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Error: {message}" in result.stderr


def test_faults_of_options_are_named_by_their_option() -> None:
    result = run("--bootstrap", "kafka", "--node-ports", "9")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "--bootstrap: must be HOST:PORT",
        "--node-ports: must be FIRST-LAST, for example 19101-19199",
    ]


def test_faults_of_a_file_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.yaml"
    path.write_text("cluster:\n  bootstrap_servers: [kafka]\n")
    result = run("--config", str(path))
    assert (result.exit_code, result.stderr) == (2, f"{path}:2: cluster.bootstrap_servers[0]: must be HOST:PORT\n")


class Process:
    """`python -X dev -m tidegate run ...`, with every warning shown."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, *arguments: str) -> "Process":
        command = (sys.executable, "-X", "dev", "-W", "always::ResourceWarning", "-m", "tidegate", "run", *arguments)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                env=clean,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        )

    async def wait_for(self, word: str) -> str:
        """The first line of standard error that contains the word."""
        assert self.process.stderr is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while line := (await self.process.stderr.readline()).decode():
                    if word in line:
                        return line
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
            raise
        raise AssertionError(f"it ended before it said {word!r}")

    async def end(self, signum: int | None = None) -> tuple[int, str, str]:
        """Exit code, standard output, and what is left of standard error."""
        if signum is not None:
            self.process.send_signal(signum)
        try:
            async with asyncio.timeout(PATIENCE_S):
                out, err = await self.process.communicate()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
            raise
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_it_says_when_it_serves_and_ends_cleanly(signum: int) -> None:
    port, admin, *nodes = free_ports(4)
    async with FakeCluster(1) as cluster:
        process = await Process.start(
            *("--bootstrap", str(cluster.brokers[1].address), "--listen", f"127.0.0.1:{port}"),
            *("--node-ports", f"{nodes[0]}-{nodes[-1]}", "--admin", f"127.0.0.1:{admin}"),
        )
        line = await process.wait_for("ready")
        assert line == (
            f"tidegate ready: bootstrap 127.0.0.1:{port}, nodes 1=127.0.0.1:{nodes[0]}, admin 127.0.0.1:{admin}\n"
        )
        assert await process.end(signum) == (0, "", "")


async def test_it_waits_for_a_cluster_and_ends_while_it_waits() -> None:
    port, admin, node, nobody = free_ports(4)
    process = await Process.start(
        *("--bootstrap", f"127.0.0.1:{nobody}", "--listen", f"127.0.0.1:{port}"),
        *("--node-ports", f"{node}-{node}", "--admin", f"127.0.0.1:{admin}"),
    )
    assert f"127.0.0.1:{nobody}" in await process.wait_for("cannot describe the cluster")
    assert await process.end(signal.SIGTERM) == (0, "", "")


async def test_a_taken_port_ends_it_with_2_and_says_what_to_change() -> None:
    admin, node = free_ports(2)
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        process = await Process.start(
            *("--bootstrap", "127.0.0.1:9", "--listen", f"127.0.0.1:{port}"),
            *("--node-ports", f"{node}-{node}", "--admin", f"127.0.0.1:{admin}"),
        )
        code, out, err = await process.end()
    assert (code, out) == (2, "")
    assert err == (
        f"tidegate: cannot listen on 127.0.0.1:{port}: Address already in use; change listeners[0].bind (--listen)\n"
    )


async def test_a_password_file_that_is_gone_ends_it_with_2(tmp_path: Path) -> None:
    gone, path = tmp_path / "password", tmp_path / "sidecar.yaml"
    sasl = f"{{mechanism: PLAIN, username: u, password_file: {gone}}}"
    path.write_text(
        f"cluster:\n  bootstrap_servers: [127.0.0.1:9]\n  security: {{protocol: SASL_PLAINTEXT, sasl: {sasl}}}\n"
    )
    process = await Process.start("--config", str(path))
    assert await process.end() == (2, "", f"tidegate: {gone}: cannot be read: No such file or directory\n")
