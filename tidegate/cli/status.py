"""`tidegate status`: what a running sidecar knows, asked of its admin listener."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, TypeAlias

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from config.faults import ConfigError
from config.files import read_secret
from config.values import HostPort
from tidegate.cli.exit_codes import UNREACHABLE, USAGE

PARTS: Final = ("brokers", "head", "sessions", "held")
TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 64 << 20
INTERVAL_S: Final = 1.0
ROWS_MAX: Final = 20
"""How many rows of a table are shown; `--json` has them all."""
_PIPE_WIDTH: Final = 140

Row: TypeAlias = Mapping[str, Any]


class Unreachable(Exception):
    """No sidecar answers at the admin address; the text says what to do."""


@dataclass(frozen=True, slots=True)
class _Admin:
    """Whom to ask, and the token to show."""

    address: HostPort
    token: str | None

    def __str__(self) -> str:
        return str(self.address)


class _AdminAddress(click.ParamType[HostPort]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> HostPort:
        try:
            return value if isinstance(value, HostPort) else HostPort.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option(
    "--admin",
    type=_AdminAddress(),
    default="127.0.0.1:9464",
    show_default=True,
    metavar="HOST:PORT",
    help="Admin address of the sidecar.",
)
@click.option("--token-file", metavar="FILE", help="File with the sidecar's admin token, if it asks for one.")
@click.option("--watch", is_flag=True, help="Show it again every second until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def status(ctx: click.Context, admin: HostPort, token_file: str | None, watch: bool, as_json: bool) -> None:
    """Show what a running sidecar knows.

    Brokers with their metadata positions, the head of the metadata log, sessions, and the reads that
    are held. The exit code is 3 if no sidecar answers.

    \b
    Example:
      tidegate status --admin 127.0.0.1:9464 --watch
    """
    if watch and as_json:
        raise click.UsageError("--watch does not go with --json, which prints exactly one object")
    try:
        asked = _Admin(admin, None if token_file is None else read_secret(token_file))
    except ConfigError as error:
        click.echo(f"tidegate status: {error}", err=True)
        ctx.exit(USAGE)
    try:
        if as_json:
            click.echo(json.dumps({part: _ask(asked, part) for part in PARTS}))
        elif watch:
            _watch(asked)
        else:
            _console().print(_page(asked))
    except Unreachable as error:
        click.echo(f"tidegate status: {error}", err=True)
        ctx.exit(UNREACHABLE)


def _watch(admin: _Admin) -> None:
    console = _console()
    try:
        if not console.is_terminal:
            while True:
                console.print(_page(admin))
                time.sleep(INTERVAL_S)
        with Live(_page(admin), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(INTERVAL_S)
                live.update(_page(admin), refresh=True)
    except KeyboardInterrupt:
        return


def _console() -> Console:
    console = Console(highlight=False)
    # A pipe has no width; what reads it wants whole lines.
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def _ask(admin: _Admin, part: str) -> Any:
    connection = HTTPConnection(admin.address.host, admin.address.port, timeout=TIMEOUT_S)
    headers = {} if admin.token is None else {"Authorization": f"Bearer {admin.token}"}
    try:
        connection.request("GET", f"/{part}", headers=headers)
        response = connection.getresponse()
        body = response.read(ANSWER_BYTES_MAX)
        if response.status == HTTPStatus.UNAUTHORIZED:
            wrong = "another" if admin.token is not None else "a"
            raise Unreachable(
                f"the sidecar at {admin} wants {wrong} token: name its admin.token_file with --token-file"
            )
        answer = json.loads(body)
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise Unreachable(
            f"no sidecar answers at {admin}: {reason}. Start one with `tidegate run`, "
            "or name its admin address with --admin HOST:PORT"
        ) from error
    except (HTTPException, ValueError, RecursionError) as error:
        raise _foreign(admin) from error
    finally:
        connection.close()
    wanted = dict if part in ("head", "readyz") else list
    if not isinstance(answer, wanted) or (isinstance(answer, dict) and "error" in answer):
        raise _foreign(admin)
    return answer


def _foreign(admin: _Admin) -> Unreachable:
    return Unreachable(
        f"what answers at {admin} is not the admin listener of a sidecar. Name its address with --admin HOST:PORT"
    )


def _page(admin: _Admin) -> Group:
    readiness, head = _ask(admin, "readyz"), _ask(admin, "head")
    return Group(
        Text(_readiness(readiness)),
        Text(_head(head)),
        _table("Brokers", _ask(admin, "brokers"), _BROKER_COLUMNS, "none known yet"),
        _table("Sessions", _ask(admin, "sessions"), _SESSION_COLUMNS, "none"),
        _table("Held reads", _ask(admin, "held"), _HELD_COLUMNS, "none"),
    )


_BROKER_COLUMNS: Final = {
    "node_id": "broker",
    "address": "address",
    "port": "port here",
    "state": "state",
    "visible_offset": "visible",
    "effective_offset": "effective",
    "lag_records": "lag",
    "lag_ms": "lag ms",
    "in_flight": "in flight",
    "probe_age_ms": "probed ms ago",
}
_SESSION_COLUMNS: Final = {
    "session": "session",
    "clients": "clients",
    "pending": "pending",
    "last_seen_ms": "seen ms ago",
    "token": "token",
}
_HELD_COLUMNS: Final = {
    "session": "session",
    "api": "API",
    "why": "why",
    "waits_for": "waits for",
    "held_ms": "held ms",
    "deadline_ms": "ms left",
}


def _readiness(readiness: Row) -> str:
    state = "ready" if readiness.get("ready") else "not ready"
    reasons = "; ".join(map(str, readiness.get("reasons", [])))
    return f"{state}, guarantee {readiness.get('guarantee')}" + (f": {reasons}" if reasons else "")


def _head(head: Row) -> str:
    if head.get("offset") is None:
        return f"head unknown (from {head.get('source')})"
    return (
        f"head {head['offset']} at leader epoch {head.get('leader_epoch')}, "
        f"{head.get('age_ms')} ms ago (from {head.get('source')})"
    )


def _table(title: str, rows: Sequence[Row], columns: Mapping[str, str], empty: str) -> Table | Text:
    if not rows:
        return Text(f"\n{title}: {empty}")
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for key, name in columns.items():
        number = isinstance(rows[0].get(key), int) and not isinstance(rows[0].get(key), bool)
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows[:ROWS_MAX]:
        table.add_row(*(Text(_cell(row.get(key))) for key in columns))
    if len(rows) > ROWS_MAX:
        table.caption = f"and {len(rows) - ROWS_MAX} more"
    return table


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
