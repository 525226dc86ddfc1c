"""What the sidecar costs a gated read that has nothing to wait for: direct and through it, in turns, in one run.

`python -m tests.benchmarks.gated_read` starts a real Kafka of three controllers and three brokers and a sidecar in
front of it. For each kind of write it writes once; when every broker has that, it reads one way and the other, one read
at a time. Results are kept in docs/measurements.md.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from tests.support.address import Address
from tests.support.kafka import KafkaCluster
from tests.support.kafka.jars import VERSIONS
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin
from tests.support.workload import KINDS, Result, measure_idle, percentile

READS = 2000
NODE = 1
DIRECT, THROUGH = 0, 1


async def measure(broker: Address, port: Address, reads: int) -> Result:
    """Read through a broker and through the sidecar's port for it, in turns; the first write goes through the port."""
    return await measure_idle({DIRECT: broker, THROUGH: port}, reads=reads, kinds=KINDS, writer=port)


def table(result: Result) -> str:
    """A Markdown table, one line for each kind of read and one for all of them, in ms."""
    lines = [
        "| Read after | direct p50 | sidecar p50 | direct p99 | sidecar p99 |",
        "|---|---|---|---|---|",
    ]
    for kind in (*result.kinds, None):
        latencies = [result.total(kind, way).latencies_ms for way in (DIRECT, THROUGH)]
        cells = [f"{percentile(values, share):.2f}" for share in (50, 99) for values in latencies]
        lines.append(f"| {kind or 'all'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gated_read", description=main.__doc__)
    parser.add_argument("--reads", type=int, default=READS, help=f"for each kind and way ({READS})")
    parser.add_argument("--version", choices=VERSIONS, default=VERSIONS[0], help="of Kafka")
    args = parser.parse_args(arguments)
    with KafkaCluster(version=args.version) as cluster, SidecarProcess(cluster.bootstrap) as sidecar:
        admin = SidecarAdmin(sidecar.admin)
        result = asyncio.run(measure(cluster.brokers[NODE], sidecar.nodes[NODE], args.reads))
        held = admin.metric("tidegate_requests_total", decision="hold")
    total = result.total()
    sys.stdout.write(
        f"Kafka {args.version}, {total.reads} reads, {total.stale} stale, {total.errors.total()} errors; "
        f"{held:.0f} reads were held, among them the first after each write.\n\n{table(result)}\n"
    )


if __name__ == "__main__":
    main()
