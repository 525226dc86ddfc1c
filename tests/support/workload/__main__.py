"""`python -m tests.support.workload --nodes 1=127.0.0.1:9091,2=127.0.0.1:9092 --rounds 70`: the workload by hand."""

import argparse
import asyncio
import sys

from tests.support.address import Address
from tests.support.raw_client import PlainLogin
from tests.support.workload.kinds import KINDS
from tests.support.workload.run import measure_idle, run


def main() -> None:
    """Run the workload against any Kafka and print what was fresh and what stale."""
    names = [kind.name for kind in KINDS]
    parser = argparse.ArgumentParser(prog="python -m tests.support.workload", description=main.__doc__)
    parser.add_argument("--nodes", required=True, type=parse_nodes, metavar="ID=HOST:PORT,...")
    parser.add_argument("--writer", type=Address.parse, metavar="HOST:PORT", help="where to write (first node)")
    parser.add_argument("--rounds", type=int, default=70)
    parser.add_argument("--kinds", nargs="+", choices=names, default=names)
    parser.add_argument("--user", help="log in with SASL PLAIN as alice or bob")
    parser.add_argument("--parallel", action="store_true", help="all kinds at the same time")
    parser.add_argument("--idle", action="store_true", help="only measure reads that have nothing to wait for")
    args = parser.parse_args()
    kinds = [kind for kind in KINDS if kind.name in args.kinds]
    login = PlainLogin.of(args.user) if args.user else None
    if args.idle:
        work = measure_idle(args.nodes, reads=args.rounds, kinds=kinds, writer=args.writer, login=login)
    else:
        work = run(
            args.nodes, rounds=args.rounds, kinds=kinds, writer=args.writer, login=login, in_parallel=args.parallel
        )
    sys.stdout.write(asyncio.run(work).table() + "\n")


def parse_nodes(text: str) -> dict[int, Address]:
    """Read `ID=HOST:PORT,...`."""
    pairs = (part.partition("=") for part in text.split(","))
    return {int(node_id): Address.parse(address) for node_id, _, address in pairs}


if __name__ == "__main__":
    main()
