"""A directory in memory loses what POSIX may lose, and nothing else."""

import pytest

from backend.storage.errors import DiskFailed
from backend.storage.memory_disk import DIRECTORY, MemoryDisk, PowerLost


def everything(_name: str, unsynced: int) -> int:
    return unsynced


def made(content: bytes) -> MemoryDisk:
    """One durable file."""
    disk = MemoryDisk()
    file = disk.open("a", create=True)
    file.write(0, content)
    file.sync()
    disk.sync()
    return disk


def read(disk: MemoryDisk, name: str = "a") -> bytes:
    return disk.open(name).read(0, 1000)


def test_bytes_last_once_the_file_is_synced() -> None:
    disk = made(b"abc")
    disk.open("a").write(3, b"def")
    disk.open("a").write(0, b"X")
    assert read(disk) == b"Xbcdef"
    disk.crash()
    assert read(disk) == b"abc"


def test_of_unsynced_writes_the_first_bytes_may_survive() -> None:
    left = [b"abcdef", b"aXcdef", b"aXYdef", b"aXY", b"aXY1", b"aXY12", b"aXY123"]
    for kept, content in enumerate(left):
        disk = made(b"abcdef")
        file = disk.open("a")
        file.write(1, b"XY")
        file.truncate(3)
        file.write(3, b"123")
        asked: list[tuple[str, int]] = []
        disk.crash(lambda name, unsynced, kept=kept, asked=asked: asked.append((name, unsynced)) or kept)  # type: ignore[misc]
        assert asked == [("a", 6)]
        assert read(disk) == content


def test_names_last_once_the_directory_is_synced() -> None:
    disk = made(b"abc")
    new = disk.open("b", create=True)
    new.write(0, b"new")
    new.sync()
    disk.rename("b", "a")
    disk.open("c", create=True)
    assert disk.names() == ["a", "c"]
    assert read(disk) == b"new"
    asked: list[tuple[str, int]] = []

    def keep(name: str, unsynced: int) -> int:
        asked.append((name, unsynced))
        return 1

    disk.crash(keep)
    assert asked == [(DIRECTORY, 3)]
    assert disk.names() == ["a", "b"]
    assert (read(disk), read(disk, "b")) == (b"abc", b"new")


def test_a_removed_file_may_come_back() -> None:
    disk = made(b"abc")
    disk.remove("a")
    assert disk.names() == []
    disk.crash()
    assert read(disk) == b"abc"
    disk.remove("a")
    disk.sync()
    disk.crash()
    assert disk.names() == []
    with pytest.raises(DiskFailed, match="memory/a: cannot open: no such file"):
        disk.open("a")


def test_open_files_end_with_the_power() -> None:
    disk = made(b"abc")
    file = disk.open("a")
    disk.crash(everything)
    for act in (lambda: file.read(0, 1), lambda: file.write(0, b"x"), lambda: file.truncate(0), file.sync):
        with pytest.raises(DiskFailed, match="power was lost"):
            act()
    assert read(disk) == b"abc"


def test_the_fuse_blows_after_so_many_changes() -> None:
    disk = made(b"abc")
    file = disk.open("a")
    disk.fuse = 1
    file.write(3, b"d")
    with pytest.raises(PowerLost):
        file.write(4, b"e")
    assert read(disk) == b"abcde"
    disk.crash(everything)
    file = disk.open("a")
    disk.fuse = 0
    with pytest.raises(PowerLost):
        file.sync()
    disk.crash()
    assert read(disk) == b"abcde"


def test_creating_over_a_file_empties_it() -> None:
    disk = made(b"abc")
    assert disk.open("a", create=True).size == 0
    disk.crash()
    assert read(disk) == b"abc"
