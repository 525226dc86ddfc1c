"""Those who carry out the driver's orders, as the driver sees them.

The driver knows no socket: `client`, `listener` and `links` know it, never the other way round. `Owner` is what a home
connection needs of the client that it belongs to.
"""

from collections.abc import Callable
from typing import Protocol

from sidecar.core.addresses import NodePorts
from sidecar.core.connection import ClientConnection
from sidecar.core.events import Address
from sidecar.core.exchange import Exchange
from sidecar.core.ids import Identity, NodeId, Seq
from sidecar.net.access import Endpoint


class ListenerParty(Protocol):
    """Where clients come in."""

    name: str
    ports: NodePorts
    lends_identity: bool

    @property
    def identity(self) -> Identity | None:
        """Who its clients are to the brokers before they log in; None: nobody yet."""

    def serve(self, node_id: NodeId) -> None:
        """Binds the port of a node, if it has none yet."""


class Owner(Protocol):
    """A client, as its home connection sees it."""

    peer: str
    connection: ClientConnection

    @property
    def listener(self) -> ListenerParty:
        """Where it came in."""

    def write(self, data: bytes) -> None:
        """Sends whole frames, or a part of one that streams."""

    def deliver(self) -> None:
        """Sends the answers whose turn it is."""

    @property
    def half_read(self) -> bool:
        """Whether part of a request has come, and the rest has not."""

    def passed(self) -> None:
        """Notes that answers went out with `write`."""

    def update_reading(self) -> None:
        """Reads from the client as long as order, limits and the broker's pace allow it."""

    def close(self, cause: str, at: Exchange | None = None) -> None:
        """Ends the connection, after the answers ahead of ``at``."""


class ClientParty(Owner, Protocol):
    """A client, as the driver sees it."""

    def send_home(self, payload: bytes) -> None:
        """Sends one request to the client's own broker."""

    def reopen_home(self) -> None:
        """Connects to the client's own broker again."""

    def answer_plain(self, exchange: Exchange, payload: bytes) -> None:
        """Gives a plain request its answer, now or when it is its turn."""

    def drain(self) -> None:
        """Takes no more requests; the connection ends when those that came are answered."""


class DiscoveryParty(Protocol):
    """Who asks which brokers there are."""

    def hasten(self) -> None:
        """Asks at once, not when it is time."""


class LinksParty(Protocol):
    """The sidecar's own connections."""

    async def endpoint(self, node_id: NodeId) -> Endpoint:
        """Where connections of clients to this broker go; raises OSError."""

    def watch(self, address: Address) -> None:
        """Starts to keep a link to a broker."""

    def unwatch(self, node_id: NodeId) -> None:
        """Ends the link to a broker."""

    def probe(self, node_id: NodeId, asked: Seq) -> None:
        """Asks a broker for its position."""

    def reset_probe(self, node_id: NodeId) -> None:
        """Ends a probe connection that does not answer."""

    def probe_head(self, node_id: NodeId, asked: Seq) -> None:
        """Asks for the head through a broker."""

    def open_channel(self, node_id: NodeId, identity: Identity) -> None:
        """Opens the channel for routed reads of an identity to a broker."""

    def close_channels(self, identity: Identity) -> None:
        """Ends the channels of an identity to all brokers, without a word to the core."""

    def relay(self, node_id: NodeId, identity: Identity, payload: bytes, on_answer: Callable[[bytes], None]) -> None:
        """Sends a routed read on the open channel."""

    def close(self) -> None:
        """Ends all links."""
