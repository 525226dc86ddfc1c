"""`tidegate backend` as an operator runs it: a process with a file, a ready line, an orderly end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from kio.schema.api_versions.v3 import ApiVersionsResponse

from config.schema import backend_schema
from tests.support.address import Address
from tests.support.raw_client import API_VERSIONS, ask_once
from tidegate.cli.group import tidegate

EXAMPLE = Path(__file__).parents[3] / "config" / "examples" / "backend.yaml"
TIMEOUT_S = 30


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def file_in(folder: Path, port: int, rest: str = "", controller: int = 9) -> Path:
    path = folder / "backend.yaml"
    listen = f'listen: "127.0.0.1:{port}", controller_listen: "127.0.0.1:{controller}"'
    node = f"{{id: 1, roles: [controller, broker], {listen}}}"
    path.write_text(f"cluster_id: c\nnodes: [{node}]\n{rest}")
    return path


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_says_when_it_is_ready_serves_and_ends_with_0(tmp_path: Path, signum: signal.Signals) -> None:
    port, controller = free_port(), free_port()
    config = file_in(tmp_path, port, controller=controller)
    command = [sys.executable, "-P", "-m", "tidegate", "backend", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            ready = next((line for line in lines if line.startswith("tidegate backend ready: ")), None)
            assert ready == (
                f"tidegate backend ready: bootstrap 127.0.0.1:{port}, brokers 1=127.0.0.1:{port}, "
                f"controllers 1=127.0.0.1:{controller}\n"
            )
            answer = ask_once(Address("127.0.0.1", port), API_VERSIONS, ApiVersionsResponse)
            assert answer.finalized_features_epoch > 0
            process.send_signal(signum)
            assert process.wait(TIMEOUT_S) == 0
            assert [line for line in lines if "ERROR" in line or "Traceback" in line] == []
        finally:
            process.kill()


def test_a_faulty_file_is_told_line_by_line(tmp_path: Path) -> None:
    path = file_in(tmp_path, 1, "state_wait_ms: -1\n")
    result = CliRunner().invoke(tidegate, ["backend", "--config", str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{path}:3: state_wait_ms: must be between 0 and 300000\n"


def test_the_file_must_be_named() -> None:
    result = CliRunner().invoke(tidegate, ["backend"])
    assert result.exit_code == 2
    assert "Missing option '--config'" in result.stderr


def test_check_tells_that_it_is_a_backends_file() -> None:
    result = CliRunner().invoke(tidegate, ["check", str(EXAMPLE)])
    assert (result.exit_code, result.stdout) == (0, f"{EXAMPLE}: valid backend configuration\n")


def test_the_schema_is_the_backends() -> None:
    result = CliRunner().invoke(tidegate, ["schema", "backend"])
    assert result.exit_code == 0
    assert backend_schema()["title"] in result.stdout
