"""The backend's quorum: commits with fsync, beside a real Kafka controller; what records and images cost.

    python -m tests.benchmarks.quorum [--quick]

Commits: every node is a process, writers alter the configuration of a topic of their own (one record), or create
topics (two records), through one broker; each has a connection and one request under way. A commit is on the disk of a
majority when it is answered, here as there. Images: topics of 1000 partitions with three replicas each, in a process
of their own, so that the memory is theirs.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from backend.metadata.image import Image
from backend.metadata.records import (
    Batch,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    TopicRecord,
)
from backend.net.log_batches import decoded, encoded, snapshot_image, snapshot_pieces
from backend.raft.batches import LogBatch, SnapshotId
from codec.api_keys import ApiKey
from tests.support.address import Address
from tests.support.backend_processes import BackendProcesses
from tests.support.kafka import KafkaCluster
from tests.support.kafka.jars import VERSIONS, missing
from tests.support.state_client import StateClient

WRITERS: Final = (1, 10, 100)
SECONDS: Final = 3.0
PARTITIONS: Final = 1000
SNAPSHOT: Final = SnapshotId(end_offset=1, epoch=1)
REPLICAS: Final = (1, 2, 3)
SIZES: Final = (100_000, 1_000_000)
RECORDS: Final = 20_000
PIECE_BYTES: Final = 1024 * 1024
LOOK_UPS: Final = 10_000


# Commits


@contextlib.contextmanager
def backend(controllers: int) -> Iterator[Address]:
    """Controllers of ours and one broker; where the broker is."""
    with (
        tempfile.TemporaryDirectory() as folder,
        BackendProcesses(Path(folder), controllers=controllers, brokers=1) as nodes,
    ):
        nodes.start(*nodes.controllers, *nodes.brokers)
        nodes.wait_ready(*nodes.controllers, *nodes.brokers)
        yield nodes.brokers[1]


@contextlib.contextmanager
def kafka() -> Iterator[Address]:
    """A controller and a broker of Kafka."""
    cluster = KafkaCluster(controllers=1, brokers=1)
    try:
        yield cluster.brokers[1]
    finally:
        cluster.close()


async def alter(client: StateClient, writer: int, number: int) -> None:
    """One configuration record."""
    change = {"name": "retention.ms", "config_operation": 0, "value": str(1000 + number)}
    resource_ = {"resource_type": 2, "resource_name": f"topic-{writer}", "configs": [change]}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource_]})
    assert answer.errors() == {0}, answer.body


async def create(client: StateClient, writer: int, number: int) -> None:
    """A topic with one partition."""
    topic = {"name": f"new-{writer}-{number}", "num_partitions": 1, "replication_factor": 1}
    answer = await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})
    assert answer.errors() == {0}, answer.body


Write = Callable[[StateClient, int, int], Awaitable[None]]


async def load(at: Address, writers: int, seconds: float, write: Write, numbers: Iterator[int]) -> list[float]:
    """The time of each write in s, sorted."""
    clients = [await StateClient.open(at) for _ in range(writers)]
    end_s = time.perf_counter() + seconds
    times: list[float] = []

    async def one(client: StateClient, writer: int) -> None:
        while (began_s := time.perf_counter()) < end_s:
            await write(client, writer, next(numbers))
            times.append(time.perf_counter() - began_s)

    await asyncio.gather(*(one(client, writer) for writer, client in enumerate(clients)))
    for client in clients:
        await client.close()
    return sorted(times)


async def prepare(at: Address) -> None:
    """The topics whose configuration is altered."""
    async with await StateClient.open(at) as client:
        for writer in range(max(WRITERS)):
            topic = {"name": f"topic-{writer}", "num_partitions": 1, "replication_factor": 1}
            await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})


async def rows(name: str, at: Address, seconds: float) -> list[str]:
    """A line for each write and number of writers."""
    await prepare(at)
    numbers = itertools.count()
    found = []
    for title, write in (("alter a configuration", alter), ("create a topic", create)):
        for writers in WRITERS:
            times = await load(at, writers, seconds, write, numbers)
            p50, p99 = statistics.median(times) * 1000, times[int(0.99 * len(times))] * 1000
            found.append(f"| {title} | {name} | {writers} | {len(times) / seconds:.0f} | {p50:.1f} | {p99:.1f} |")
    return found


def commits(seconds: float) -> list[str]:
    """The table of commits."""
    ways: list[tuple[str, contextlib.AbstractContextManager[Address]]] = [
        ("backend, 1 controller", backend(1)),
        ("backend, 3 controllers", backend(3)),
    ]
    if missing(VERSIONS[0]) is None:
        ways.append((f"Kafka {VERSIONS[0]}, 1 controller", kafka()))
    lines = [
        "| write | controllers | writers | commits a second | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|",
    ]
    found: list[str] = []
    for name, way in ways:
        with way as at:
            found += asyncio.run(rows(name, at, seconds))
    return lines + sorted(found, key=lambda line: "create" in line)


def fsync_ms() -> float:
    """What an fsync of one block costs here, the median of 200."""
    times = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(200):
            file.write(bytes(500))
            began_s = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began_s)
    return statistics.median(times) * 1000


# Records and images


def topics(partitions: int) -> Iterator[Record]:
    """Records of topics with `PARTITIONS` partitions each."""
    for number in range(partitions // PARTITIONS):
        topic_id = number.to_bytes(16)
        yield TopicRecord(name=f"topic-{number}", topic_id=topic_id)
        for partition_id in range(PARTITIONS):
            yield PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=REPLICAS,
                isr=REPLICAS,
                leader=1 + partition_id % 3,
                leader_epoch=0,
                partition_epoch=0,
                directories=(bytes(16),) * 3,
            )


def applying() -> list[str]:
    """What it costs to decode and to apply a record, in batches of one and of a hundred."""
    image = Image.empty("c").apply(Batch(base_offset=0, leader_epoch=1, records=tuple(topics(100_000))))
    kinds: dict[str, Callable[[int], Record]] = {
        "NoOpRecord": lambda _: NoOpRecord(),
        "ConfigRecord": lambda n: ConfigRecord(
            resource_type=2, resource_name=f"topic-{n % 100}", name="retention.ms", value=str(n)
        ),
        "PartitionChangeRecord": lambda n: PartitionChangeRecord(
            partition_id=n % PARTITIONS, topic_id=(n % 100).to_bytes(16), leader=1 + n % 3
        ),
        "TopicRecord, PartitionRecord": lambda n: (
            TopicRecord(name=f"new-{n}", topic_id=(1 << 64 | n).to_bytes(16))
            if n % 2 == 0
            else PartitionRecord(
                partition_id=0,
                topic_id=(1 << 64 | (n - 1)).to_bytes(16),
                replicas=REPLICAS,
                isr=REPLICAS,
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
            )
        ),
    }
    lines = ["| record, on an image of 100 000 partitions | a batch | decode us | apply us |", "|---|---|---|---|"]
    for name, make in kinds.items():
        for size in (2, 100):
            batches = [
                LogBatch(
                    base_offset=0, last_offset=size - 1, leader_epoch=1, encoded=encoded([make(n) for n in some], 0)
                )
                for some in (range(at, at + size) for at in range(0, RECORDS if size == 100 else RECORDS // 10, size))
            ]
            began_s = time.perf_counter()
            read = [decoded(batch) for batch in batches]
            decoded_s = time.perf_counter() - began_s
            grown = image
            for batch in read:
                at = grown.highest_offset + 1
                grown = grown.apply(Batch(base_offset=at, leader_epoch=1, records=batch.records))
            applied_s = time.perf_counter() - began_s - decoded_s
            count = len(batches) * size
            lines.append(f"| {name} | {size} | {decoded_s / count * 1e6:.1f} | {applied_s / count * 1e6:.1f} |")
    return lines


def image_row(partitions: int) -> str:
    """One line: a snapshot written in this process, and loaded in another, so that the memory is the image's."""
    image = Image.loaded("c", topics(partitions), highest_offset=0, highest_epoch=1)
    with tempfile.NamedTemporaryFile() as file:
        began_s = time.perf_counter()
        size = sum(file.write(piece) for piece in snapshot_pieces(image, SNAPSHOT, 0))
        written_s = time.perf_counter() - began_s
        file.flush()
        loaded = _run("--load", file.name)
    return f"| {partitions:,} | {size / 1e6:.0f} | {written_s:.1f} | {loaded} |"


def load_cells(path: Path) -> str:
    """The cells of a snapshot that is loaded: time, memory, and how long a topic is looked up."""
    before_mb = _rss_mb()
    began_s = time.perf_counter()
    with path.open("rb") as file:
        image = snapshot_image("c", SNAPSHOT, iter(lambda: file.read(PIECE_BYTES), b""))
    loaded_s = time.perf_counter() - began_s
    memory_mb = _rss_mb() - before_mb
    by_name = image.topics.by_name
    began_s = time.perf_counter()
    for number in range(LOOK_UPS):
        assert by_name[f"topic-{number % len(by_name)}"].partitions[number % PARTITIONS].leader
    return f"{loaded_s:.1f} | {memory_mb:.0f} | {(time.perf_counter() - began_s) / LOOK_UPS * 1e6:.1f}"


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.benchmarks.quorum", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _rss_mb() -> float:
    """The memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def images(sizes: Sequence[int]) -> list[str]:
    """The table of images, each in a process of its own."""
    lines = [
        "| partitions | snapshot MB | write s | load s | memory MB | look-up us |",
        "|---|---|---|---|---|---|",
    ]
    return lines + [_run("--image", str(size)) for size in sizes]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quorum", description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="to see that all works; the figures say little")
    parser.add_argument("--image", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.load:
        sys.stdout.write(load_cells(args.load) + "\n")
        return
    if args.image:
        sys.stdout.write(image_row(args.image) + "\n")
        return
    parts = [
        [f"fsync of a small write: {fsync_ms():.2f} ms"],
        commits(0.5 if args.quick else SECONDS),
        applying(),
        images(SIZES[:1] if args.quick else SIZES),
    ]
    for part in parts:
        sys.stdout.write("\n".join(part) + "\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
