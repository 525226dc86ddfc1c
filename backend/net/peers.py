"""How a node reaches the others of its cluster: those in the same process at once, those in others over connections.

    replica's requests ─┬─> driver of a node in this process
    heads, controllers ─┴─> Remote: the quorum's messages and the controllers' APIs on the wire

The messages are the same on both ways. `Network` is what all nodes of one process share, and can be cut, for tests and
demonstrations, as a network can.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Final, final

from backend.net.active_controller import ActiveController
from backend.net.controller import Controller
from backend.net.driver import Driver, ReplicaStopped
from backend.net.envelope import client_id_of
from backend.net.quorum_answers import ask_for_metadata, read_quorum
from backend.net.quorum_wire import Unanswered, read_response, request_body
from backend.net.remote import Remote, Unreachable
from backend.net.remote_controller import RemoteController
from backend.raft.effects import Outgoing
from backend.raft.interfaces import Head, NotLeader
from backend.raft.messages import Response
from codec import CodecError
from codec.api_keys import ApiKey

log = logging.getLogger("tidegate.quorum")

REQUEST_TIMEOUT_S: Final = 2.0
"""Kafka's quorum.request.timeout.ms; a leader holds a Fetch for less."""
DESCRIBE_QUORUM_VERSION: Final = 2


@final
class Network:
    """The nodes of one process, and where those of other processes listen.

    Args:
        controllers: host and port of every controller, by id; a controller in this process needs none.

    Attributes:
        drivers: the replicas in this process, by node id, while they run.
        active: the controllers in this process, likewise.
    """

    def __init__(self, cluster_id: str, controllers: Mapping[int, tuple[str, int]]) -> None:
        self.cluster_id = cluster_id
        self.addresses = controllers
        self.drivers: dict[int, Driver] = {}
        self.active: dict[int, Controller] = {}
        self._apart: frozenset[int] = frozenset()

    def cut_off(self, *node_ids: int) -> None:
        """Let these nodes, and all others, lose what they say to each other; none heals every cut."""
        self._apart = frozenset(node_ids)

    def connects(self, one: int, other: int) -> bool:
        """Whether what one node says to another arrives."""
        return (one in self._apart) == (other in self._apart)


@final
class Peers:
    """The others, as one node reaches them: `Sender`, `HeadSource`, and controllers by their id."""

    def __init__(self, node_id: int, network: Network) -> None:
        self._node_id = node_id
        self._network = network
        self._remotes: dict[int, Remote] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._warned: set[tuple[int, str]] = set()

    def send(self, outgoing: Outgoing, driver: Driver) -> None:
        """See `Sender`."""
        if not self._network.connects(self._node_id, outgoing.to):
            return
        peer = self._network.drivers.get(outgoing.to)
        if peer is not None:
            answer = peer.receive(outgoing.request)
            answer.add_done_callback(lambda done: self._answered(outgoing, driver, done))
            return
        task = asyncio.get_running_loop().create_task(self._ask(outgoing, driver))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def head(self, leader_id: int) -> Awaitable[Head]:
        """See `HeadSource`."""
        return self._head(leader_id)

    def controller(self, node_id: int) -> ActiveController:
        """A controller, by its id.

        Raises:
            NotLeader: It cannot be reached.
        """
        if not self._network.connects(self._node_id, node_id):
            raise NotLeader
        controller = self._network.active.get(node_id)
        return RemoteController(self._remote(node_id), self._network.cluster_id) if controller is None else controller

    async def idle(self) -> None:
        """Returns when what was sent until now is answered, or will never be."""
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def close(self) -> None:
        """End all connections."""
        asking = [*self._asking]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await asyncio.gather(*(remote.close() for remote in self._remotes.values()))

    def _answered(self, outgoing: Outgoing, driver: Driver, done: "asyncio.Future[Response]") -> None:
        if done.cancelled() or not self._network.connects(self._node_id, outgoing.to):
            return
        if done.exception() is None:
            driver.respond(outgoing.correlation_id, done.result())
        else:
            driver.failed(outgoing.correlation_id)

    async def _ask(self, outgoing: Outgoing, driver: Driver) -> None:
        sent = request_body(outgoing.request, self._network.cluster_id, outgoing.to)
        try:
            remote = self._remote(outgoing.to)
            _, body = await remote.ask(sent.api_key, sent.api_version, sent.body, REQUEST_TIMEOUT_S)
            response = read_response(sent.api_key, body)
        except (NotLeader, Unreachable):
            driver.failed(outgoing.correlation_id)
        except (Unanswered, CodecError) as error:
            self._warn(outgoing.to, str(error))
            driver.failed(outgoing.correlation_id)
        else:
            driver.respond(outgoing.correlation_id, response)

    async def _head(self, leader_id: int) -> Head:
        if not self._network.connects(self._node_id, leader_id):
            raise NotLeader
        driver = self._network.drivers.get(leader_id)
        try:
            if driver is not None:
                return await driver.read_index()
            remote = self._remote(leader_id)
            _, body = await remote.ask(
                ApiKey.DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION, ask_for_metadata(), REQUEST_TIMEOUT_S
            )
        except (Unreachable, ReplicaStopped) as error:
            raise NotLeader from error
        state = read_quorum(body)
        return Head(high_watermark=state.high_watermark, leader_epoch=state.leader_epoch)

    def _remote(self, node_id: int) -> Remote:
        remote = self._remotes.get(node_id)
        if remote is None:
            host, port = self._network.addresses.get(node_id, ("", 0))
            if not port:
                raise NotLeader
            remote = self._remotes[node_id] = Remote(host, port, client_id_of(self._node_id))
        return remote

    def _warn(self, node_id: int, reason: str) -> None:
        """Once for each reason: a wrong configuration would fill the log."""
        if (node_id, reason) not in self._warned:
            self._warned.add((node_id, reason))
            log.warning("node %d refuses what node %d asks: %s", node_id, self._node_id, reason)
