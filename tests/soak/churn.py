"""Connections that come and go as they do in a bad week: half-open, cut off, silent, of another protocol.

Each act is a short visit to one port of the sidecar. What is sent is well-formed or not; nothing is checked but that
the visit ends. Which act comes when is drawn from one seed.
"""

import random
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Final, final

from tests.support.address import Address

VISIT_S_MAX: Final = 2.0
BURST: Final = 20
API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A whole ApiVersions request of version 0."""
TLS_HELLO: Final = bytes.fromhex("16030100c8010000c40303") + bytes(32)

Act = Callable[[Address, random.Random], None]


def come_and_go(address: Address, chance: random.Random) -> None:
    """Connect, say nothing, leave."""
    _connect(address).close()


def half_a_frame(address: Address, chance: random.Random) -> None:
    """Leave in the middle of a request."""
    with _connect(address) as visitor:
        visitor.sendall(API_VERSIONS[: chance.randrange(1, len(API_VERSIONS))])


def ask_and_reset(address: Address, chance: random.Random) -> None:
    """Ask, and reset the connection without reading the answer."""
    with _connect(address) as visitor:
        visitor.sendall(API_VERSIONS * chance.randrange(1, 5))
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def ask_and_read(address: Address, chance: random.Random) -> None:
    """A client that behaves."""
    with _connect(address) as visitor:
        visitor.sendall(API_VERSIONS)
        visitor.recv(4)


def stay_silent(address: Address, chance: random.Random) -> None:
    """Connect and say nothing until the patience of this visitor ends."""
    with _connect(address) as visitor:
        visitor.settimeout(chance.uniform(0, VISIT_S_MAX))
        visitor.recv(1)


def speak_tls(address: Address, chance: random.Random) -> None:
    """Begin a TLS handshake on a plain port."""
    with _connect(address) as visitor:
        visitor.sendall(TLS_HELLO)
        visitor.recv(64)


def speak_http(address: Address, chance: random.Random) -> None:
    """Ask as a browser does."""
    with _connect(address) as visitor:
        visitor.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        visitor.recv(64)


def burst(address: Address, chance: random.Random) -> None:
    """Many at once."""
    visitors = [_connect(address) for _ in range(BURST)]
    for visitor in visitors:
        visitor.close()


ACTS: Final[Sequence[Act]] = (
    come_and_go,
    half_a_frame,
    ask_and_reset,
    ask_and_read,
    stay_silent,
    speak_tls,
    speak_http,
    burst,
)


@final
class Churn:
    """Visits one after the other, until it is told to stop.

    Attributes:
        visits: how many there were of each kind.
    """

    def __init__(self, addresses: Sequence[Address], seed: int, pause_s: float = 0.02) -> None:
        self.visits = {act.__name__: 0 for act in ACTS}
        self._addresses = addresses
        self._chance = random.Random(seed)
        self._pause_s = pause_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="churn")
        self._thread.start()

    def stop(self) -> None:
        """No further visit; returns when the last has ended."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._pause_s):
            act = self._chance.choice(ACTS)
            try:
                act(self._chance.choice(self._addresses), self._chance)
            except OSError:
                # Refused while a sidecar drains, timed out, reset: all part of it.
                continue
            finally:
                self.visits[act.__name__] += 1


def _connect(address: Address) -> socket.socket:
    return socket.create_connection((address.host, address.port), timeout=VISIT_S_MAX)
