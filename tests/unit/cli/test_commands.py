"""The commands as a user runs them: output, exit codes, help."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from config.schema import sidecar_schema
from tidegate.cli.group import COMMANDS, tidegate

EXAMPLE = Path(__file__).parents[3] / "config" / "examples" / "sidecar.yaml"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(tidegate, arguments, prog_name="tidegate")


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            found.append((*path, name))
            if isinstance(command, click.Group):
                found += every_command(command, (*path, name))
    return found


def test_a_valid_file_is_said_to_be_valid() -> None:
    result = run("check", str(EXAMPLE))
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{EXAMPLE}: valid sidecar configuration\n", "")


def test_faults_go_to_standard_error_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("cluster:\n  bootstrap_servers: [kafka]\nadmim: {}\n")
    result = run("check", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        f"{path}:2: cluster.bootstrap_servers[0]: must be HOST:PORT",
        f"{path}:3: admim: unknown key; did you mean `admin`?",
    ]


def test_a_file_that_is_not_there_is_a_fault() -> None:
    result = run("check", "/nowhere/sidecar.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "/nowhere/sidecar.yaml: cannot be read: No such file or directory\n"


def test_the_schema_is_one_json_document() -> None:
    result = run("schema", "sidecar")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == sidecar_schema()


@pytest.mark.parametrize("arguments", [("check",), ("nothing",), ("check", "--nothing"), ("schema", "nothing")])
def test_wrong_usage_is_told_on_standard_error(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


@pytest.mark.parametrize("path", [(), *every_command(tidegate)], ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help_with_an_example(path: tuple[str, ...], option: str) -> None:
    result = run(*path, option)
    assert result.exit_code == 0
    assert "Example:\n" in result.stdout
    assert " ".join(("tidegate", *path)) in result.stdout.partition("Example:\n")[2]


def test_the_summary_of_a_command_begins_its_own_help() -> None:
    with click.Context(tidegate) as context:
        for name, row in COMMANDS.items():
            command = tidegate.get_command(context, name)
            assert command is not None
            assert command.name == name
            assert (command.help or "").partition("\n")[0] == row.summary
