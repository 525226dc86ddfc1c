"""The options of commands that look at a cluster themselves: which one, and as whom."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import click

from config.values import HostPort

SERVERS_MAX: Final = 100

Servers: TypeAlias = tuple[HostPort, ...]


class BootstrapServers(click.ParamType[Servers]):
    """`HOST:PORT[,HOST:PORT...]`."""

    name = "HOST:PORT[,...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Servers:
        """The addresses; a usage error for anything else."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",", SERVERS_MAX)
        if len(parts) > SERVERS_MAX:
            self.fail(f"must have at most {SERVERS_MAX} entries", param, ctx)
        try:
            return tuple(HostPort.parse(part.strip()) for part in parts)
        except ValueError as error:
            self.fail(f"{error}, or several of them with commas", param, ctx)


bootstrap_option = click.option(
    "--bootstrap",
    "servers",
    type=BootstrapServers(),
    required=True,
    metavar="HOST:PORT[,...]",
    help="Brokers to ask for all the others.",
)
command_config_option = click.option(
    "--command-config",
    metavar="FILE",
    help="YAML file with the section cluster.security, for clusters that demand a login.",
)
