"""Secrets and texts in files: bounds, one newline, and errors that name the file and never its content."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from config.document import DOCUMENT_BYTES_MAX
from config.faults import ConfigError
from config.files import SECRET_BYTES_MAX, read_secret, read_text


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"hunter2", "hunter2"),
        (b"hunter2\n", "hunter2"),
        (b"hunter2\r\n", "hunter2"),
        (b"hunter2\n\n", "hunter2\n"),
        (b" hunter2 ", " hunter2 "),
        (b"hunter2\r", "hunter2\r"),
        ("gehëim".encode(), "gehëim"),
        (b"x" * SECRET_BYTES_MAX, "x" * SECRET_BYTES_MAX),
    ],
)
def test_one_newline_at_the_end_is_not_part_of_a_secret(tmp_path: Path, content: bytes, secret: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    assert read_secret(path) == secret


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty; it must hold a secret"),
        (b"\n", "is empty; it must hold a secret"),
        (b"hunter2\xff", "must be UTF-8 text; the byte at offset 7 is not"),
        (b"x" * (SECRET_BYTES_MAX + 1), "must be at most 65536 bytes"),
    ],
)
def test_an_unusable_secret_is_refused_without_showing_it(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_secret(path)
    assert str(caught.value) == f"{path}: {reason}"
    assert caught.value.__context__ is None
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("a\0b", "cannot be read: not a file name"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    path = tmp_path / name
    for read in (read_secret, read_text):
        with pytest.raises(ConfigError) as caught:
            read(path)
        assert str(caught.value) == f"{path}: {reason}"


def test_an_endless_file_is_read_to_the_bound_only() -> None:
    with pytest.raises(ConfigError, match=f"/dev/zero: must be at most {DOCUMENT_BYTES_MAX} bytes"):
        read_text("/dev/zero")
