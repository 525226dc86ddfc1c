"""`tidegate check FILE`: is this configuration usable, and if not, what is wrong on which line."""

from __future__ import annotations

import click

from config.backend import BackendConfig
from config.faults import ConfigError
from config.load import load_any
from tidegate.cli.exit_codes import USAGE


@click.command()
@click.argument("file")
@click.pass_context
def check(ctx: click.Context, file: str) -> None:
    """Validate a configuration of sidecar or backend.

    Which of the two FILE is for is told by its keys. A usable FILE ends with exit code 0. Otherwise
    every fault goes to standard error, one a line as `FILE:LINE: key.path: reason`, and the exit
    code is 2. Files that FILE names, such as password files, are not opened.

    \b
    Example:
      tidegate check sidecar.yaml
    """
    try:
        config = load_any(file)
    except ConfigError as error:
        for fault in error.faults:
            click.echo(fault, err=True)
        ctx.exit(USAGE)
    kind = "backend" if isinstance(config, BackendConfig) else "sidecar"
    click.echo(f"{file}: valid {kind} configuration")
