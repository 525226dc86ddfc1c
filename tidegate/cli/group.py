"""The group of all commands. To add one: write its module, add a row to `COMMANDS`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

import click


class Row(NamedTuple):
    """Where a command lives, and its line in `tidegate --help`, which is shown without importing the command."""

    module: str
    name: str
    summary: str


COMMANDS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "run": Row("tidegate.cli.run", "run", "Run the sidecar in front of a Kafka cluster."),
        "backend": Row("tidegate.cli.backend", "backend", "Run the Python metadata backend."),
        "demo": Row("tidegate.cli.demo", "demo", "Show stale reads, and their end."),
        "status": Row("tidegate.cli.status", "status", "Show what a running sidecar knows."),
        "lag": Row("tidegate.cli.lag", "lag", "Show how far each broker is behind the head."),
        "inspect": Row("tidegate.cli.inspect", "inspect", "Show frames, captures and log segments as trees."),
        "check": Row("tidegate.cli.check", "check", "Validate a configuration of sidecar or backend."),
        "schema": Row("tidegate.cli.schema", "schema", "Print the JSON Schema of a configuration."),
    }
)


class LazyGroup(click.Group):
    """A group that imports a command's module when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself, imported; None for a name that is not in the table."""
        if cmd_name not in COMMANDS:
            return None
        row = COMMANDS[cmd_name]
        command = getattr(import_module(row.module), row.name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `tidegate --help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in COMMANDS.items()])


def _print_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"tidegate {version('tidegate')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def tidegate() -> None:
    """A sidecar proxy that ends stale metadata in Apache Kafka for clients nobody has to change.

    \b
    Example:
      tidegate check sidecar.yaml
    """
