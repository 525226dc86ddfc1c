"""`make bench`: all measurements of the project, each paired in its own run.

python -m tests.benchmarks [--quick] [codec|proxy|tokens|quorum|reads ...]
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.benchmarks import codec, gated_read, header_tokens, proxy_cost, quorum
from tests.support.kafka.jars import VERSIONS, missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One measurement.

    Attributes:
        title: what it measures.
        run: measures, quickly if told so, and prints.
        needs_kafka: it cannot run at all without real Kafka.
    """

    title: str
    run: Callable[[bool], None]
    needs_kafka: bool = False


BENCHMARKS: Final[dict[str, Benchmark]] = {
    "codec": Benchmark(title="codec: hot functions", run=lambda _: codec.main()),
    "proxy": Benchmark(
        title="the sidecar beside other proxies", run=lambda quick: proxy_cost.main(["--quick"] if quick else [])
    ),
    "tokens": Benchmark(
        title="probes that ConsistencyState saves",
        run=lambda quick: header_tokens.main(["--seconds", "1"] if quick else []),
    ),
    "quorum": Benchmark(
        title="the backend's quorum, beside a Kafka controller if there is Java",
        run=lambda quick: quorum.main(["--quick"] if quick else []),
    ),
    "reads": Benchmark(
        title="a gated read that need not wait, on real Kafka",
        run=lambda quick: gated_read.main(["--reads", "100" if quick else "1000"]),
        needs_kafka=True,
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run them one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--quick", action="store_true", help="to see that all works; the figures say little")
    args = parser.parse_args(arguments)
    if unknown := set(args.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in args.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        sys.stdout.write(f"\n== {benchmark.title}\n")
        sys.stdout.flush()
        reason = missing(VERSIONS[0]) if benchmark.needs_kafka else None
        if reason:
            sys.stdout.write(f"left out: {reason}\n")
        else:
            benchmark.run(args.quick)


if __name__ == "__main__":
    main()
