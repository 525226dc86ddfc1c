"""A directory in memory that can lose power: for simulation, for tests, and for a backend without `data_dir`.

Keeps what POSIX promises and no more. Each file remembers what was written to it since its last sync, the directory
which names changed since its own; `MemoryDisk.crash` takes them back, all or in part, as the caller chooses. There is
no randomness here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from backend.storage.errors import DiskFailed, StorageError

DIRECTORY: Final = ""
"""The name under which `MemoryDisk.crash` asks about the directory itself."""

Keep = Callable[[str, int], int]
"""Of a file's unsynced bytes, or of the directory's unsynced changes, how many survive: (name, how many) to number."""


@final
class PowerLost(StorageError):
    """The fuse of a `MemoryDisk` has blown."""


def nothing_survives(_name: str, _unsynced: int) -> int:
    """What was not synced is gone."""
    return 0


@final
@dataclass(frozen=True, slots=True)
class _Write:
    position: int
    before: bytes
    """What stood there; shorter than `after` where the file grew."""
    after: bytes


@final
@dataclass(frozen=True, slots=True)
class _Cut:
    position: int
    before: bytes
    """What stood behind."""


@final
@dataclass(slots=True)
class _Content:
    data: bytearray = field(default_factory=bytearray)
    unsynced: list[_Write | _Cut] = field(default_factory=list)

    def write(self, position: int, after: bytes) -> None:
        assert position <= len(self.data), "a file has no holes"
        end = position + len(after)
        self.unsynced.append(_Write(position, bytes(self.data[position:end]), bytes(after)))
        self.data[position:end] = after

    def cut(self, position: int) -> None:
        self.unsynced.append(_Cut(position, bytes(self.data[position:])))
        del self.data[position:]

    @property
    def unsynced_bytes(self) -> int:
        """A cut counts as one."""
        return sum(len(change.after) if isinstance(change, _Write) else 1 for change in self.unsynced)

    def lose(self, kept: int) -> None:
        """Take the unsynced changes back, then make them again until `kept` bytes are written, the last in part."""
        changes, self.unsynced = self.unsynced, []
        for change in reversed(changes):
            if isinstance(change, _Write):
                self.data[change.position : change.position + len(change.after)] = change.before
            else:
                self.data += change.before
        for change in changes:
            if isinstance(change, _Cut):
                if not kept:
                    break
                kept -= 1
                del self.data[change.position :]
                continue
            part = change.after[:kept]
            kept -= len(part)
            self.data[change.position : change.position + len(part)] = part
            if len(part) < len(change.after):
                break


_Names = dict[str, _Content]


@final
class MemoryDisk:
    """A directory in memory.

    Args:
        name: Stands for the path of the directory in messages.

    Attributes:
        fuse: Number of further changes and syncs until `PowerLost` is raised; None for never. The change that blows
            it has been made, unsynced; the sync that blows it has not.
    """

    def __init__(self, name: str = "memory") -> None:
        self._name = name
        self._names: _Names = {}
        self._synced: _Names = {}
        self._unsynced: list[Callable[[_Names], object]] = []
        self._life = 0
        self.fuse: int | None = None

    def path(self, name: str) -> str:
        """Of a file, for messages."""
        return f"{self._name}/{name}"

    def names(self) -> list[str]:
        """Of all files, in order."""
        return sorted(self._names)

    def open(self, name: str, *, create: bool = False) -> "MemoryFile":
        """See `Disk.open`."""
        content = self._names.get(name)
        if content is None and not create:
            raise DiskFailed(f"{self.path(name)}: cannot open: no such file")
        if content is None:
            content = _Content()
            self._change(_Create(name, content))
        elif create:
            content.cut(0)
        return MemoryFile(self, name, content)

    def rename(self, old: str, new: str) -> None:
        """See `Disk.rename`."""
        self._change(_Rename(old, new))

    def remove(self, name: str) -> None:
        """See `Disk.remove`."""
        self._change(_Remove(name))

    def sync(self) -> None:
        """See `Disk.sync`."""
        self.burn()
        self._synced = dict(self._names)
        self._unsynced.clear()

    def crash(self, keep: Keep = nothing_survives) -> None:
        """Lose power: open files are closed, and of what was not synced there is what `keep` says.

        Args:
            keep: Asked for each file with unsynced bytes, in order of names, and first for `DIRECTORY`. What it keeps
                are the first of them as they were made; a write may survive in part, a cut counts as one byte.
        """
        self._life += 1
        self.fuse = None
        changes, self._unsynced = self._unsynced, []
        kept = keep(DIRECTORY, len(changes)) if changes else 0
        self._names = dict(self._synced)
        for change in changes[:kept]:
            change(self._names)
        self._synced = dict(self._names)
        for name in sorted(self._names):
            content = self._names[name]
            if content.unsynced:
                content.lose(keep(name, content.unsynced_bytes))

    @property
    def life(self) -> int:
        """How often it has lost power."""
        return self._life

    def burn(self) -> None:
        """One more change or sync."""
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise PowerLost(f"{self._name} has lost power")

    def _change(self, change: Callable[[_Names], object]) -> None:
        change(self._names)
        self._unsynced.append(change)
        self.burn()


@final
@dataclass(frozen=True, slots=True)
class _Create:
    name: str
    content: _Content

    def __call__(self, names: _Names) -> None:
        names[self.name] = self.content


@final
@dataclass(frozen=True, slots=True)
class _Rename:
    old: str
    new: str

    def __call__(self, names: _Names) -> None:
        names[self.new] = names.pop(self.old)


@final
@dataclass(frozen=True, slots=True)
class _Remove:
    name: str

    def __call__(self, names: _Names) -> None:
        del names[self.name]


@final
class MemoryFile:
    """An open file of a `MemoryDisk`; useless once that has lost power."""

    def __init__(self, disk: MemoryDisk, name: str, content: _Content) -> None:
        self._disk = disk
        self._life = disk.life
        self._path = disk.path(name)
        self._content = content

    @property
    def path(self) -> str:
        """For messages."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes in it."""
        return len(self._content.data)

    def read(self, position: int, size: int) -> bytes:
        """See `File.read`."""
        self._check()
        return bytes(memoryview(self._content.data)[position : position + size])

    def write(self, position: int, data: bytes) -> None:
        """See `File.write`."""
        self._check()
        self._content.write(position, data)
        self._disk.burn()

    def truncate(self, size: int) -> None:
        """See `File.truncate`."""
        self._check()
        self._content.cut(size)
        self._disk.burn()

    def sync(self) -> None:
        """See `File.sync`."""
        self._check()
        self._disk.burn()
        self._content.unsynced.clear()

    def close(self) -> None:
        """See `File.close`."""

    def _check(self) -> None:
        if self._life != self._disk.life:
            raise DiskFailed(f"{self._path}: power was lost since it was opened")
