"""`tidegate demo`: what stale metadata is, and that it ends with a sidecar, with nothing else installed."""

from __future__ import annotations

import json

import click

from tidegate.cli.exit_codes import DONE, UNREACHABLE

LAG_MS_MAX = 60_000
SECONDS_MAX = 86_400


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
    from tidegate.demo import play

    try:
        results = play.run(seconds=seconds, lag_ms=lag_ms, as_json=as_json)
    except play.FAILURES as error:
        click.echo(f"tidegate demo: {error}", err=True)
        ctx.exit(UNREACHABLE)
    if as_json:
        click.echo(json.dumps(results.document()))
    ctx.exit(DONE)
