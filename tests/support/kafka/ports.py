"""Free loopback ports for servers that will bind them a moment later, and again after a restart."""

import random
import socket

from tests.support.kafka.errors import KafkaHarnessError

HOST = "127.0.0.1"
# Below the usual ephemeral ranges, so that no outgoing connection takes a port while its server is down.
FIRST, LAST = 15000, 30000
TRIES = 50


def free_ports(count: int) -> list[int]:
    """`count` neighbouring ports that nobody listens on now.

    Raises:
        KafkaHarnessError: if no such block is found.
    """
    choice = random.SystemRandom()
    for _ in range(TRIES):
        first = choice.randrange(FIRST, LAST - count)
        block = list(range(first, first + count))
        if all(map(_is_free, block)):
            return block
    raise KafkaHarnessError(f"no {count} neighbouring free ports between {FIRST} and {LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
