"""quorum-state: what we write, what Kafka writes, and what neither did."""

import json

import pytest

from backend.raft.effects import ElectionState
from backend.storage.errors import CorruptFile
from backend.storage.memory_disk import MemoryDisk
from backend.storage.quorum_state import FILE_NAME, load_election, save_election

KAFKA_V0 = (
    b'{"clusterId":"","leaderId":2,"leaderEpoch":6,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
)
KAFKA_V1 = b'{"leaderId":-1,"leaderEpoch":9,"votedId":3,"votedDirectoryId":"MrR-epGN8ZN5s5BBwydPsw","data_version":1}'


def holding(content: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.open(FILE_NAME, create=True).write(0, content)
    return disk


def test_it_comes_back() -> None:
    disk = MemoryDisk()
    assert load_election(disk) is None
    for election in (
        ElectionState(leader_epoch=0),
        ElectionState(leader_epoch=7, leader_id=3, voted_id=2),
        ElectionState(leader_epoch=2**31 - 1, voted_id=2**31 - 1),
    ):
        save_election(disk, election, (1, 2, 3))
        disk.crash()
        assert load_election(disk) == election
        assert disk.names() == [FILE_NAME]


def test_kafka_finds_its_own_fields_in_its_own_order() -> None:
    disk = MemoryDisk()
    save_election(disk, ElectionState(leader_epoch=6, leader_id=2), (1, 2, 3))
    content = disk.open(FILE_NAME).read(0, 1000)
    assert content.startswith(KAFKA_V0[:-1] + b',"crc32c":"')


@pytest.mark.parametrize(
    ("content", "election"),
    [
        (KAFKA_V0, ElectionState(leader_epoch=6, leader_id=2)),
        (KAFKA_V1, ElectionState(leader_epoch=9, voted_id=3)),
    ],
)
def test_what_kafka_wrote_is_read(content: bytes, election: ElectionState) -> None:
    assert load_election(holding(content)) == election


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "at byte 0: no JSON"),
        (KAFKA_V0[:-1], f"at byte {len(KAFKA_V0) - 1}: no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "fields are not those of version 0 or 1"),
        (KAFKA_V0.replace(b'"data_version":0', b'"data_version":1'), "fields are not those"),
        (KAFKA_V0.replace(b'"data_version":0', b'"data_version":2'), "fields are not those"),
        (KAFKA_V0.replace(b"votedId", b"votedIe"), "fields are not those"),
        (KAFKA_V0.replace(b'"leaderEpoch":6', b'"leaderEpoch":-1'), "leaderEpoch is no number from 0 to 2147483647"),
        (KAFKA_V0.replace(b'"leaderEpoch":6', b'"leaderEpoch":2147483648'), "leaderEpoch is no number"),
        (KAFKA_V0.replace(b'"leaderId":2', b'"leaderId":true'), "leaderId is no number from -1"),
        (KAFKA_V0[:-1] + b',"crc32c":"00000000"}', "its checksum is another"),
        (KAFKA_V0[:-1] + b',"crc32c":null}', "its checksum is another"),
    ],
)
def test_what_nobody_wrote_is_named(content: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile, match=complaint) as caught:
        load_election(holding(content))
    assert caught.value.path == "memory/quorum-state"


def test_a_digit_that_flips_is_seen() -> None:
    disk = MemoryDisk()
    save_election(disk, ElectionState(leader_epoch=6, leader_id=2), (1, 2, 3))
    content = disk.open(FILE_NAME).read(0, 1000)
    assert json.loads(content)["leaderEpoch"] == 6
    with pytest.raises(CorruptFile, match="its checksum is another"):
        load_election(holding(content.replace(b'"leaderEpoch":6', b'"leaderEpoch":4')))
