"""Kafka's `meta.properties`: whose directory this is. Written once, compared at every start.

    version=1
    cluster.id=4L6g3nShT-eMCtK--X86sw
    node.id=1
    directory.id=MrR-epGN8ZN5s5BBwydPsw

Source: MetaProperties of Kafka; the syntax is that of Java's properties, of which all is read that Kafka writes.
"""

import base64
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from backend.storage.disk import Disk, read_file, replace_file
from backend.storage.errors import CorruptFile, WrongDirectory

FILE_NAME: Final = "meta.properties"
SIZE_MAX: Final = 1 << 20

_VERSION: Final = "1"
_LINE: Final = re.compile(r"\s*((?:[^\s=:\\]|\\.)+)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Whose directory it is; `directory_id` is a UUID in URL-safe base 64 without padding, as Kafka writes them."""

    cluster_id: str
    node_id: int
    directory_id: str


def random_directory_id() -> str:
    """A fresh id; Kafka keeps those that begin with a dash out, for they look like options, and the first hundred."""
    while True:
        number = uuid.uuid4()
        text = base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
        if not text.startswith("-") and number.int >= 100:
            return text


def save_meta_properties(disk: Disk, properties: MetaProperties) -> None:
    """Write the file, durably."""
    values = {
        "version": _VERSION,
        "cluster.id": properties.cluster_id,
        "node.id": str(properties.node_id),
        "directory.id": properties.directory_id,
    }
    replace_file(disk, FILE_NAME, "".join(f"{key}={_escaped(value)}\n" for key, value in values.items()).encode())


def load_meta_properties(disk: Disk) -> MetaProperties | None:
    """What the file says; None when there is none.

    Raises:
        CorruptFile: It is malformed or of another version.
    """
    if FILE_NAME not in disk.names():
        return None
    path = disk.path(FILE_NAME)
    content = read_file(disk, FILE_NAME, SIZE_MAX)
    values = dict(_pairs(content.decode("latin-1")))
    if values.get("version") != _VERSION:
        raise CorruptFile(path, 0, f"version is not {_VERSION}")
    missing = [key for key in ("cluster.id", "node.id", "directory.id") if not values.get(key)]
    if missing:
        raise CorruptFile(path, 0, f"{missing[0]} is missing")
    node_id = values["node.id"]
    if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= 10):
        raise CorruptFile(path, 0, "node.id is no number")
    return MetaProperties(cluster_id=values["cluster.id"], node_id=int(node_id), directory_id=values["directory.id"])


def claim(disk: Disk, *, cluster_id: str, node_id: int, is_new: bool) -> MetaProperties:
    """Make the directory this node's if it is new; else check that it is.

    Args:
        disk: The node's directory.
        cluster_id: The configured one.
        node_id: The configured one.
        is_new: Whether nothing else is in it.

    Raises:
        WrongDirectory: It belongs to another node or cluster, or has a log but no owner.
        CorruptFile: The file is malformed.
    """
    found = load_meta_properties(disk)
    path = disk.path(FILE_NAME)
    if found is None and not is_new:
        raise WrongDirectory(
            f"{path} is missing, though the directory has a log. Put the file back, or point data_dir elsewhere."
        )
    if found is None:
        found = MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=random_directory_id())
        save_meta_properties(disk, found)
    if (found.cluster_id, found.node_id) != (cluster_id, node_id):
        raise WrongDirectory(
            f"{path} is that of node {found.node_id} of cluster {found.cluster_id}, not of node {node_id} of cluster "
            f"{cluster_id}. Correct cluster_id or the node's id, or point data_dir elsewhere."
        )
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in re.split(r"[\r\n]+", text):
        bare = line.lstrip()
        if bare and bare[0] not in "#!" and (match := _LINE.fullmatch(bare)):
            yield _plain(match[1]), _plain(match[2])


def _escaped(value: str) -> str:
    text = "".join(
        character if " " <= character <= "~" and character != "\\" else _unit(character) for character in value
    )
    return "\\" + text if text.startswith(" ") else text


def _unit(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _plain(text: str) -> str:
    units = _ESCAPE.sub(lambda match: _letter(match[1]), text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _letter(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _LETTERS.get(escape, escape)
