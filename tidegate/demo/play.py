"""Joins the parts: plays the scene, runs the workload, shows what is counted, and ends on time or on a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from typing import Final

import click
import uvloop
from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler

from tidegate.demo import table, workload
from tidegate.demo.scene import LAGGING, Scene, SceneFailed, scene
from tidegate.demo.tally import Results, Tally

FRAME_S: Final = 0.2
LINE_S: Final = 1.0
FAILURES: Final = (SceneFailed, workload.SetupFailed)
"""What `run` raises when the demo cannot begin; the text says why."""


def run(*, seconds: float | None, lag_ms: int, as_json: bool) -> Results:
    """Play the demo in this process; returns what was counted.

    Args:
        seconds: how long; None until SIGTERM or SIGINT, which end it in any case.
        lag_ms: how late the lagging broker is.
        as_json: standard output is for the caller's document, so everything here goes to standard error.

    Raises:
        SceneFailed: The cluster or the sidecar does not start.
        SetupFailed: The workload does not.
    """
    console = Console(stderr=as_json, highlight=False)
    _log_to(console)
    return uvloop.run(_play(console, seconds, lag_ms, quiet=as_json))


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
