"""`tidegate status` against an admin listener that answers what a test says."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.kafka.ports import free_ports
from tidegate.cli import status as command
from tidegate.cli.group import tidegate

BROKER = {
    "node_id": 1,
    "address": "127.0.0.1:9092",
    "port": 19101,
    "ports": {"default": 19101},
    "state": "up",
    "visible_offset": 41,
    "effective_offset": None,
    "lag_records": 0,
    "lag_ms": 0,
    "in_flight": 3,
    "probe_age_ms": 120,
}
ANSWERS: dict[str, Any] = {
    "/readyz": {"ready": False, "reasons": ["draining"], "guarantee": "full"},
    "/brokers": [BROKER],
    "/head": {"offset": 41, "leader_epoch": 3, "age_ms": 120, "source": "describe_quorum"},
    "/sessions": [{"session": "[red]service", "token": "abc", "pending": True, "clients": 3, "last_seen_ms": 12}],
    "/held": [],
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tidegate, ("status", *arguments), prog_name="tidegate")


@contextmanager
def answering(answers: dict[str, Any], token: str | None = None) -> Iterator[str]:
    """An HTTP listener with these answers, bytes as they are, for whoever shows the token if there is one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if token is not None and self.headers["Authorization"] != f"Bearer {token}":
                self.send_response(401)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            answer = answers.get(self.path, {"error": "no such path"})
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(503 if self.path == "/readyz" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_json_is_one_object_with_the_documented_parts() -> None:
    with answering(ANSWERS) as admin:
        result = run("--admin", admin, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1
    assert json.loads(result.stdout) == {part: ANSWERS[f"/{part}"] for part in ("brokers", "head", "sessions", "held")}


def test_the_page_shows_it_all() -> None:
    with answering(ANSWERS) as admin:
        result = run("--admin", admin)
    assert (result.exit_code, result.stderr) == (0, "")
    shown = result.stdout
    assert "not ready, guarantee full: draining" in shown
    assert "head 41 at leader epoch 3, 120 ms ago (from describe_quorum)" in shown
    (row,) = [line.split() for line in shown.splitlines() if "127.0.0.1:9092" in line]
    assert row == ["1", "127.0.0.1:9092", "19101", "up", "41", "-", "0", "0", "3", "120"]
    (row,) = [line.split() for line in shown.splitlines() if "service" in line]
    assert row == ["[red]service", "3", "yes", "12", "abc"]
    assert "Held reads: none" in shown


def test_long_tables_say_how_much_is_left_out() -> None:
    held = {"session": "s", "api": "Metadata", "waits_for": None, "why": "own write", "held_ms": 1, "deadline_ms": 2}
    with answering({**ANSWERS, "/held": [held] * (command.ROWS_MAX + 5)}) as admin:
        result = run("--admin", admin)
    assert result.stdout.count("own write") == command.ROWS_MAX
    assert "and 5 more" in result.stdout


def test_an_unknown_head_is_said() -> None:
    head = {"offset": None, "leader_epoch": None, "age_ms": None, "source": "broker_max"}
    with answering({**ANSWERS, "/head": head, "/brokers": []}) as admin:
        result = run("--admin", admin)
    assert "head unknown (from broker_max)" in result.stdout
    assert "Brokers: none known yet" in result.stdout


def test_watching_goes_on_until_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter(range(2))

    def sleep(seconds: float) -> None:
        assert seconds == command.INTERVAL_S
        if next(rounds, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("tidegate.cli.status.time.sleep", sleep)
    with answering(ANSWERS) as admin:
        result = run("--admin", admin, "--watch")
    assert result.exit_code == 0
    assert result.stdout.count("guarantee full") == 3


@pytest.mark.parametrize("option", [(), ("--json",), ("--watch",)])
def test_nobody_there_is_exit_code_3(option: tuple[str, ...]) -> None:
    (port,) = free_ports(1)
    result = run("--admin", f"127.0.0.1:{port}", *option)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        f"tidegate status: no sidecar answers at 127.0.0.1:{port}: Connection refused. "
        "Start one with `tidegate run`, or name its admin address with --admin HOST:PORT\n"
    )


@pytest.mark.parametrize("brokers", [b"<html>", b"{}", {"error": "no such path"}, b"", b"[" * 100_000])
def test_somebody_else_there_is_exit_code_3(brokers: Any) -> None:
    with answering({**ANSWERS, "/brokers": brokers}) as admin:
        result = run("--admin", admin, "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"what answers at {admin} is not the admin listener of a sidecar" in result.stderr


@pytest.mark.row("5.9")
def test_the_token_of_a_file_is_shown_to_a_sidecar_that_asks_for_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret words\n")
    with answering(ANSWERS, token="secret words") as admin:
        assert run("--admin", admin, "--json", "--token-file", str(file)).exit_code == 0
        without = run("--admin", admin)
        file.write_text("wrong words")
        wrong = run("--admin", admin, "--json", "--token-file", str(file))
    assert (without.exit_code, wrong.exit_code) == (3, 3)
    words = "token: name its admin.token_file with --token-file\n"
    assert without.stderr == f"tidegate status: the sidecar at {admin} wants a {words}"
    assert wrong.stderr == f"tidegate status: the sidecar at {admin} wants another {words}"
    missing = run("--token-file", str(tmp_path / "none"))
    assert (missing.exit_code, "cannot be read" in missing.stderr) == (2, True)


@pytest.mark.parametrize("arguments", [("--watch", "--json"), ("--admin", "nowhere"), ("--admin", "http://a:1")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
