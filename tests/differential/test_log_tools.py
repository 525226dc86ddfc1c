"""Kafka's own tools and classes open our directories, go on with them, and we open what they leave.

The judges are DumpLogSegments, StorageTool, and the log and quorum state of Kafka's raft module, all in one JVM
(`java/LogDirectory.java`). Index files are not ours to write: Kafka's log makes them here.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.raft.batches import EpochStart, LogBatch, SnapshotId
from backend.raft.effects import ElectionState
from backend.storage.files import LOG_FOLDER, FileStorage
from codec.batches import encode_batch, encode_control_batch, read_batch
from codec.control_records import ControlRecord, ControlType
from codec.metadata_records import METADATA_TABLES, encode_metadata_record
from codec.records import LogRecord
from tests.support.kafka.java import Java
from tests.unit.backend.storage.batches import content, snapshot

pytestmark = pytest.mark.kafka

KAFKA = "4.4.0"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
TOPIC = 2
SNAPSHOT = SnapshotId(end_offset=13, epoch=5)
KAFKA_RECORDS = 9
KNOWN = "Non-consecutive offsets in "
"""The heading of a file's complaints."""
ONLY_FOR_TESTS = "segment.bytes is only supported for testing"
BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) .* partitionLeaderEpoch: (\d+) .* isControl: (\w+) .*isvalid: (\w+)"
)


def topic_record(number: int) -> bytes:
    return encode_metadata_record(
        METADATA_TABLES[TOPIC], 0, {"name": f"topic-{number}", "topic_id": number.to_bytes(16, "big")}
    )


def leader_change(base_offset: int, epoch: int) -> LogBatch:
    record = ControlRecord(
        type=ControlType.LEADER_CHANGE,
        version=0,
        value={"version": 0, "leader_id": 1, "voters": [{"voter_id": 1}], "granting_voters": [{"voter_id": 1}]},
    )
    encoded = encode_control_batch([record], base_offset=base_offset, partition_leader_epoch=epoch, timestamp_ms=1000)
    return LogBatch(base_offset=base_offset, last_offset=base_offset, leader_epoch=epoch, encoded=encoded)


def topics(base_offset: int, epoch: int, count: int) -> LogBatch:
    encoded = encode_batch(
        [LogRecord(value=topic_record(base_offset + i)) for i in range(count)],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        timestamp_ms=1000,
    )
    return LogBatch(base_offset=base_offset, last_offset=base_offset + count - 1, leader_epoch=epoch, encoded=encoded)


LOG = [
    leader_change(0, 1),
    *(topics(offset, 1, 2) for offset in range(1, 11, 2)),
    leader_change(11, 5),
    *(topics(offset, 5, 1) for offset in range(12, 20)),
]


def opened(directory: Path) -> FileStorage:
    return FileStorage(directory, cluster_id=CLUSTER_ID, node_id=1, voters=(1, 2, 3), segment_bytes=400)


def test_kafka_reads_our_directory_and_we_read_what_it_adds(kafka_jars: Callable[[str], Path], tmp_path: Path) -> None:
    kafka_jars(KAFKA)
    directory = tmp_path / "node-1"
    ours = opened(directory)
    ours.save_election(ElectionState(leader_epoch=5, leader_id=1, voted_id=1))
    ours.append(LOG)
    ours.sync()
    ours.write_snapshot(SNAPSHOT, snapshot(SNAPSHOT, [topic_record(number) for number in range(3)]))
    ours.close()
    segments = sorted(path.name for path in (directory / LOG_FOLDER).glob("*.log"))
    assert len(segments) > 3

    told, complaints = judge(directory, tmp_path, epoch=6)
    first, _, then = told.partition("again\n")

    assert f"cluster.id={CLUSTER_ID}" in first
    assert "info 0" in first
    assert "election 5 1 1" in first
    assert f"log 0 20 5 OffsetAndEpoch[offset={SNAPSHOT.end_offset}, epoch={SNAPSHOT.epoch}]" in first
    assert "epoch 1 OffsetAndEpoch[offset=11, epoch=1]" in first
    dumped = dict(pages(first))
    assert sorted(name for name in dumped if name.endswith(".log")) == segments
    seen = [line for name in segments for line in dumped[name]]
    assert batches(seen) == [(b.base_offset, b.last_offset, b.leader_epoch, b in (LOG[0], LOG[6]), True) for b in LOG]
    assert names(seen) == [
        f"topic-{offset}"
        for b in LOG
        if b not in (LOG[0], LOG[6])
        for offset in range(b.base_offset, b.last_offset + 1)
    ]
    checkpoint = dumped["00000000000000000013-0000000005.checkpoint"]
    assert batches(checkpoint) == [(0, 0, 5, True, True), (1, 3, 5, False, True), (4, 4, 5, True, True)]
    assert names(checkpoint) == ["topic-0", "topic-1", "topic-2"]
    assert any("SnapshotHeader" in line for line in checkpoint)
    assert any("SnapshotFooter" in line for line in checkpoint)
    # DumpLogSegments says so of every segment that does not begin at offset 0, of Kafka's own as well.
    theirs = sorted(name for name, _ in pages(then) if name.endswith(".log"))
    assert theirs
    assert complaints == {f"-1 is followed by {int(name[:20])}" for name in segments[1:] + theirs}

    again = opened(directory)
    assert again.election() == ElectionState(leader_epoch=6, leader_id=2)
    assert again.log_end_offset == 20 + KAFKA_RECORDS
    assert again.epochs[-1] == EpochStart(epoch=6, start_offset=20)
    added = content(again)[len(LOG) :]
    assert content(again)[: len(LOG)] == LOG
    values = [record.value for b in added for record in read_batch(b.encoded)[0].records]
    assert values == [f"kafka{number}".encode() for number in range(KAFKA_RECORDS)]
    again.close()


def judge(directory: Path, folder: Path, *, epoch: int) -> tuple[str, set[str]]:
    """What Kafka said, and what it complained about."""
    java = Java(KAFKA, folder)
    properties = folder / "node.properties"
    properties.write_text(
        "node.id=1\nprocess.roles=controller\ncontroller.quorum.voters=1@127.0.0.1:1\n"
        f"controller.listener.names=CONTROLLER\nlisteners=CONTROLLER://127.0.0.1:1\nlog.dirs={directory}\n"
    )
    main_class, classes = java.compile(Path(__file__).parent / "java" / "LogDirectory.java")
    done = java.run(
        main_class, str(directory / LOG_FOLDER), str(epoch), str(KAFKA_RECORDS), str(properties), classes=classes
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = {line.strip() for line in done.stderr.splitlines()}
    return done.stdout, {line for line in told if line and not line.startswith(KNOWN) and ONLY_FOR_TESTS not in line}


def pages(text: str) -> list[tuple[str, list[str]]]:
    """The dumps of files, by name."""
    parts = re.split(r"^Dumping .*/(\S+)$", text, flags=re.MULTILINE)
    return [(name, page.splitlines()) for name, page in zip(parts[1::2], parts[2::2], strict=True)]


def batches(lines: list[str]) -> list[tuple[int, int, int, bool, bool]]:
    """Base offset, last offset, epoch, whether it is a control batch, whether it is sound."""
    found = [match.groups() for line in lines if (match := BATCH.match(line))]
    return [
        (int(base), int(last), int(epoch), control == "true", valid == "true")
        for base, last, epoch, control, valid in found
    ]


def names(lines: list[str]) -> list[str]:
    """The names of topics in the records."""
    payloads = [json.loads(line.partition("payload: ")[2]) for line in lines if "payload: " in line]
    return [payload["data"]["name"] for payload in payloads]
