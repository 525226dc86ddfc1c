"""`tidegate lag`: how far each broker is behind the head of the metadata log, straight from the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from config.faults import ConfigError
from config.load import load_security
from config.sidecar import ClusterSecurity
from config.values import HostPort
from sidecar.survey import ClusterUnreachable, NoHead, Standing, Survey, Surveyor, surveying
from tidegate.cli.cluster_options import Servers, bootstrap_option, command_config_option
from tidegate.cli.exit_codes import DONE, UNREACHABLE, USAGE

INTERVAL_S: Final = 1.0
_PIPE_WIDTH: Final = 240


@click.command()
@bootstrap_option
@click.option("--watch", is_flag=True, help="Show it again every second until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@command_config_option
@click.pass_context
def lag(ctx: click.Context, servers: Servers, watch: bool, as_json: bool, command_config: str | None) -> None:
    """Show how far each broker is behind the head.

    Asks the cluster itself and needs no sidecar: every broker for its metadata position, which takes
    no privilege, and DescribeQuorum for the head, which takes Describe on the cluster. Without that
    the head is shown as unknown. The lag is what a broker had not read of all that was committed
    when the head was asked. The exit code is 3 if no broker answers.

    \b
    Example:
      tidegate lag --bootstrap 127.0.0.1:9092 --watch
    """
    if watch and as_json:
        raise click.UsageError("--watch does not go with --json, which prints exactly one object")
    try:
        security = ClusterSecurity() if command_config is None else load_security(command_config)
        ctx.exit(asyncio.run(_run(servers, security, watch, as_json)))
    except ConfigError as error:
        for fault in error.faults:
            click.echo(fault, err=True)
        ctx.exit(USAGE)
    except KeyboardInterrupt:
        if not watch:
            raise
        ctx.exit(DONE)


async def _run(servers: Servers, security: ClusterSecurity, watch: bool, as_json: bool) -> int:
    async with surveying(servers, security) as surveyor:
        try:
            if watch:
                await _watch(surveyor)
            survey = await surveyor.look()
        except ClusterUnreachable as error:
            for line in str(error).splitlines():
                click.echo(f"tidegate lag: {line}", err=True)
            if as_json:
                click.echo(json.dumps({"head": None, "reason": "no broker answers", "brokers": []}))
            return UNREACHABLE
    if as_json:
        click.echo(json.dumps(as_object(survey)))
    else:
        _console().print(_page(survey))
    if not survey.answered:
        click.echo("tidegate lag: no broker answers at the address that the cluster names for it", err=True)
        return UNREACHABLE
    return DONE


async def _watch(surveyor: Surveyor) -> None:
    """Until cancelled. The first look must succeed; later ones say what is wrong in place of the table."""
    console = _console()
    page: Group | Text = _page(await surveyor.look())
    # Live redraws in place, which only a terminal can.
    with Live(console=console, auto_refresh=False) if console.is_terminal else contextlib.nullcontext() as live:
        while True:
            if live is None:
                console.print(page)
            else:
                live.update(page, refresh=True)
            await asyncio.sleep(INTERVAL_S)
            try:
                page = _page(await surveyor.look())
            except ClusterUnreachable as error:
                page = Text(f"cluster not reachable\n{error}")


def as_object(survey: Survey) -> dict[str, Any]:
    """What `--json` prints; a reason stands beside every null head and offset."""
    brokers = [_broker(survey, standing) for standing in survey.brokers]
    match survey.head:
        case NoHead(reason=reason):
            return {"head": None, "reason": reason, "brokers": brokers}
        case head:
            return {"head": {"offset": head.offset, "leader_epoch": head.leader_epoch}, "brokers": brokers}


def _broker(survey: Survey, standing: Standing) -> dict[str, Any]:
    broker: dict[str, Any] = {
        "node_id": standing.node_id,
        "offset": standing.offset,
        "lag_records": survey.lag_records(standing),
    }
    return broker if standing.reason is None else {**broker, "reason": standing.reason}


def _page(survey: Survey) -> Group:
    match survey.head:
        case NoHead(reason=reason):
            title = f"head unknown: {reason}"
        case head:
            title = f"head {head.offset} at leader epoch {head.leader_epoch}"
    table = Table(box=None, pad_edge=False)
    for name in ("broker", "address", "visible", "lag"):
        table.add_column(name, justify="left" if name == "address" else "right", overflow="fold")
    if any(standing.reason for standing in survey.brokers):
        table.add_column("why not", overflow="fold")
    for standing in survey.brokers:
        table.add_row(
            str(standing.node_id),
            Text(_printable(str(HostPort(standing.host, standing.port)))),
            _number(standing.offset),
            _number(survey.lag_records(standing)),
            *([Text(standing.reason)] if standing.reason else []),
        )
    return Group(Text(title), table)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _printable(text: str) -> str:
    """Host names come from the cluster: nothing in them may steer the terminal."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _console() -> Console:
    console = Console(highlight=False)
    # A pipe has no width; what reads it wants whole lines.
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)
