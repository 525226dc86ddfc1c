"""What the sidecar costs, beside no proxy, HAProxy, and a bare relay on uvloop, all in one run on loopback.

    python -m tests.benchmarks.proxy_cost [--quick] [stub|kafka|memory ...]

A client in C asks a stub broker in C, and then real Kafka. All ways to the broker take turns in short rounds, and the
best round of each counts, so that a busy machine disturbs all alike; the ratios are what counts. Every part is a
process of its own.
"""

import argparse
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from tests.benchmarks import exchanges, kafka_topics, peers
from tests.benchmarks.processes import resident_mb
from tests.benchmarks.report import Target, added, table, verdict
from tests.benchmarks.rounds import Load, in_turns
from tests.benchmarks.ways import DIRECT, HAPROXY, HAPROXY_LARGE, SIDECAR, Way, missing, ways
from tests.support.kafka import jars
from tests.support.kafka.ports import HOST, free_ports

SMALL: Final = ((1, 1), (8, 1), (64, 1), (1, 16), (8, 16), (64, 16))
"""Connections, and requests in flight on each."""
LARGE: Final = (1, 4)
"""Connections, with one request in flight on each."""
GATED: Final = (1, 8)
"""The same."""

STUB_RATES: Final = dict(zip(SMALL, (0.8, 0.9, 0.6, 0.25, 0.25, 0.25), strict=True))
KAFKA_RATES: Final = dict.fromkeys(SMALL, 0.9)
LARGE_RATE: Final = 0.9
ADDED_P50_MAX: Final = 1.3
CPU_MAX: Final = 1.5
CPU_LARGE_MAX: Final = 1.2
GATED_MAX: Final = 1.1

IDLE_CONNECTIONS: Final = 1000
IDLE_MB_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long is measured: so many rounds of each load, and in each so many seconds on each way."""

    rounds: int
    seconds: float


FULL: Final = Pace(rounds=6, seconds=0.25)
QUICK: Final = Pace(rounds=2, seconds=0.15)


def stub(pace: Pace) -> None:
    """A broker that costs next to nothing: what is left is the proxy."""
    (port,) = free_ports(1)
    with peers.stub(port, exchanges.stub_answers(port)), ways(port) as found:
        _small(found, pace, STUB_RATES)
        _large(found, pace, *exchanges.large_requests(), {})
        _gated(found, pace)


def kafka(pace: Pace) -> None:
    """A real broker."""
    reason = jars.missing(jars.VERSIONS[0])
    if reason is not None:
        _say(f"left out: {reason}")
        return
    with kafka_topics.prepared_kafka(jars.VERSIONS[0]) as broker, ways(broker.port) as found:
        _small(found, pace, KAFKA_RATES)
        _large(found, pace, broker.fetch, broker.produce, dict.fromkeys(LARGE, LARGE_RATE))
        _gated(found, pace)


def memory(pace: Pace) -> None:
    """What each proxy holds in memory with many idle connections that have been used once."""
    (port,) = free_ports(1)
    with peers.stub(port, exchanges.stub_answers(port)), ways(port) as found:
        _say(f"| resident MB | before | {IDLE_CONNECTIONS} idle connections | target |\n|---|---|---|---|", end="\n")
        for name, way in found.items():
            if way.pid is None:
                continue
            before_mb = resident_mb(way.pid)
            with ExitStack() as connections:
                for _ in range(IDLE_CONNECTIONS):
                    connection = connections.enter_context(socket.create_connection((HOST, way.port), timeout=10))
                    connection.sendall(exchanges.heartbeat())
                    connection.recv(64)
                idle_mb = resident_mb(way.pid)
            target = verdict(idle_mb, IDLE_MB_MAX, at_most=True) if name == SIDECAR else ""
            _say(f"| {name} | {before_mb:.1f} | {idle_mb:.1f} | {target} |", end="\n")
        _say("", end="\n")


def _small(found: Mapping[str, Way], pace: Pace, rates: Mapping[tuple[int, int], float]) -> None:
    """Heartbeats."""
    names = {each: f"{_connections(each[0])}, {each[1]} in flight" for each in SMALL}
    loads = [
        Load(name=name, request=exchanges.heartbeat(), connections=connections, in_flight=in_flight)
        for (connections, in_flight), name in names.items()
    ]
    best = in_turns(found, loads, rounds=pace.rounds, seconds=pace.seconds)
    wanted = {names[each]: ratio for each, ratio in rates.items()}
    _say(table("requests a second", best, lambda b: b.rate, Target(against=HAPROXY, ratio=wanted), ",.0f"))
    alone = {names[1, 1]: ADDED_P50_MAX}
    more = added(best)
    _say(table("added p50, us", more, lambda b: b.p50_us, Target(against=HAPROXY, ratio=alone, at_most=True), ".1f"))
    _say(table("added p99, us", more, lambda b: b.p99_us, Target(against=HAPROXY, ratio={}, at_most=True), ".1f"))
    one_at_a_time = [name for (_, in_flight), name in names.items() if in_flight == 1]
    cost = Target(against=HAPROXY, ratio=dict.fromkeys(one_at_a_time, CPU_MAX), at_most=True)
    _say(table("CPU s for 100 000 requests", best, lambda b: b.cpu_us / 10, cost, ".2f"))


def _large(found: Mapping[str, Way], pace: Pace, fetch: bytes, produce: bytes, rates: Mapping[int, float]) -> None:
    """A megabyte in each answer, or in each request."""
    wanted: dict[str, float] = {}
    loads = []
    for kind, request, answer_bytes_min in (("fetch", fetch, exchanges.MEGABYTE), ("produce", produce, 0)):
        for connections in LARGE:
            name = f"1 MB {kind}, {_connections(connections)}"
            loads.append(
                Load(
                    name=name,
                    request=request,
                    connections=connections,
                    in_flight=1,
                    answer_bytes_min=answer_bytes_min,
                )
            )
            if connections in rates:
                wanted[name] = rates[connections]
    best = in_turns(found, loads, rounds=pace.rounds, seconds=pace.seconds)
    _say(table("MB/s", best, lambda b: b.rate, Target(against=HAPROXY_LARGE, ratio=wanted), ",.0f"))
    names = [load.name for load in loads]
    cost = Target(against=HAPROXY_LARGE, ratio=dict.fromkeys(names, CPU_LARGE_MAX), at_most=True)
    _say(table("CPU s for 1 GB", best, lambda b: b.cpu_us / 1000, cost, ".2f"))


def _gated(found: Mapping[str, Way], pace: Pace) -> None:
    """A read that is gated and need not wait, and a request of the same bytes that is only forwarded.

    The ratio is that of how many times the direct way each of them takes: their cost to the broker cancels out.
    """
    both = {name: found[name] for name in (DIRECT, SIDECAR)}
    apis = {"forwarded": exchanges.FORWARDED, "gated": exchanges.GATED}
    loads = {
        (connections, kind): Load(
            name=f"{kind}, {_connections(connections)}",
            request=exchanges.small(api),
            connections=connections,
            in_flight=1,
        )
        for connections in GATED
        for kind, api in apis.items()
    }
    best = in_turns(both, list(loads.values()), rounds=pace.rounds, seconds=pace.seconds)
    _say(
        "| p50, us | direct | sidecar | sidecar / direct | gated / forwarded | target |\n|---|---|---|---|---|---|",
        end="\n",
    )
    for connections in GATED:
        times = 1.0
        for kind in apis:
            of_load = best[loads[connections, kind].name]
            direct_us, through_us = of_load[DIRECT].p50_us, of_load[SIDECAR].p50_us
            before, times = times, through_us / direct_us
            cells = f"{direct_us:.1f} | {through_us:.1f} | {times:.2f}"
            ratio = times / before
            target = f"{ratio:.2f} | {verdict(ratio, GATED_MAX, at_most=True)}" if kind == "gated" else " | "
            _say(f"| {loads[connections, kind].name} | {cells} | {target} |", end="\n")
    _say("", end="\n")


def _connections(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


SECTIONS: Final[dict[str, Callable[[Pace], None]]] = {"stub": stub, "kafka": kafka, "memory": memory}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.proxy_cost", description=main.__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (all)")
    parser.add_argument("--quick", action="store_true", help="few short rounds, to see that all works")
    args = parser.parse_args(arguments)
    if unknown := set(args.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if (reason := peers.missing()) is not None:
        _say(f"left out: {reason}")
        return
    if (reason := missing()) is not None:
        _say(reason)
    for name in args.sections or SECTIONS:
        _say(f"-- {name}")
        SECTIONS[name](QUICK if args.quick else FULL)
        _say(f"load average of the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def _say(text: str, end: str = "\n\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
