"""Looks at a cluster: who the brokers are, where the head is, how far each broker has come. Needs no sidecar.

    look    describe the cluster, connect to every broker, ask the head, then ask every position at once

Connections stay open from one look to the next. Questions about the head have connections of their own: a broker
answers one connection in order, and DescribeQuorum hangs while the active controller stands still. Everything has a
time limit. What the answers mean is decided in `sidecar.core.survey`.
"""

import asyncio
import itertools
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from codec.api_keys import ApiKey
from config.values import HostPort
from sidecar.core.events import Address, ClusterDescribed
from sidecar.core.head import METADATA_LOG
from sidecar.core.ids import UNKNOWN_OFFSET, NodeId, Seq
from sidecar.core.positions import has_position
from sidecar.core.survey import NO_DESCRIBE_QUORUM, NO_POSITION, NoHead, Standing, Survey, read_head
from sidecar.core.view import Head
from sidecar.net.access import Access
from sidecar.net.broker_connection import BrokerConnection, BrokerUnavailable, connect
from sidecar.net.discovery import describe

FRAME_BYTES_MAX: Final = 16 << 20
_CONNECTS_AT_ONCE: Final = 64
_HEAD_PAUSE_S: Final = 0.1


class ClusterUnreachable(Exception):
    """No broker says who the brokers are; the message has one line for each that was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a look waits.

    Attributes:
        connect_ms: for a connection with negotiation and login.
        answer_ms: for one answer.
        head_ms: for the head, however many brokers are asked.
    """

    connect_ms: int = 5000
    answer_ms: int = 1500
    head_ms: int = 4000


PATIENCE: Final = Patience()
T = TypeVar("T")


class Surveyor:
    """Looks at one cluster as often as it is told to. To be closed in the end.

    Args:
        bootstrap: brokers to ask for all the others.
    """

    def __init__(self, bootstrap: Sequence[HostPort], access: Access, patience: Patience = PATIENCE) -> None:
        self._bootstrap = tuple(bootstrap)
        self._dial = _Dial(access, patience)
        self._patience = patience
        self._nodes: dict[NodeId, _Node] = {}
        self._cluster_id: str | None = None
        self._head: Head | None = None
        self._seqs = itertools.count(1)

    async def look(self) -> Survey:
        """Looks once, within a few times the longest limit of its patience.

        Raises:
            ClusterUnreachable: nobody says who the brokers are.
        """
        self._learn(await self._describe())
        nodes = [self._nodes[node_id] for node_id in sorted(self._nodes)]
        await asyncio.gather(*(node.open() for node in nodes))
        head = await self._find_head([node for node in nodes if node.is_open])
        standings = await asyncio.gather(*(node.stand() for node in nodes))
        return Survey(cluster_id=self._cluster_id, head=head, brokers=tuple(standings))

    def close(self) -> None:
        """Ends all connections."""
        for node in self._nodes.values():
            node.close()
        self._nodes.clear()

    # Who the brokers are

    async def _describe(self) -> ClusterDescribed:
        for node in sorted(self._nodes.values(), key=lambda node: -node.offset):
            if (described := await node.describe()) is not None and described.brokers:
                return described
        faults = []
        for server in self._bootstrap:
            try:
                described = await self._ask_server(server)
            except BrokerUnavailable as error:
                faults.append(f"{server}: {error}")
                continue
            if described.brokers:
                return described
            faults.append(f"{server}: knows no broker")
        raise ClusterUnreachable("\n".join(faults))

    async def _ask_server(self, server: HostPort) -> ClusterDescribed:
        connection = await self._dial(server.host, server.port)
        try:
            if ApiKey.METADATA not in connection.versions and ApiKey.VOTE in connection.versions:
                raise BrokerUnavailable("versions", "a controller answers there; name the port of a broker")
            async with asyncio.timeout(self._patience.answer_ms / 1000):
                return await describe(connection)
        except TimeoutError as error:
            raise BrokerUnavailable("timeout", "the cluster was not described in time") from error
        finally:
            connection.close()

    def _learn(self, described: ClusterDescribed) -> None:
        if described.cluster_id != self._cluster_id:
            self._cluster_id, self._head = described.cluster_id, None
        found = {address.node_id: address for address in described.brokers}
        for node_id, node in list(self._nodes.items()):
            if found.get(node_id) != node.address:
                self._nodes.pop(node_id).close()
        for node_id, address in found.items():
            if node_id not in self._nodes:
                self._nodes[node_id] = _Node(address, self._dial)

    # The head

    async def _find_head(self, nodes: "Sequence[_Node]") -> Head | NoHead:
        """Asks those that are farthest ahead first, one after the other, until one is believed or all refuse."""
        nodes = sorted(nodes, key=lambda node: -node.offset)
        found = NoHead(reason="no broker could be asked")
        try:
            async with asyncio.timeout(self._patience.head_ms / 1000):
                while nodes:
                    refusals = 0
                    for node in nodes:
                        outcome = await node.ask_head(self._head, Seq(next(self._seqs)))
                        if isinstance(outcome, Head):
                            self._head = outcome
                            return outcome
                        found = outcome
                        refusals += outcome.refused
                    if refusals == len(nodes):
                        break
                    await asyncio.sleep(_HEAD_PAUSE_S)
        except TimeoutError:
            pass  # what the last broker said is the reason
        return found


class _Dial:
    """Opens connections, not too many at once."""

    def __init__(self, access: Access, patience: Patience) -> None:
        self.patience = patience
        self._access = access
        self._slots = asyncio.Semaphore(_CONNECTS_AT_ONCE)

    async def __call__(self, host: str, port: int) -> BrokerConnection:
        async with self._slots:
            return await connect(
                host,
                port,
                tls=self._access.tls(host),
                credentials=self._access.login,
                timeout_ms=self.patience.connect_ms,
                frame_bytes_max=FRAME_BYTES_MAX,
            )


class _Node:
    """One broker: a connection for its position, another one for the head.

    Attributes:
        offset: its last known position, -1 when unknown.
    """

    def __init__(self, address: Address, dial: _Dial) -> None:
        self.address = address
        self.offset = UNKNOWN_OFFSET
        self._dial = dial
        self._fault = ""
        self._positions: BrokerConnection | None = None
        self._heads: BrokerConnection | None = None

    @property
    def is_open(self) -> bool:
        """Whether its position can be asked."""
        return self._positions is not None and self._positions.is_open

    async def open(self) -> None:
        """Connects, unless it is connected already."""
        if self.is_open:
            return
        self.offset, self._positions = UNKNOWN_OFFSET, None
        try:
            self._positions = await self._dial(self.address.host, self.address.port)
        except BrokerUnavailable as error:
            self._fault = str(error)
        else:
            self._note(self._positions.position, self._positions.versions)

    def close(self) -> None:
        """Ends its connections."""
        for connection in (self._positions, self._heads):
            if connection is not None:
                connection.close()

    async def describe(self) -> ClusterDescribed | None:
        """The cluster as this broker sees it; None when it does not answer."""
        if self._positions is None:
            return None
        try:
            return await self._answer_of(self._positions, describe(self._positions))
        except BrokerUnavailable:
            return None

    async def stand(self) -> Standing:
        """Where the broker is now."""
        if self._positions is None:
            return self._standing(answered=False, reason=self._fault)
        try:
            offer = await self._answer_of(self._positions, self._positions.ask_offer())
        except BrokerUnavailable as error:
            return self._standing(answered=False, reason=str(error))
        self._note(offer.position, offer.versions)
        known = self.offset != UNKNOWN_OFFSET
        return self._standing(answered=True, reason=None if known else NO_POSITION)

    async def ask_head(self, known: Head | None, asked: Seq) -> Head | NoHead:
        """The head through this broker, if it is to be believed."""
        try:
            if self._heads is None or not self._heads.is_open:
                self._heads = await self._dial(self.address.host, self.address.port)
            version = self._heads.version(ApiKey.DESCRIBE_QUORUM)
            if version is None:
                return NoHead(reason=NO_DESCRIBE_QUORUM, refused=True)
            question = self._heads.call(ApiKey.DESCRIBE_QUORUM, version, METADATA_LOG)
            return read_head(known, await self._answer_of(self._heads, question), asked)
        except BrokerUnavailable as error:
            return NoHead(reason=f"DescribeQuorum through broker {self.address.node_id}: {error}")

    async def _answer_of(self, connection: BrokerConnection, question: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout(self._dial.patience.answer_ms / 1000):
                return await question
        except TimeoutError as error:
            connection.close("timeout")
            raise BrokerUnavailable("timeout", "no answer came in time") from error

    def _note(self, position: int | None, versions: Mapping[int, tuple[int, int]]) -> None:
        self.offset = UNKNOWN_OFFSET if position is None or not has_position(versions) else position

    def _standing(self, *, answered: bool, reason: str | None) -> Standing:
        return Standing(
            node_id=self.address.node_id,
            host=self.address.host,
            port=self.address.port,
            answered=answered,
            offset=None if reason is not None else self.offset,
            reason=reason,
        )
