"""What goes wrong with a node's files: each error says which file, and what the operator can do.

None of them can be handled by going on: a node whose disk fails or whose files are damaged ends.
"""

from typing import Final, final

START_EMPTY: Final = (
    "Nothing was changed. Move the node's directory away and start it again: it fetches everything "
    "from the other voters, which must be a majority without it."
)
"""What to do about damage that only other nodes can repair."""


class StorageError(Exception):
    """A node's directory cannot be used."""


@final
class DiskFailed(StorageError):
    """The operating system refused, or a call before it failed; what is on disk is known only after opening it anew.

    A failed sync is never tried again: the kernel may have dropped what it could not write.
    """


class CorruptFile(StorageError):
    """A file holds what was never written to it.

    Attributes:
        path: Of the file.
        position: Byte offset in it, near which the damage was found.
        reason: One clause that says what is wrong.
    """

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, position, reason)
        self.path = path
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is damaged at byte {self.position}: {self.reason}. {START_EMPTY}"


@final
class CorruptLog(CorruptFile):
    """The log, or what is kept about it, is damaged."""


@final
class CorruptSnapshot(CorruptFile):
    """A snapshot is damaged."""


@final
class WrongDirectory(StorageError):
    """The directory belongs to another node or cluster, or to another running process."""
