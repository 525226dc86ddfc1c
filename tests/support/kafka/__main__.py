"""`python -m tests.support.kafka`: a cluster by hand, until Ctrl-C."""

import argparse
import sys

from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.jars import VERSIONS


def main() -> None:
    """Start a cluster, print where it is, obey `lag MS`, `pause`, `kill ID` and `start ID` on standard input."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.kafka", description=main.__doc__)
    parser.add_argument("--version", default=VERSIONS[0])
    parser.add_argument("--controllers", type=int, default=3)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--lag-ms", type=float, default=0)
    args = parser.parse_args()
    with KafkaCluster(version=args.version, controllers=args.controllers, brokers=args.brokers) as cluster:
        cluster.lag(args.lag_ms)
        say(f"bootstrap {cluster.bootstrap}")
        say(f"sasl      {cluster.sasl_bootstrap}")
        say(f"nodes     {' '.join(f'{node}={address}' for node, address in cluster.brokers.items())}")
        say(f"lagging   broker {cluster.lagging_broker} by {args.lag_ms:g} ms")
        try:
            for line in sys.stdin:
                obey(cluster, line.split())
        except KeyboardInterrupt:
            say("ending")


def obey(cluster: KafkaCluster, words: list[str]) -> None:
    """Do what one line says."""
    match words:
        case ["lag", delay_ms]:
            cluster.lag(float(delay_ms))
        case ["pause"]:
            cluster.pause_feed()
        case ["kill", node_id]:
            cluster.kill(int(node_id))
        case ["start", node_id]:
            cluster.start(int(node_id))
        case _:
            say("lag MS | pause | kill ID | start ID")


def say(line: str) -> None:
    """One line for the person at the terminal."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
