"""`tidegate run`: the sidecar itself, until SIGTERM or SIGINT."""

from __future__ import annotations

from pathlib import Path

import click

from config.faults import ConfigError
from config.load import from_arguments, load_sidecar
from config.sidecar import SidecarConfig
from tidegate.cli.exit_codes import USAGE


@click.command()
@click.option("--config", "config_file", metavar="FILE", help="Configuration file; `tidegate check` validates it.")
@click.option("--bootstrap", metavar="HOST:PORT[,...]", help="Brokers to serve, instead of a file.")
@click.option("--listen", metavar="HOST:PORT", help="Where clients connect to.  [default: 127.0.0.1:19092]")
@click.option("--node-ports", metavar="FIRST-LAST", help="One port for each broker.  [default: 19101-19199]")
@click.option("--admin", metavar="HOST:PORT", help="Metrics, health and state.  [default: 127.0.0.1:9464]")
@click.option("--command-config", metavar="FILE", help="YAML file with the section cluster.security.")
@click.pass_context
def run(
    ctx: click.Context,
    config_file: str | None,
    bootstrap: str | None,
    listen: str | None,
    node_ports: str | None,
    admin: str | None,
    command_config: str | None,
) -> None:
    """Run the sidecar in front of a Kafka cluster.

    Configure it with a file (--config), or with --bootstrap and the other options. It prints one
    line on standard error once it serves, and waits for a cluster that cannot be reached. SIGTERM
    and SIGINT end it with exit code 0 after its clients have left, a second one at once. SIGHUP, or
    a change of the file, makes it take over what it can, and say what needs a restart.

    \b
    Example:
      tidegate run --bootstrap 127.0.0.1:9092
    """
    options = {
        "--bootstrap": bootstrap,
        "--listen": listen,
        "--node-ports": node_ports,
        "--admin": admin,
        "--command-config": command_config,
    }
    given = [option for option, value in options.items() if value is not None]
    if config_file is None and bootstrap is None:
        raise click.UsageError("say which Kafka to serve: --config FILE or --bootstrap HOST:PORT")
    if config_file is not None and given:
        raise click.UsageError(f"{given[0]} does not go with --config: set it in the file")
    try:
        config = _config(config_file, bootstrap or "", listen, node_ports, admin, command_config)
    except ConfigError as error:
        for fault in error.faults:
            click.echo(fault, err=True)
        ctx.exit(USAGE)

    from sidecar import app

    ctx.exit(app.run(config, None if config_file is None else Path(config_file)))


def _config(
    config_file: str | None,
    bootstrap: str,
    listen: str | None,
    node_ports: str | None,
    admin: str | None,
    command_config: str | None,
) -> SidecarConfig:
    if config_file is not None:
        return load_sidecar(config_file)
    return from_arguments(
        bootstrap=bootstrap, listen=listen, node_ports=node_ports, admin=admin, command_config=command_config
    )
