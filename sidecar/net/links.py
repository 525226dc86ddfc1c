"""The sidecar's own connections to each broker: one for probes, one for questions about the head, and for routed reads
one as each identity.

The probe connection is kept open as long as the broker is watched; the others are opened when first needed. All of them
go to the same resolved address, so that what a probe proves holds for the others (consistency.md section 6).
"""

import asyncio
import logging
import random
import socket
from collections.abc import Callable
from typing import Any, Final

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import response_body_offset
from sidecar.core.events import (
    Address,
    ChannelClosed,
    ChannelOpened,
    HeadAnswered,
    HeadFailed,
    ProbeAnswered,
    ProbeClosed,
    ProbeOpened,
)
from sidecar.core.head import METADATA_LOG, QuorumAnswer
from sidecar.core.ids import OWN, UNKNOWN_OFFSET, Identity, NodeId, Seq
from sidecar.core.positions import has_position
from sidecar.core.states import UNASKED, can_carry, state_in
from sidecar.core.versions import read_offer
from sidecar.net.access import Access, Endpoint
from sidecar.net.broker_connection import (
    NO_TOPICS,
    OFFER_VERSION,
    SOFTWARE,
    BrokerConnection,
    BrokerUnavailable,
    connect,
)
from sidecar.net.driver import Driver
from sidecar.net.sasl import Login

log = logging.getLogger("tidegate.links")

CHANNEL_IDLE_S: Final = 300.0
"""How long a channel may be unused; brokers end connections that are idle for ten minutes, by default."""
_RETRY_S_MIN: Final = 0.05
_RETRY_S_MAX: Final = 1.0
_REFUSALS: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})


class Link:
    """The sidecar's own connections to one broker."""

    def __init__(self, links: "Links", address: Address) -> None:
        self.address = address
        self.node_id = address.node_id
        self._links = links
        self._driver = links.driver
        self._resolved: tuple[str, int] | None = None
        self._probes: BrokerConnection | None = None
        self._carries_state = False
        self._heads: BrokerConnection | None = None
        self._heads_lock = asyncio.Lock()
        self._channels: dict[Identity, BrokerConnection] = {}
        self._used_s: dict[Identity, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost = asyncio.Event()
        self._run(self._keep_probing())

    async def endpoint(self) -> Endpoint:
        """The resolved address of the broker, the same for all connections until its probe connection ends.

        Raises:
            OSError: the name does not resolve.
        """
        if self._resolved is None:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(self.address.host, self.address.port, type=socket.SOCK_STREAM)
            self._resolved = str(found[0][4][0]), self.address.port
        access = self._links.access
        return Endpoint(*self._resolved, access.tls(self.address.host), access.login)

    def close(self) -> None:
        """Ends all connections."""
        for task in self._tasks:
            task.cancel()
        for connection in (self._probes, self._heads, *list(self._channels.values())):
            if connection is not None:
                connection.close()

    # Positions

    def probe(self, asked: Seq) -> None:
        """Asks for the position."""
        connection = self._probes
        if connection is None or not connection.is_open:
            return
        version = OFFER_VERSION

        def on_answer(payload: bytes) -> None:
            offer = read_offer(payload, version, response_body_offset(payload, ApiKey.API_VERSIONS, version))
            self._driver.handle(ProbeAnswered(self.node_id, asked, offer.position, offer.versions, self._carries_state))

        connection.ask(ApiKey.API_VERSIONS, version, SOFTWARE, on_answer)

    def reset_probe(self) -> None:
        """Ends the connections to a broker that does not answer; the next probe connection is opened at once."""
        for connection in (self._probes, self._heads, *list(self._channels.values())):
            if connection is not None:
                connection.close("timeout")

    async def _keep_probing(self) -> None:
        delay_s = _RETRY_S_MIN
        while True:
            self._lost.clear()
            try:
                self._probes = await self._connect(self._probes_lost, self._links.access.login)
            except BrokerUnavailable as error:
                self._driver.counters.probe_failures[self.node_id, error.cause] += 1
                log.debug("broker %d: %s", self.node_id, error)
                self._resolved = None
                await asyncio.sleep(delay_s * (0.5 + random.random()))
                delay_s = min(2 * delay_s, _RETRY_S_MAX)
                continue
            delay_s = _RETRY_S_MIN
            self._carries_state = False
            self._detect_state(self._probes)
            self._driver.handle(ProbeOpened(self.node_id))
            await self._lost.wait()

    def _detect_state(self, connection: BrokerConnection) -> None:
        """Sees whether the broker implements the proposal. The answer comes before that of the first probe."""
        version = connection.version(ApiKey.METADATA)
        if version is None or not can_carry(ApiKey.METADATA, version):
            return

        def on_answer(payload: bytes) -> None:
            self._carries_state = state_in(payload, ApiKey.METADATA, version) is not None

        connection.ask(ApiKey.METADATA, version, NO_TOPICS, on_answer, UNASKED)

    def _probes_lost(self, cause: str) -> None:
        self._probes = None
        self._resolved = None
        self._driver.counters.probe_failures[self.node_id, cause] += 1
        self._lost.set()
        self._driver.handle(ProbeClosed(self.node_id, cause))

    # The head

    def probe_head(self, asked: Seq) -> None:
        """Asks for the head through this broker."""
        self._run(self._ask_head(asked))

    async def _ask_head(self, asked: Seq) -> None:
        try:
            connection = await self._head_connection()
            version = connection.version(ApiKey.DESCRIBE_QUORUM)
            if version is None:
                self._driver.handle(HeadFailed(self.node_id, asked, refused=True))
                return
            answer = await self._quorum(connection, version)
        except BrokerUnavailable:
            self._driver.handle(HeadFailed(self.node_id, asked, refused=False))
            return
        quorum = None if answer["error_code"] else QuorumAnswer.from_response(answer)
        if quorum is None:
            refused = answer["error_code"] in _REFUSALS
            self._driver.handle(HeadFailed(self.node_id, asked, refused=refused))
        else:
            self._driver.handle(HeadAnswered(self.node_id, asked, quorum))

    async def _quorum(self, connection: BrokerConnection, version: int) -> dict[str, Any]:
        """Asks on a connection that ends when no answer comes: a stopped controller would keep all that is behind."""
        try:
            async with asyncio.timeout(self._driver.connect_timeout_ms / 1000):
                return await connection.call(ApiKey.DESCRIBE_QUORUM, version, METADATA_LOG)
        except TimeoutError as error:
            connection.close("timeout")
            raise BrokerUnavailable("timeout", "DescribeQuorum was not answered in time") from error

    async def _head_connection(self) -> BrokerConnection:
        async with self._heads_lock:
            if self._heads is None or not self._heads.is_open:
                self._heads = await self._connect(None, self._links.access.login)
            return self._heads

    # Routed reads

    def open_channel(self, identity: Identity) -> None:
        """Opens the channel for routed reads of an identity."""
        self._run(self._open_channel(identity))

    def close_channel(self, identity: Identity) -> None:
        """Ends it, if it is open; the core is not told."""
        if (channel := self._channels.pop(identity, None)) is not None:
            del self._used_s[identity]
            channel.close()

    def relay(self, identity: Identity, payload: bytes, on_answer: Callable[[bytes], None]) -> None:
        """Sends a routed read on the open channel of an identity."""
        if (channel := self._channels.get(identity)) is not None:
            self._used_s[identity] = asyncio.get_running_loop().time()
            channel.relay(payload, on_answer)

    async def _open_channel(self, identity: Identity) -> None:
        driver, channel_id = self._driver, self._driver.next_channel_id()
        login = self._links.access.login if identity == OWN else driver.identities.login(identity)
        channel: BrokerConnection | None = None
        refusal = ""

        def lost(cause: str) -> None:
            if self._channels.get(identity) is channel:
                del self._channels[identity], self._used_s[identity]
                driver.handle(ChannelClosed(self.node_id, channel_id, identity, ours=cause == "login"))
                if cause == "login":
                    driver.identities.refused(identity, "it has expired")

        try:
            if identity == OWN or login is not None:
                channel = await self._connect(lost, login)
        except BrokerUnavailable as error:
            log.debug("broker %d: %s", self.node_id, error)
            refusal = f"broker {self.node_id}: {error}" if error.cause == "login" else ""
        finally:
            # Whatever happened: somebody waits for it.
            if channel is None:
                driver.handle(ChannelClosed(self.node_id, None, identity))
        if channel is None:
            if refusal and identity != OWN:
                driver.identities.refused(identity, refusal)
        elif identity != OWN and driver.identities.login(identity) is None:
            channel.close()
        else:
            self._opened(identity, channel, channel_id)

    def _opened(self, identity: Identity, channel: BrokerConnection, channel_id: int) -> None:
        loop = asyncio.get_running_loop()
        self._channels[identity], self._used_s[identity] = channel, loop.time()
        loop.call_later(CHANNEL_IDLE_S, self._end_idle, identity, channel, channel_id)
        position = channel.position if has_position(channel.versions) else None
        shown = UNKNOWN_OFFSET if position is None else position
        self._driver.handle(ChannelOpened(self.node_id, channel_id, shown, identity))

    def _end_idle(self, identity: Identity, channel: BrokerConnection, channel_id: int) -> None:
        """A channel that nobody uses is ended here, before its broker does, which would look like another process."""
        if self._channels.get(identity) is not channel:
            return
        loop = asyncio.get_running_loop()
        left_s = self._used_s[identity] + CHANNEL_IDLE_S - loop.time()
        if channel.in_flight or left_s > 0:
            loop.call_later(max(left_s, _RETRY_S_MAX), self._end_idle, identity, channel, channel_id)
            return
        self.close_channel(identity)
        self._driver.handle(ChannelClosed(self.node_id, channel_id, identity, ours=True))

    # Steps

    async def _connect(self, on_lost: Callable[[str], None] | None, login: Login | None) -> BrokerConnection:
        driver, counters = self._driver, self._driver.counters

        def lost(cause: str) -> None:
            counters.broker_connections[self.node_id] -= 1
            counters.closed["broker", cause] += 1
            if on_lost is not None:
                on_lost(cause)

        try:
            host, port, tls, _ = await self.endpoint()
        except OSError as error:
            raise BrokerUnavailable("resolve", f"{self.address.host} does not resolve: {error.strerror}") from error
        connection = await connect(
            host,
            port,
            tls=tls,
            credentials=login,
            timeout_ms=driver.connect_timeout_ms,
            frame_bytes_max=driver.limits.frame_bytes,
            on_lost=lost,
        )
        counters.broker_connections[self.node_id] += 1
        counters.opened["broker"] += 1
        return connection

    def _run(self, coroutine: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Links:
    """The links to all watched brokers."""

    def __init__(self, driver: Driver, access: Access) -> None:
        self.driver = driver
        self.access = access
        self._links: dict[NodeId, Link] = {}

    def watch(self, address: Address) -> None:
        """Starts to keep a link to a broker."""
        self._links[address.node_id] = Link(self, address)

    def unwatch(self, node_id: NodeId) -> None:
        """Ends the link to a broker."""
        link = self._links.pop(node_id, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Ends all links."""
        for node_id in list(self._links):
            self.unwatch(node_id)

    async def endpoint(self, node_id: NodeId) -> Endpoint:
        """Where connections of clients to this broker go: the same address as the sidecar's own.

        Raises:
            OSError: the broker is not known, or its name does not resolve.
        """
        link = self._links.get(node_id)
        if link is None:
            raise OSError(f"broker {node_id} is not known")
        return await link.endpoint()

    def probe(self, node_id: NodeId, asked: Seq) -> None:
        """See `Link.probe`."""
        if (link := self._links.get(node_id)) is not None:
            link.probe(asked)

    def reset_probe(self, node_id: NodeId) -> None:
        """See `Link.reset_probe`."""
        if (link := self._links.get(node_id)) is not None:
            link.reset_probe()

    def probe_head(self, node_id: NodeId, asked: Seq) -> None:
        """See `Link.probe_head`."""
        if (link := self._links.get(node_id)) is not None:
            link.probe_head(asked)

    def open_channel(self, node_id: NodeId, identity: Identity) -> None:
        """See `Link.open_channel`."""
        if (link := self._links.get(node_id)) is not None:
            link.open_channel(identity)

    def close_channels(self, identity: Identity) -> None:
        """See `Link.close_channel`; those to all brokers."""
        for link in self._links.values():
            link.close_channel(identity)

    def relay(self, node_id: NodeId, identity: Identity, payload: bytes, on_answer: Callable[[bytes], None]) -> None:
        """See `Link.relay`."""
        if (link := self._links.get(node_id)) is not None:
            link.relay(identity, payload, on_answer)
