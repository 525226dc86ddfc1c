"""A replica's storage in a real directory, laid out as a Kafka node's.

    <directory>/meta.properties             whose it is
    <directory>/.lock                       keeps a second process out
    <directory>/__cluster_metadata-0/       log, snapshots, quorum-state

Calls block: the driver makes them in a thread, one at a time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

from backend.storage.disk import DirectoryLock, FileDisk
from backend.storage.log import SEGMENT_BYTES
from backend.storage.meta_properties import claim
from backend.storage.storage import DiskStorage

LOG_FOLDER: Final = "__cluster_metadata-0"


@final
class FileStorage(DiskStorage):
    """A node's directory, made if it is not there.

    Args:
        directory: `<data_dir>/node-<id>`.
        cluster_id: The cluster's id.
        node_id: The node's id.
        voters: Ids of the voters.
        segment_bytes: What a segment of the log grows to.

    Attributes:
        directory_id: A UUID that the directory got when it was made, as Kafka writes it.

    Raises:
        WrongDirectory: It is another node's, another cluster's, or in use.
        CorruptFile: Something in it is damaged.
        DiskFailed: The operating system refused.
    """

    def __init__(
        self,
        directory: Path,
        *,
        cluster_id: str,
        node_id: int,
        voters: Sequence[int] = (),
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        root = FileDisk(directory)
        self._lock = DirectoryLock(directory)
        try:
            folder = directory / LOG_FOLDER
            is_new = not folder.exists() or not any(folder.iterdir())
            self.directory_id = claim(root, cluster_id=cluster_id, node_id=node_id, is_new=is_new).directory_id
            super().__init__(FileDisk(folder), voters=voters, segment_bytes=segment_bytes)
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Release files and the directory; not a sync."""
        super().close()
        self._lock.release()
