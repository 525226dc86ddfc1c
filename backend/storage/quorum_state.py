"""Kafka's `quorum-state`: the epoch, its leader, and whose candidate has this voter's vote; JSON in one line.

    {"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0,"crc32c":"0a1b2c3d"}

Kafka has no checksum there, and a digit that flips would be believed: an epoch that goes back is a second vote. So a
field `crc32c` is added, the checksum of the text without that field; Kafka's reader passes over fields that it does not
know. A file that Kafka wrote has none and is taken as it is, in version 0 or 1.
Sources: QuorumStateData.json and FileQuorumStateStore of Kafka.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from backend.raft.effects import ElectionState
from backend.storage.disk import Disk, read_file, replace_file
from backend.storage.errors import CorruptFile
from codec.checksum import crc32c

FILE_NAME: Final = "quorum-state"
SIZE_MAX: Final = 1 << 20

_CHECKSUM: Final = "crc32c"
_VERSIONED: Final = "data_version"
_FIELDS: Final = {
    0: frozenset({"clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters", _VERSIONED}),
    1: frozenset({"leaderId", "leaderEpoch", "votedId", "votedDirectoryId", _VERSIONED}),
}
_INT32_MAX: Final = 2**31 - 1


def save_election(disk: Disk, election: ElectionState, voters: Sequence[int]) -> None:
    """Replace the file, durably."""
    fields: dict[str, Any] = {
        "clusterId": "",
        "leaderId": election.leader_id,
        "leaderEpoch": election.leader_epoch,
        "votedId": election.voted_id,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in voters],
        _VERSIONED: 0,
    }
    replace_file(disk, FILE_NAME, _text({**fields, _CHECKSUM: _checksum(fields)}))


def load_election(disk: Disk) -> ElectionState | None:
    """What the file says; None when there is none.

    Raises:
        CorruptFile: It is not what was written.
    """
    if FILE_NAME not in disk.names():
        return None
    content = read_file(disk, FILE_NAME, SIZE_MAX)
    path = disk.path(FILE_NAME)
    try:
        fields = json.loads(content)
    except json.JSONDecodeError as error:
        raise CorruptFile(path, error.pos, "no JSON") from None
    except (UnicodeDecodeError, RecursionError):
        raise CorruptFile(path, 0, "no JSON") from None
    if not isinstance(fields, dict):
        raise CorruptFile(path, 0, "no JSON object")
    if _CHECKSUM in fields:
        del fields[_CHECKSUM]
        if content != _text({**fields, _CHECKSUM: _checksum(fields)}):
            raise CorruptFile(path, 0, "its checksum is another")
    version = fields.get(_VERSIONED)
    if not isinstance(version, int) or fields.keys() != _FIELDS.get(version):
        raise CorruptFile(path, 0, "its fields are not those of version 0 or 1")
    return ElectionState(
        leader_epoch=_number(path, fields, "leaderEpoch", 0),
        leader_id=_number(path, fields, "leaderId", -1),
        voted_id=_number(path, fields, "votedId", -1),
    )


def _number(path: str, fields: dict[str, Any], name: str, least: int) -> int:
    value = fields[name]
    if type(value) is not int or not least <= value <= _INT32_MAX:
        raise CorruptFile(path, 0, f"{name} is no number from {least} to {_INT32_MAX}")
    return value


def _checksum(fields: dict[str, Any]) -> str:
    return f"{crc32c(_text(fields)):08x}"


def _text(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
