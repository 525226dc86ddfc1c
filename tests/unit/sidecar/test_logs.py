"""Log lines: their form, and that a record is one line whatever it holds."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from sidecar import logs

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (WARNING|INFO|ERROR) (\S+): (.*)")
log = logging.getLogger("tidegate.test")


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger(logs.LOGGER)
    before = root.handlers[:], root.level, ours.level, logging.raiseExceptions
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logging.raiseExceptions = before[3]


def test_text_has_time_level_logger_and_message() -> None:
    out = io.StringIO()
    logs.configure("info", "text", out)
    log.warning("broker %d is down", 2)
    found = LINE.fullmatch(out.getvalue().removesuffix("\n"))
    assert found is not None
    assert found.groups() == ("WARNING", "tidegate.test", "broker 2 is down")


def test_the_time_is_utc() -> None:
    record = logging.LogRecord("tidegate", logging.INFO, __file__, 1, "x", (), None)
    record.created = 0.5
    assert logs.TextFormatter().format(record).startswith("1970-01-01T00:00:00.500Z INFO ")


def test_json_has_the_same_fields() -> None:
    out = io.StringIO()
    logs.configure("info", "json", out)
    log.error("no %s", "way")
    fields = json.loads(out.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", fields.pop("time"))
    assert fields == {"level": "error", "logger": "tidegate.test", "message": "no way"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_record_is_one_line(form: str) -> None:
    out = io.StringIO()
    logs.configure("info", "json" if form == "json" else "text", out)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("from a peer: a\nb\x1b[31m\u2028c")
    (line,) = out.getvalue().splitlines()
    assert "\x1b" not in line
    assert "ValueError" in line
    assert r"a\nb" in line


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_counts_for_our_own_loggers(level: str, shown: int) -> None:
    out = io.StringIO()
    logs.configure(level, "text", out)  # type: ignore[arg-type]
    for method in (log.debug, log.info, log.warning, log.error):
        method("x")
    assert len(out.getvalue().splitlines()) == shown


def test_libraries_speak_from_warning_up() -> None:
    out = io.StringIO()
    logs.configure("debug", "text", out)
    logging.getLogger("asyncio").info("chatter")
    logging.getLogger("asyncio").warning("trouble")
    assert [line.split(": ", 1)[1] for line in out.getvalue().splitlines()] == ["trouble"]
