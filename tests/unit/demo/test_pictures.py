"""What the demo counts and shows."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tidegate.demo import table
from tidegate.demo.changes import Seen
from tidegate.demo.table import BAR_CELLS, Picture
from tidegate.demo.tally import Results, Tally


def tally(*, fresh: int, stale: int, latency_ms: float = 1.234) -> Tally:
    made = Tally()
    for seen in [Seen.FRESH] * fresh + [Seen.STALE] * stale:
        made.count(seen, latency_ms)
    return made


@pytest.fixture
def picture() -> Picture:
    results = Results(
        direct=tally(fresh=6, stale=3),
        sidecar=tally(fresh=9, stale=0, latency_ms=2.5),
        seconds=12.04,
        lag_ms=500,
        admin="127.0.0.1:9464",
    )
    return Picture(
        results=results,
        lags={1: 0, 2: 1, 3: 30},
        lagging=3,
        bootstrap="127.0.0.1:19092",
        brokers="127.0.0.1:1,127.0.0.1:2",
        scraped=("127.0.0.1:9464", "127.0.0.1:9465"),
    )


def drawn(picture: Picture, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(table.page(picture))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def row(lines: list[str], name: str) -> list[str]:
    (found,) = (line for line in lines if line.startswith(name))
    return found.removeprefix(name).split()


def test_the_document_is_that_of_the_public_interface(picture: Picture) -> None:
    assert picture.results.document() == {
        "direct": {"reads": 9, "stale": 3, "failed": 0},
        "sidecar": {"reads": 9, "stale": 0, "failed": 0},
        "seconds": 12.0,
        "lag_ms": 500,
        "read_ms_p50": {"direct": 1.23, "sidecar": 2.5},
        "admin": "127.0.0.1:9464",
    }


def test_nothing_counted_has_no_median(picture: Picture) -> None:
    nothing = replace(picture.results, direct=Tally(), sidecar=Tally())
    assert nothing.document()["read_ms_p50"] == {"direct": None, "sidecar": None}
    assert row(drawn(replace(picture, results=nothing)), "direct") == ["0", "0", "0.0", "%", "-", "0"]


def test_the_median_is_that_of_the_middle_read() -> None:
    made = Tally()
    for latency_ms in (9.0, 1.0, 2.0):
        made.count(Seen.FRESH, latency_ms)
    assert made.read_ms_p50 == 2.0


def test_the_table_has_both_ways_in_one_row_each(picture: Picture) -> None:
    lines = drawn(picture)
    assert row(lines, "direct") == ["9", "3", "33.3", "%", "1.2", "0"]
    assert row(lines, "through the sidecar") == ["9", "0", "0.0", "%", "2.5", "0"]


def test_bars_are_as_long_as_the_lag(picture: Picture) -> None:
    lines = drawn(picture)
    assert row(lines, "broker 1") == ["░" * BAR_CELLS, "0"]
    assert row(lines, "broker 2")[0].count("█") == 2
    assert row(lines, "broker 3") == ["█" * BAR_CELLS, "30"]


def test_a_record_or_two_do_not_fill_a_bar(picture: Picture) -> None:
    lines = drawn(replace(picture, lags={1: 0, 3: 2}))
    assert row(lines, "broker 3")[0].count("█") == 4


def test_the_page_says_where_to_point_clients_and_prometheus(picture: Picture) -> None:
    page = "\n".join(drawn(picture, 100))
    for place in (
        "bootstrap.servers=127.0.0.1:19092",
        "http://127.0.0.1:9464/metrics",
        "http://127.0.0.1:9465/metrics",
    ):
        assert place in page


def test_lines_say_the_same_without_a_terminal(picture: Picture) -> None:
    picture.results.direct.failed = 2
    assert table.line(picture) == (
        " 12.0 s  direct: 9 reads, 3 stale, p50 1.2 ms, 2 failed  "
        "through the sidecar: 9 reads, 0 stale, p50 2.5 ms  lag: 1=0 2=1 3=30"
    )
    assert "sidecar 127.0.0.1:19092, brokers 127.0.0.1:1,127.0.0.1:2" in table.opening(picture)
