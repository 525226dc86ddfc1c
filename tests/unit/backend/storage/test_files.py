"""Storage in a real directory: layout, owner, lock, failing disks, a killed process."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.raft.batches import SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.errors import CorruptLog, DiskFailed, WrongDirectory
from backend.storage.files import LOG_FOLDER, FileStorage
from tests.unit.backend.storage.batches import batch, content, run, snapshot

BATCH_BYTES = len(batch(0).encoded)
ELECTION = ElectionState(leader_epoch=1, leader_id=1)
WRITER = """
import sys
from pathlib import Path
from tests.unit.backend.storage.test_files import ELECTION, opened
from tests.unit.backend.storage.batches import batch
storage = opened(Path(sys.argv[1]))
storage.save_election(ELECTION)
while True:
    storage.append([batch(storage.log_end_offset)])
    storage.sync()
    print(storage.log_end_offset, flush=True)
"""
ENTERER = """
import sys
from pathlib import Path
from backend.storage.errors import WrongDirectory
from tests.unit.backend.storage.test_files import opened
for _ in sys.stdin:
    try:
        opened(Path(sys.argv[1]))
        print("entered", flush=True)
    except WrongDirectory as error:
        print(error, flush=True)
"""


def tries(other: "subprocess.Popen[str]") -> str:
    """What becomes of it when the other process tries to enter."""
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write("try\n")
    other.stdin.flush()
    return other.stdout.readline()


def opened(directory: Path) -> FileStorage:
    return FileStorage(directory, cluster_id="c", node_id=1, voters=(1,), segment_bytes=20 * BATCH_BYTES)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Its parents do not exist yet."""
    return tmp_path / "data" / "node-1"


def test_a_directory_is_laid_out_as_kafkas(directory: Path) -> None:
    storage = opened(directory)
    storage.save_election(ELECTION)
    storage.append(run(0, 30))
    storage.sync()
    snapshot_id = SnapshotId(end_offset=10, epoch=1)
    storage.write_snapshot(snapshot_id, snapshot(snapshot_id))
    storage.close()
    assert sorted(path.name for path in directory.iterdir()) == [".lock", LOG_FOLDER, "meta.properties"]
    assert sorted(path.name for path in (directory / LOG_FOLDER).iterdir()) == [
        "00000000000000000000.log",
        "00000000000000000010-0000000001.checkpoint",
        "00000000000000000020.log",
        "leader-epoch-checkpoint",
        "quorum-state",
        "recovery-point",
    ]
    assert (directory / LOG_FOLDER / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    for path in (directory / LOG_FOLDER).iterdir():
        assert path.stat().st_mode & 0o077 == 0, "the log holds credentials"


def test_everything_comes_back(directory: Path) -> None:
    storage = opened(directory)
    directory_id = storage.directory_id
    snapshot_id = SnapshotId(end_offset=100, epoch=1)
    storage.save_election(ELECTION)
    storage.append(run(0, 50))
    storage.truncate(45)
    storage.close()
    storage = opened(directory)
    assert content(storage) == run(0, 45)
    storage.save_piece(snapshot_id, 0, b"".join(snapshot(snapshot_id)))
    storage.install_snapshot(snapshot_id)
    storage.append(run(100, 150))
    storage.sync()
    storage.close()
    storage = opened(directory)
    assert content(storage) == run(100, 150)
    assert storage.election() == ELECTION
    assert storage.latest_snapshot == snapshot_id
    assert storage.directory_id == directory_id
    storage.close()


def test_another_owner_is_refused_and_leaves_the_lock(directory: Path) -> None:
    opened(directory).close()
    with pytest.raises(WrongDirectory, match="not of node 2 of cluster c"):
        FileStorage(directory, cluster_id="c", node_id=2)
    (directory / "meta.properties").unlink()
    with pytest.raises(WrongDirectory, match=r"meta\.properties is missing"):
        opened(directory)


def test_a_second_process_is_kept_out(directory: Path) -> None:
    storage = opened(directory)
    command = [sys.executable, "-c", ENTERER, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert (
            tries(other) == f"{directory} is in use by another process. End it, or give this node another data_dir.\n"
        )
        storage.close()
        assert tries(other) == "entered\n"


def test_a_killed_process_loses_nothing_that_it_synced(directory: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(directory)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 50:
                break
        writer.send_signal(signal.SIGKILL)
        told = int((line + writer.stdout.read()).split()[-1])
    storage = opened(directory)
    assert storage.log_end_offset >= told
    assert content(storage) == run(0, storage.log_end_offset)
    storage.close()
    last = max((directory / LOG_FOLDER).glob("*.log"))
    os.truncate(last, last.stat().st_size - 1)
    with pytest.raises(CorruptLog, match="was synced, so this is no torn write"):
        opened(directory)


def test_after_a_failure_nothing_is_promised_any_more(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = opened(directory)
    storage.save_election(ELECTION)
    storage.append(run(0, 2))
    storage.sync()
    storage.append(run(2, 3))

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("backend.storage.disk._sync_data", fails)
    with pytest.raises(DiskFailed, match=r"00000000000000000000\.log: cannot sync: Input/output error"):
        storage.sync()
    monkeypatch.undo()
    for act in (storage.sync, lambda: storage.append(run(3, 4)), lambda: storage.save_election(ELECTION)):
        with pytest.raises(DiskFailed, match="cannot sync: Input/output error"):
            act()
    storage.close()


def test_a_full_disk_leaves_a_tail_that_is_cut(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = opened(directory)
    storage.save_election(ELECTION)
    storage.append(run(0, 2))
    storage.sync()
    real, room = os.pwrite, [100]

    def fills(descriptor: int, data: bytes, position: int) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, data[: room[0]], position)
        room[0] -= written
        return written

    monkeypatch.setattr(os, "pwrite", fills)
    with pytest.raises(DiskFailed, match="cannot write: No space left on device"):
        storage.append(run(2, 5))
    monkeypatch.undo()
    storage.close()
    storage = opened(directory)
    assert content(storage) == run(0, 3)
    storage.close()


def test_a_directory_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskFailed, match="file/node-1: cannot make the directory: Not a directory"):
        opened(tmp_path / "file" / "node-1")
