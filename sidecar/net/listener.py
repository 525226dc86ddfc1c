"""Where clients come in: one bootstrap port and one port a node, on every listener of the configuration.

A port is bound and listening before any client can be told of it.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from config.values import HostPort
from sidecar.core.addresses import NodePorts, PortsExhausted
from sidecar.core.ids import OWN, Identity, NodeId
from sidecar.net.access import Access
from sidecar.net.client import Client
from sidecar.net.driver import Driver
from sidecar.net.tls_server import TlsServer

log = logging.getLogger("tidegate.listener")

_BACKLOG = 1024


class PortTaken(Exception):
    """Another process holds a port that the configuration asks for."""


class Listener:
    """See the module.

    Args:
        host, port: the bootstrap port.
        on_assigned: called after new node ports were assigned, so that they can be remembered.
        access: how the sidecar itself gets to the brokers.
        lends_identity: the sidecar logs in for its clients.
        context: TLS towards clients; None: they speak none.

    Attributes:
        unbound: why the port of a node could not be bound; `serve` may be called again for it.
        portless: nodes for which the range of ports has no room.
        tls: None where clients speak no TLS.
    """

    def __init__(
        self,
        driver: Driver,
        name: str,
        host: str,
        port: int,
        ports: NodePorts,
        on_assigned: Callable[[], None],
        *,
        access: Access,
        lends_identity: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.ports = ports
        self._driver = driver
        self._on_assigned = on_assigned
        self._servers: dict[NodeId | None, asyncio.Server] = {}
        self._sockets: dict[NodeId | None, socket.socket] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.unbound: dict[NodeId, str] = {}
        self.portless: set[NodeId] = set()
        self.lends_identity = lends_identity
        self._access = access
        self.tls = None if context is None else TlsServer(context, driver.counters, self._is_full)

    @property
    def identity(self) -> Identity | None:
        """Who its clients are to the brokers before they log in; None: nobody yet."""
        return OWN if self.lends_identity or self._access.login is None else None

    def open(self) -> None:
        """Binds the bootstrap port.

        Raises:
            PortTaken: somebody else has it.
        """
        self._bind(None, self.port)

    def serve(self, node_id: NodeId) -> None:
        """Binds the port of a node, if it has none yet. Logs a fault once, and notes it in `unbound` or `portless`."""
        if node_id in self._sockets or node_id in self.portless:
            return
        try:
            fresh = self.ports.assign([node_id])
        except PortsExhausted:
            self.portless.add(node_id)
            log.error("listener %s: no port is left for broker %d; widen its node_ports", self.name, node_id)
            return
        if fresh:
            self._on_assigned()
        port = self.ports.port(node_id)
        assert port is not None, "it was assigned above, or before"
        try:
            self._bind(node_id, port)
        except PortTaken as error:
            if self.unbound.get(node_id) != str(error):
                log.error("listener %s: broker %d cannot be served: %s", self.name, node_id, error)
            self.unbound[node_id] = str(error)
        else:
            self.unbound.pop(node_id, None)

    def close(self) -> None:
        """Accepts no more clients; those that are connected stay."""
        for task in self._tasks:
            task.cancel()
        if self.tls is not None:
            self.tls.close()
        for server in self._servers.values():
            server.close()
        for bound in self._sockets.values():
            bound.close()

    def _bind(self, node_id: NodeId | None, port: int) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((self.host, port))
            bound.listen(_BACKLOG)
        except OSError as error:
            bound.close()
            raise PortTaken(f"cannot listen on {HostPort(self.host, port)}: {error.strerror or error}") from error
        bound.setblocking(False)
        self._sockets[node_id] = bound
        task = asyncio.get_running_loop().create_task(self._accept(node_id, bound))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, node_id: NodeId | None, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        if self.tls is not None:
            await self.tls.serve(bound, lambda: Client(self._driver, self, node_id))
            return
        self._servers[node_id] = await loop.create_server(
            lambda: Client(self._driver, self, node_id), sock=bound, backlog=_BACKLOG
        )

    def _is_full(self, pending: int) -> bool:
        return self._driver.counters.client_connections + pending >= self._driver.limits.connections
