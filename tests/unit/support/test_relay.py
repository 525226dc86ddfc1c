"""The relay between a node and a controller: whom it delays, which way, and that an order reaches bytes on their way.

Long delays stand for "until further notice": what must not wait for them arrives at once, or the test times out.
"""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.ports import HOST, free_ports
from tests.support.kafka.relay import TO_TARGET, Link, Relay

CONTROLLER = 3001
FOR_EVER_MS = 3_600_000
ANSWER_TIMEOUT_S = 20
NEVER_S = 0.2


@pytest.fixture
def echo_port() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        def echo(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


class Relayed:
    """A relay in front of the echo server."""

    def __init__(self, target_port: int, log: Path) -> None:
        (self.port,) = free_ports(1)
        link = Link(controller_id=CONTROLLER, listen_port=self.port, target_port=target_port)
        self.relay = Relay([link], log)

    def connect(self, client_id: bytes) -> socket.socket:
        """Connect, and come back once the start of a first request with this client id was echoed."""
        connection = socket.create_connection((HOST, self.port), ANSWER_TIMEOUT_S)
        request = bytes.fromhex("00000000 0012 0003 00000001") + len(client_id).to_bytes(2) + client_id
        connection.sendall(request)
        try:
            assert receive(connection, len(request)) == request
        except BaseException:
            connection.close()
            raise
        return connection


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        assert chunk, "the relay closed the connection"
        data += chunk
    return data


@pytest.fixture
def relayed(echo_port: int, tmp_path: Path) -> Iterator[Relayed]:
    relayed = Relayed(echo_port, tmp_path / "relay.log")
    yield relayed
    relayed.relay.close()


def test_only_the_feed_of_the_named_node_is_delayed(relayed: Relayed) -> None:
    relayed.relay.delay([(2, CONTROLLER), (3, 3002)], FOR_EVER_MS)
    for client_id in (b"raft-client-3", b"3", b"2", b"", b"admin-1"):
        with relayed.connect(client_id) as connection:
            connection.sendall(b"at once")
            assert receive(connection, 7) == b"at once"


def test_a_delay_counts_from_the_arrival_of_the_bytes(relayed: Relayed) -> None:
    with relayed.connect(b"raft-client-3") as connection:
        relayed.relay.delay([(3, CONTROLLER)], 300)
        start_s = time.monotonic()
        connection.sendall(b"late")
        assert receive(connection, 4) == b"late"
        assert time.monotonic() - start_s >= 0.3


@pytest.mark.parametrize("direction", ["to_source", TO_TARGET])
def test_held_bytes_go_on_in_order_when_cleared(relayed: Relayed, direction: str) -> None:
    with relayed.connect(b"raft-client-3") as connection:
        relayed.relay.delay([(3, CONTROLLER)], None, direction=direction)
        connection.sendall(b"one ")
        connection.settimeout(NEVER_S)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(ANSWER_TIMEOUT_S)
        connection.sendall(b"two")
        relayed.relay.clear()
        assert receive(connection, 7) == b"one two"


def test_everything_of_a_node_can_be_held(relayed: Relayed) -> None:
    with relayed.connect(b"3") as connection:
        relayed.relay.delay([(3, CONTROLLER)], None, feed_only=False)
        connection.sendall(b"held")
        connection.settimeout(NEVER_S)
        with pytest.raises(TimeoutError):
            connection.recv(1)


def test_a_shorter_delay_reaches_bytes_that_wait_already(relayed: Relayed) -> None:
    with relayed.connect(b"raft-client-3") as connection:
        relayed.relay.delay([(3, CONTROLLER)], FOR_EVER_MS)
        connection.sendall(b"soon")
        relayed.relay.delay([(3, CONTROLLER)], 1)
        assert receive(connection, 4) == b"soon"


def test_a_cut_breaks_what_is_open_and_refuses_what_is_new(relayed: Relayed) -> None:
    with relayed.connect(b"raft-client-3") as open_before, relayed.connect(b"2") as another:
        relayed.relay.cut([(3, CONTROLLER)])
        assert open_before.recv(1) == b""
        with pytest.raises(AssertionError, match="closed the connection"):
            relayed.connect(b"3")
        another.sendall(b"spared")
        assert receive(another, 6) == b"spared"
    relayed.relay.clear()
    relayed.connect(b"3").close()


def test_a_close_passes_through(relayed: Relayed) -> None:
    with relayed.connect(b"raft-client-3") as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_a_controller_that_is_not_there_is_a_closed_connection(tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    relayed = Relayed(nobody, tmp_path / "relay.log")
    with socket.create_connection((HOST, relayed.port), ANSWER_TIMEOUT_S) as connection:
        connection.sendall(bytes.fromhex("00000000 0012 0003 00000001 ffff"))
        assert connection.recv(1) == b""
    relayed.relay.close()


def test_a_port_that_is_taken_is_named(echo_port: int, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=str(echo_port)):
        Relay([Link(controller_id=CONTROLLER, listen_port=echo_port, target_port=1)], tmp_path / "relay.log")
