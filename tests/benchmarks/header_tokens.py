"""How many probes the ConsistencyState in answers saves: the same readers, with the state seen and unseen.

    python -m tests.benchmarks.header_tokens [--seconds 5]

An embedded cluster with a broker 50 ms late, six clients that read Metadata through all ports, without and with ten
writes a second. "Unseen" leaves out the sidecar's look for the state: these brokers are to it what real Kafka is.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any, Final
from unittest.mock import patch

from backend.app import Backend, embedded
from codec.api_keys import ApiKey
from sidecar.net.links import Link
from tests.support.sidecar_app import serving
from tests.support.state_client import StateClient

LATE_MS: Final = 50
CLIENTS_PER_NODE: Final = 2
READ_PAUSE_S: Final = 0.02
WRITE_PAUSE_S: Final = 0.1
NO_TOPICS: Final[dict[str, Any]] = {"topics": [], "allow_auto_topic_creation": False}


async def measure(seconds: float, *, writes: bool) -> tuple[int, int]:
    """Reads and probes within the time."""
    loop = asyncio.get_running_loop()
    reads = 0
    async with Backend(embedded()) as cluster:
        cluster.broker(3).replay_delay_ms = LATE_MS
        async with serving(cluster.bootstrap_servers) as side:
            places = [address for address in side.nodes.values() for _ in range(CLIENTS_PER_NODE)]
            clients = [await StateClient.open(address) for address in places]
            end_s = loop.time() + seconds
            before = side.probes

            async def read(client: StateClient) -> None:
                nonlocal reads
                while loop.time() < end_s:
                    await client.ask(ApiKey.METADATA, 12, NO_TOPICS)
                    reads += 1
                    await asyncio.sleep(READ_PAUSE_S)

            async def write(client: StateClient) -> None:
                number = 0
                while loop.time() < end_s:
                    topic = {"name": f"written-{number}", "num_partitions": 1, "replication_factor": 1}
                    await client.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 5000})
                    number += 1
                    await asyncio.sleep(WRITE_PAUSE_S)

            readers = clients[:-1] if writes else clients
            await asyncio.gather(*map(read, readers), *([write(clients[-1])] if writes else []))
            probes = side.probes - before
            for client in clients:
                await client.close()
    return reads, probes


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.header_tokens", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line (5)")
    args = parser.parse_args(arguments)
    sys.stdout.write("load                 state   reads  probes a second  probes a read\n")
    for writes in (False, True):
        for seen in (False, True):
            if seen:
                reads, probes = asyncio.run(measure(args.seconds, writes=writes))
            else:
                with patch.object(Link, "_detect_state", lambda self, connection: None):
                    reads, probes = asyncio.run(measure(args.seconds, writes=writes))
            load = "reads, 10 writes/s" if writes else "reads"
            rates = f"{probes / args.seconds:15.1f}  {probes / reads:13.4f}"
            sys.stdout.write(f"{load:19}  {'seen' if seen else 'unseen':6}  {reads:5}  {rates}\n")


if __name__ == "__main__":
    main()
