"""`tidegate demo`: what stale metadata is, and that it ends with a sidecar, with nothing else installed.

Joins the parts of `tidegate.demo`: plays the scene, runs the workload, shows what is counted, and ends on time or on a
signal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable

import click
from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler

from tidegate.cli.exit_codes import DONE, UNREACHABLE
from tidegate.demo import table, workload
from tidegate.demo.scene import LAGGING, Scene, SceneFailed, scene
from tidegate.demo.tally import Results, Tally

LAG_MS_MAX = 60_000
SECONDS_MAX = 86_400
FRAME_S = 0.2
LINE_S = 1.0


@click.command()
@click.option("--seconds", type=click.FloatRange(1, SECONDS_MAX), metavar="N", help="End after so long.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end, all else on standard error.")
@click.option(
    "--lag-ms",
    type=click.IntRange(0, LAG_MS_MAX),
    default=500,
    show_default=True,
    metavar="MS",
    help="How late one of the brokers shows changes.",
)
@click.pass_context
def demo(ctx: click.Context, seconds: float | None, as_json: bool, lag_ms: int) -> None:
    """Show stale reads, and their end.

    Starts an embedded cluster of 3 controllers and 3 brokers, one of which lags, with a sidecar
    before it, all on free loopback ports. A workload changes topics, configs and ACLs and reads each
    change back at once, half of it directly from the brokers, half through the sidecar. SIGTERM and
    SIGINT end it with exit code 0.

    \b
    Example:
      tidegate demo --seconds 15
    """
    import uvloop

    console = Console(stderr=as_json, highlight=False)
    _log_to(console)
    try:
        results = uvloop.run(_play(console, seconds, lag_ms, quiet=as_json))
    except (SceneFailed, workload.SetupFailed) as error:
        click.echo(f"tidegate demo: {error}", err=True)
        ctx.exit(UNREACHABLE)
    if as_json:
        click.echo(json.dumps(results.document()))
    ctx.exit(DONE)


def _log_to(console: Console) -> None:
    """Warnings go above the table, or to standard error."""
    if console.is_terminal:
        handler: logging.Handler = RichHandler(console=console, show_path=False)
    else:
        handler = logging.StreamHandler(sys.stderr)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format="%(message)s", force=True)


async def _play(console: Console, seconds: float | None, lag_ms: int, *, quiet: bool) -> Results:
    """Everything from the first port to the last; returns what was counted.

    Raises:
        SceneFailed: The cluster or the sidecar does not start.
        SetupFailed: The workload does not.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stopping.set)
    direct, sidecar = Tally(), Tally()
    async with scene(lag_ms) as stage:
        begun_s = loop.time()

        def results() -> Results:
            elapsed_s = loop.time() - begun_s
            return Results(direct=direct, sidecar=sidecar, seconds=elapsed_s, lag_ms=lag_ms, admin=stage.admin)

        ways = {"direct": (stage.brokers, direct), "sidecar": (stage.nodes, sidecar)}
        working = asyncio.create_task(workload.run(ways))
        showing = asyncio.create_task(_show(console, stage, results, quiet=quiet))
        ending = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((working, showing, ending), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            outcome = results()
        finally:
            for task in (working, showing, ending):
                task.cancel()
            ended = await asyncio.gather(working, showing, ending, return_exceptions=True)
        for failure in ended:
            if isinstance(failure, Exception):
                raise failure
    return outcome


async def _show(console: Console, stage: Scene, results: Callable[[], Results], *, quiet: bool) -> None:
    """Until cancelled: the table on a terminal, else a line now and then, with `quiet` only the first."""

    def picture() -> table.Picture:
        return table.Picture(
            results=results(),
            lags=stage.lags(),
            lagging=LAGGING,
            bootstrap=stage.bootstrap,
            brokers=stage.backend.bootstrap_servers,
            scraped=(stage.admin, stage.backend_admin),
        )

    if console.is_terminal:
        with Live(table.page(picture()), console=console, auto_refresh=False) as live:
            try:
                while True:
                    await asyncio.sleep(FRAME_S)
                    live.update(table.page(picture()), refresh=True)
            finally:
                live.update(table.page(picture()), refresh=True)
    click.echo(table.opening(picture()), err=quiet)
    if quiet:
        await asyncio.Event().wait()
    try:
        while True:
            await asyncio.sleep(LINE_S)
            click.echo(table.line(picture()))
    finally:
        click.echo(table.line(picture()))
