"""`make bench`: all measurements of the project, each paired in its own run."""

import sys
from collections.abc import Callable

from tests.benchmarks import codec, gated_read, header_tokens, proxy_cost
from tests.support.kafka.jars import VERSIONS, missing

BENCHMARKS: dict[str, Callable[[], None]] = {
    "codec: hot functions": codec.main,
    "a small request through the sidecar": lambda: proxy_cost.main([]),
    "probes that ConsistencyState saves": lambda: header_tokens.main([]),
    "a gated read that need not wait": lambda: gated_read.main([]),
}
NEEDS_KAFKA = frozenset({"a gated read that need not wait"})


def main() -> None:
    """Run them one after the other."""
    for title, run in BENCHMARKS.items():
        sys.stdout.write(f"\n== {title}\n")
        sys.stdout.flush()
        reason = missing(VERSIONS[0]) if title in NEEDS_KAFKA else None
        if reason:
            sys.stdout.write(f"left out: {reason}\n")
        else:
            run()


if __name__ == "__main__":
    main()
