"""What the demo shows: a table that is drawn again and again on a terminal, one line a second elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidegate.demo.tally import Results, Tally

BAR_CELLS: Final = 40
_BAR_RECORDS_MIN: Final = 20
"""What a full bar stands for at least, so that a record or two do not fill it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that is shown at one moment.

    Attributes:
        lags: records behind the head by broker; `lagging` is the one that is made late.
        bootstrap: where clients of the sidecar connect to; `brokers` is the same without it.
        scraped: what Prometheus can scrape, `HOST:PORT`.
    """

    results: Results
    lags: Mapping[int, int]
    lagging: int
    bootstrap: str
    brokers: str
    scraped: tuple[str, ...]


def page(picture: Picture) -> Group:
    """For a terminal."""
    results = picture.results
    return Group(
        Text(
            f"Tidegate demo, {results.seconds:.0f} s. "
            f"Broker {picture.lagging} shows every change {results.lag_ms} ms late.\n"
            "Each change, once acknowledged, is read back at once through every broker.\n"
        ),
        _reads(results),
        Text("\nMetadata records behind the head"),
        _bars(picture.lags),
        Text(""),
        _places(picture),
        Text("\nCtrl-C ends it.", style="dim"),
    )


def line(picture: Picture) -> str:
    """For a pipe or a file."""
    results = picture.results
    lags = " ".join(f"{node_id}={lag}" for node_id, lag in picture.lags.items())
    return (
        f"{results.seconds:5.1f} s  direct: {_words(results.direct)}  "
        f"through the sidecar: {_words(results.sidecar)}  lag: {lags}"
    )


def opening(picture: Picture) -> str:
    """The first line where there is no table."""
    return (
        f"tidegate demo: broker {picture.lagging} shows every change {picture.results.lag_ms} ms late; "
        f"sidecar {picture.bootstrap}, brokers {picture.brokers}, metrics {' '.join(picture.scraped)}"
    )


def _reads(results: Results) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    for name in ("reads", "stale", "", "p50 ms", "failed"):
        table.add_column(name, justify="right")
    for name, tally in (("direct", results.direct), ("through the sidecar", results.sidecar)):
        p50 = tally.read_ms_p50
        table.add_row(
            name,
            str(tally.reads),
            Text(str(tally.stale), style="bold red" if tally.stale else "bold green"),
            f"{tally.stale_percent:.1f} %",
            "-" if p50 is None else f"{p50:.1f}",
            str(tally.failed),
        )
    return table


def _bars(lags: Mapping[int, int]) -> Table:
    full = max(_BAR_RECORDS_MIN, *lags.values())
    table = Table.grid(padding=(0, 1, 0, 0))
    for node_id, lag in lags.items():
        cells = -(-lag * BAR_CELLS // full)
        bar = Text("█" * cells, style="red") + Text("░" * (BAR_CELLS - cells), style="dim")
        table.add_row(f"broker {node_id}", bar, Text(str(lag), justify="right"))
    return table


def _places(picture: Picture) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    rows: list[tuple[str, RenderableType]] = [
        ("with Tidegate", f"bootstrap.servers={picture.bootstrap}"),
        ("without", f"bootstrap.servers={picture.brokers}"),
        ("Prometheus", "  ".join(f"http://{address}/metrics" for address in picture.scraped)),
        ("more", f"tidegate status --admin {picture.scraped[0]} --watch"),
    ]
    for name, value in rows:
        table.add_row(Text(name, style="bold"), value)
    return table


def _words(tally: Tally) -> str:
    p50 = tally.read_ms_p50
    words = f"{tally.reads} reads, {tally.stale} stale"
    words += "" if p50 is None else f", p50 {p50:.1f} ms"
    return words + (f", {tally.failed} failed" if tally.failed else "")
