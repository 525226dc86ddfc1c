"""`tidegate backend`: nodes of the Python metadata backend, until SIGTERM or SIGINT."""

from __future__ import annotations

import sys

import click

from config.faults import ConfigError
from config.load import load_backend
from tidegate.cli.exit_codes import USAGE


@click.command()
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    required=True,
    help="Configuration file; `tidegate check` validates it.",
)
@click.pass_context
def backend(ctx: click.Context, config_file: str) -> None:
    """Run the Python metadata backend.

    It runs all nodes of the file in this process, or those that `local` names: controllers, which
    are the voters of a KRaft quorum, and brokers that answer metadata requests and implement
    ConsistencyState. They keep no records of topics and serve no groups. It prints one line on
    standard error once its brokers serve. SIGTERM and SIGINT end it with exit code 0; a node that
    cannot go on, because its disk fails for instance, ends it with 1.

    \b
    Example:
      tidegate backend --config config/examples/backend.yaml
    """
    try:
        config = load_backend(config_file)
    except ConfigError as error:
        for fault in error.faults:
            click.echo(fault, err=True)
        ctx.exit(USAGE)

    from backend import app
    from sidecar import logs

    logs.configure(config.logging.level, config.logging.format, sys.stderr)
    ctx.exit(app.run(config))
