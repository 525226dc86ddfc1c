"""Reading the files that a configuration consists of: the YAML text, and secrets.

Every read is bounded; every failure is a `ConfigError` that names the file and never its content. Knows no key and no
YAML.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from config.document import DOCUMENT_BYTES_MAX
from config.faults import ConfigError, Fault

SECRET_BYTES_MAX: Final = 65_536


def read_text(path: str | Path) -> str:
    """The UTF-8 text of a configuration file of at most 1 MiB; a byte order mark at its start is dropped.

    Raises:
        ConfigError: the file cannot be read, is too large, or is not UTF-8.
    """
    return _decoded(path, _read(path, DOCUMENT_BYTES_MAX)).removeprefix("\ufeff")


def read_secret(path: str | Path) -> str:
    """The secret in a file: its UTF-8 text without one newline at its end, at most 64 KiB, not empty.

    Raises:
        ConfigError: the file cannot be read, is empty, too large, or is not UTF-8; the message never holds its content.
    """
    text = _decoded(path, _read(path, SECRET_BYTES_MAX))
    secret = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    if not secret:
        raise _error(path, "is empty; it must hold a secret")
    return secret


def _read(path: str | Path, bytes_max: int) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror or type(error).__name__}") from error
    except ValueError as error:
        raise _error(path, "cannot be read: not a file name") from error
    if len(content) > bytes_max:
        raise _error(path, f"must be at most {bytes_max} bytes")
    return content


def _decoded(path: str | Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = error.start
    # Raised outside the handler: the decoding error holds the content, and a traceback would carry it along.
    raise _error(path, f"must be UTF-8 text; the byte at offset {at} is not")


def _error(path: str | Path, reason: str) -> ConfigError:
    return ConfigError([Fault(name=str(path), reason=reason)])
