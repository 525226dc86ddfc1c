"""The state file: what was written is read back, and what cannot be read is never lost."""

from pathlib import Path

import pytest

from sidecar.core.ids import NodeId
from sidecar.net import state

ASSIGNED = {"default": {NodeId(1): 19101, NodeId(12): 19102}, "other": {}}


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state.write(path, ASSIGNED, put_aside=False)
    assert state.read(path) == ASSIGNED
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert state.read(tmp_path / "state.json") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ('{"version": 1, "listeners": {"default": {"1": 19101', "not JSON"),
        ("\x00\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no state file"),
        ('{"version": 2, "listeners": {}}', "no state file"),
        ('{"version": 1, "listeners": []}', "no state file"),
        ('{"version": 1, "listeners": {"default": []}}', "no table of ports"),
        ('{"version": 1, "listeners": {"default": {"one": 19101}}}', "node id"),
        ('{"version": 1, "listeners": {"default": {"-1": 19101}}}', "node id"),
        ('{"version": 1, "listeners": {"default": {"2147483648": 19101}}}', "node id"),
        ('{"version": 1, "listeners": {"default": {"1": 0}}}', "port"),
        ('{"version": 1, "listeners": {"default": {"1": 65536}}}', "port"),
        ('{"version": 1, "listeners": {"default": {"1": true}}}', "port"),
        ('{"version": 1, "listeners": {"default": {"1": "19101"}}}', "port"),
        ('{"version": 1, "listeners": {"default": {"1": 19101, "2": 19101}}}', "two nodes"),
        (" " * (state.STATE_BYTES_MAX + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_understood_says_why(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(state.StateUnreadable, match=reason):
        state.read(path)


def test_a_directory_in_its_place_says_so(tmp_path: Path) -> None:
    with pytest.raises(state.StateUnreadable, match="Is a directory"):
        state.read(tmp_path)


def test_an_unreadable_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("precious")
    state.write(path, ASSIGNED, put_aside=True)
    assert state.read(path) == ASSIGNED
    assert (tmp_path / "state.json.unreadable").read_text() == "precious"


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state.write(path, ASSIGNED, put_aside=False)
    blocked = tmp_path / "nowhere" / "state.json"
    with pytest.raises(OSError, match="No such file"):
        state.write(blocked, ASSIGNED, put_aside=False)
    assert state.read(path) == ASSIGNED
