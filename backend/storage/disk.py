"""One directory of files, and what "durable" means in it.

`Disk` is the line between the formats and the world: `FileDisk` is a real directory, `backend.storage.memory` one that
can lose power. Both keep the same promise, the weakest that POSIX gives: bytes last once their file is synced, names
(created, renamed, removed) once the directory is.

Knows no format. Whatever the operating system refuses becomes `DiskFailed` with the path.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, final

from backend.storage.errors import DiskFailed, WrongDirectory

TEMPORARY: Final = ".tmp"
"""Ends the name of a file that is being replaced."""

_OWNER_ONLY: Final = 0o600
"""The log holds credentials."""

_sync_data = getattr(os, "fdatasync", os.fsync)


class File(Protocol):
    """An open file."""

    @property
    def path(self) -> str:
        """For messages."""
        ...

    @property
    def size(self) -> int:
        """Bytes in it."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on; fewer only at the end of the file."""
        ...

    def write(self, position: int, data: bytes) -> None:
        """Write all of `data`, over or behind what is there; durable once synced."""
        ...

    def truncate(self, size: int) -> None:
        """Drop what stands behind `size` bytes; durable once synced."""
        ...

    def sync(self) -> None:
        """Return once all bytes and the size are durable."""
        ...

    def close(self) -> None:
        """Let go of the file, without syncing it."""
        ...


class Disk(Protocol):
    """A directory without subdirectories."""

    def path(self, name: str) -> str:
        """Of a file, for messages."""
        ...

    def names(self) -> list[str]:
        """Of all files, in order."""
        ...

    def open(self, name: str, *, create: bool = False) -> File:
        """Open a file that is there, or with `create` a new or empty one; its name is durable once synced."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file a new name, in place of whichever had it; durable once synced."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; durable once synced."""
        ...

    def sync(self) -> None:
        """Return once all names are durable."""
        ...


def read_file(disk: Disk, name: str, size_max: int) -> bytes:
    """The content of a small file, up to `size_max` bytes."""
    file = disk.open(name)
    try:
        return file.read(0, size_max)
    finally:
        file.close()


def replace_file(disk: Disk, name: str, content: bytes) -> None:
    """Make `content` the file's content; after a crash the file has either its old content or all of the new."""
    temporary = name + TEMPORARY
    file = disk.open(temporary, create=True)
    try:
        file.write(0, content)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, name)
    disk.sync()


@final
class FileDisk:
    """A real directory; it and its parents are made if need be.

    Once a call has failed, every further one does, on all its files: what the kernel has dropped by then nobody knows.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._health = _Health()
        made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        with self._health.of(str(folder), "make the directory"):
            folder.mkdir(parents=True, exist_ok=True)
            for path in made:
                _sync_folder(path.parent)

    def path(self, name: str) -> str:
        """Of a file, for messages."""
        return str(self._folder / name)

    def names(self) -> list[str]:
        """Of all files, in order."""
        with self._health.of(str(self._folder), "list"), os.scandir(self._folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())

    def open(self, name: str, *, create: bool = False) -> "RealFile":
        """See `Disk.open`."""
        path = self.path(name)
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_TRUNC if create else 0)
        with self._health.of(path, "open"):
            return RealFile(path, os.open(path, flags, _OWNER_ONLY), self._health)

    def rename(self, old: str, new: str) -> None:
        """See `Disk.rename`."""
        with self._health.of(self.path(old), f"rename to {new}"):
            os.replace(self.path(old), self.path(new))

    def remove(self, name: str) -> None:
        """See `Disk.remove`."""
        with self._health.of(self.path(name), "remove"):
            os.remove(self.path(name))

    def sync(self) -> None:
        """See `Disk.sync`."""
        with self._health.of(str(self._folder), "sync"):
            _sync_folder(self._folder)


@final
class RealFile:
    """An open file of a `FileDisk`, which makes them."""

    def __init__(self, path: str, descriptor: int, health: "_Health") -> None:
        self._path = path
        self._descriptor = descriptor
        self._health = health
        self._size = os.fstat(descriptor).st_size

    @property
    def path(self) -> str:
        """For messages."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes in it; nobody else writes to it."""
        return self._size

    def read(self, position: int, size: int) -> bytes:
        """See `File.read`."""
        with self._health.of(self._path, "read"):
            data = os.pread(self._descriptor, size, position)
            while len(data) < size and (more := os.pread(self._descriptor, size - len(data), position + len(data))):
                data += more
            return data

    def write(self, position: int, data: bytes) -> None:
        """See `File.write`."""
        with self._health.of(self._path, "write"):
            written = os.pwrite(self._descriptor, data, position)
            while written < len(data):
                written += os.pwrite(self._descriptor, memoryview(data)[written:], position + written)
        self._size = max(self._size, position + len(data))

    def truncate(self, size: int) -> None:
        """See `File.truncate`."""
        with self._health.of(self._path, "truncate"):
            os.ftruncate(self._descriptor, size)
        self._size = size

    def sync(self) -> None:
        """See `File.sync`."""
        with self._health.of(self._path, "sync"):
            _sync_data(self._descriptor)

    def close(self) -> None:
        """See `File.close`."""
        os.close(self._descriptor)


@final
class DirectoryLock:
    """Keeps other processes out of a directory, a Kafka among them: both lock the file `.lock` in it.

    Raises:
        WrongDirectory: Another process has it.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / ".lock"
        with _Health().of(str(path), "open"):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise WrongDirectory(
                f"{folder} is in use by another process. End it, or give this node another data_dir."
            ) from None

    def release(self) -> None:
        """Let others in."""
        os.close(self._descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@final
class _Health:
    """Whether all calls went well so far."""

    def __init__(self) -> None:
        self._failure: str | None = None

    @contextlib.contextmanager
    def of(self, path: str, action: str) -> Iterator[None]:
        """Turn what the operating system says against a call into `DiskFailed`, for this call and all later ones."""
        if self._failure is not None:
            raise DiskFailed(self._failure)
        try:
            yield
        except OSError as error:
            self._failure = f"{path}: cannot {action}: {error.strerror}"
            raise DiskFailed(self._failure) from error
