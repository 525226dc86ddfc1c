"""Log lines on standard error: one line a record, as text or as JSON, with the time in UTC to the millisecond.

Line breaks and control characters in a message, which may hold bytes of a peer, are escaped, and so is a traceback: one
record can never look like two.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

LOGGER: Final = "tidegate"
"""Above all loggers of ours."""


def configure(level: Literal["debug", "info", "warning", "error"], form: Literal["text", "json"], out: TextIO) -> None:
    """Sends all records to ``out``: ours from ``level`` up, those of libraries from warning up."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(level.upper())
    # A reader of the log that went away must not add a traceback to every line.
    logging.raiseExceptions = False


class TextFormatter(logging.Formatter):
    """`2026-03-01T12:00:00.123Z WARNING tidegate.client: message`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = f"{_time(record)} {record.levelname} {record.name}: {_one_line(record.getMessage())}"
        return f"{line} | {_one_line(traceback)}" if (traceback := _traceback(self, record)) else line


class JsonFormatter(logging.Formatter):
    """`{"time": ..., "level": "warning", "logger": ..., "message": ...}`, and `traceback` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if traceback := _traceback(self, record):
            fields["traceback"] = traceback
        return json.dumps(fields)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return formatter.formatException(record.exc_info) if record.exc_info else ""


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
