"""The file of users: what is read, and that a fault names its line and shows nothing of it."""

from pathlib import Path

import pytest

from config import users
from config.faults import ConfigError
from config.users import read_users


def written(folder: Path, text: str) -> Path:
    path = folder / "users"
    path.write_text(text)
    return path


def test_a_user_a_line(tmp_path: Path) -> None:
    path = written(tmp_path, "# who may come in\nann:one two\n\nbob:a:b\n")
    assert read_users(path) == {"ann": "one two", "bob": "a:b"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ann:one\nSECRET\n", "2: must be NAME:PASSWORD"),
        (":SECRET\n", "1: must be NAME:PASSWORD"),
        ("SECRET:\n", "1: must be NAME:PASSWORD"),
        ("SECRET:x\0y\n", "1: must be NAME:PASSWORD"),
        ("ann:one\nbob:two\nann:SECRET\n", "3: names a user for the second time"),
    ],
)
def test_a_fault_names_its_line_and_nothing_of_it(tmp_path: Path, text: str, fault: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_users(path)
    assert str(caught.value) == f"{path}:{fault}"


def test_a_file_without_users_and_one_with_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="names no user"):
        read_users(written(tmp_path, "# nobody yet\n"))
    monkeypatch.setattr(users, "USERS_MAX", 1)
    with pytest.raises(ConfigError, match=":2: is beyond the 1 users that there may be"):
        read_users(written(tmp_path, "a:1\nb:2\n"))
