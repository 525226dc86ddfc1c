"""Composes the nodes of a cluster that run in this process, from a configuration or in code, runs them, and ends them.

    async with Backend(embedded()) as cluster:
        cluster.broker(3).replay_delay_ms = 500
        ... point clients at cluster.bootstrap_servers ...

    ReplicaHost ─┬─ voter: Controller, and its listener if it has an address
                 └─ either: Broker, with the replica of the controller in the same node, or one of its own that observes

The only module of the backend that reads the configuration. Nodes of one process reach each other without sockets.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

import uvloop

from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.tokens import TokenSettings
from backend.net.admin import Admin, AdminTaken
from backend.net.apis import Identity
from backend.net.broker import Attachment, Broker, BrokerSettings
from backend.net.controller import Controller, TopicDefaults
from backend.net.controller_channel import ControllerChannel
from backend.net.controller_node import ControllerNode
from backend.net.listener import PortTaken
from backend.net.metrics import Metrics
from backend.net.peers import Network
from backend.net.replica_host import ReplicaHost
from backend.net.security import OPEN, Security
from backend.net.snapshots import Snapshots
from backend.raft.settings import QuorumSettings
from backend.raft.storage import ReplicaStorage
from backend.storage.errors import StorageError
from backend.storage.files import FileStorage
from backend.storage.memory import MemoryStorage
from config.backend import BackendConfig, BackendSecurity
from config.faults import ConfigError
from config.files import read_secret
from config.rules import is_tls
from config.tls import server_context
from config.users import read_users

log = logging.getLogger("tidegate.app")

DONE: Final = 0
FAILED: Final = 1
"""Exit code after a failure that this process cannot go on with, such as that of a disk."""
UNUSABLE: Final = 2
"""Exit code for a configuration that cannot be carried out."""
START_TIMEOUT_S: Final = 60
"""Kafka's `initial.broker.registration.timeout.ms`."""
EMBEDDED_CLUSTER_ID: Final = "tidegate-embedded"
LOOPBACK: Final = "127.0.0.1"


class StartError(Exception):
    """The cluster cannot start as configured; the text says what to change."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """A broker: where it listens (port 0: a free one), what clients are told, and how its knobs stand at first."""

    node_id: int
    host: str = LOOPBACK
    port: int = 0
    advertised_host: str = LOOPBACK
    replay_delay_ms: int = 0
    publish_delay_ms: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A whole cluster.

    Attributes:
        controllers: where each controller listens, by id; port 0 for one that only nodes of its own process reach.
        brokers: all brokers; in `local` stands which of them, and of the controllers, run in this process.
        local: node ids, None for all.
        data_dir: the folder that has one folder for each node; None keeps everything in memory.
        election_timeout_ms, fetch_timeout_ms: see `QuorumSettings`.
        linearizable: whether reads without a token show all that was committed before they came.
        noop_interval_ms: time between two NoOp records, 0 for none.
        state_wait_ms: how long a broker waits for the token of a request, 0 for not at all.
        admin: where metrics and health are served; None for nowhere.
        security: what clients must speak and show, and what they may do.
    """

    cluster_id: str
    controllers: Mapping[int, tuple[str, int]]
    brokers: tuple[BrokerNode, ...]
    local: frozenset[int] | None = None
    data_dir: Path | None = None
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    linearizable: bool = False
    noop_interval_ms: int = 500
    state_wait_ms: int = 3000
    defaults: TopicDefaults = field(default_factory=TopicDefaults)
    admin: tuple[str, int] | None = None
    security: Security = OPEN

    def runs(self, node_id: int) -> bool:
        """Whether this process runs that node."""
        return self.local is None or node_id in self.local


def embedded(
    *,
    controllers: int = 3,
    brokers: int = 3,
    cluster_id: str = EMBEDDED_CLUSTER_ID,
    noop_interval_ms: int = 500,
    state_wait_ms: int = 3000,
    security: Security | None = None,
) -> ClusterSettings:
    """Brokers 1 to `brokers` on free loopback ports, and controllers with ids from 3001 on."""
    return ClusterSettings(
        cluster_id=cluster_id,
        controllers={3001 + index: (LOOPBACK, 0) for index in range(controllers)},
        brokers=tuple(BrokerNode(node_id=1 + index) for index in range(brokers)),
        noop_interval_ms=noop_interval_ms,
        state_wait_ms=state_wait_ms,
        security=security or OPEN,
    )


def security_of(config: BackendSecurity) -> Security:
    """How the ports for clients are secured; reads the files that the configuration names.

    Raises:
        ConfigError: A file cannot be used.
    """
    authorizer = None
    if config.authorizer == "standard":
        authorizer = AuthorizerSettings(
            super_users=frozenset(config.super_users),
            allow_everyone_if_no_acl_found=config.allow_everyone_if_no_acl_found,
        )
    secret_file = config.delegation_token_secret_file
    return Security(
        protocol=config.protocol,
        tls=server_context(config.ssl, config.client_auth) if is_tls(config.protocol) else None,
        passwords={} if config.users_file is None else read_users(config.users_file),
        session_lifetime_ms=config.session_lifetime_ms,
        tokens=None if secret_file is None else TokenSettings(secret=read_secret(secret_file)),
        authorizer=authorizer,
    )


def settings_of(config: BackendConfig) -> ClusterSettings:
    """The cluster that a configuration describes.

    Raises:
        ConfigError: A file that it names cannot be used.
    """
    return ClusterSettings(
        cluster_id=config.cluster_id,
        controllers={
            node.id: (node.controller_listen.host, node.controller_listen.port)
            for node in config.nodes
            if node.controller_listen is not None
        },
        brokers=tuple(
            BrokerNode(
                node_id=node.id,
                host=node.listen.host,
                port=node.listen.port,
                advertised_host=node.advertised_host or node.listen.host,
                replay_delay_ms=node.replay_delay_ms,
                publish_delay_ms=node.publish_delay_ms,
            )
            for node in config.nodes
            if node.listen is not None
        ),
        local=None if config.local is None else frozenset(config.local),
        data_dir=None if config.data_dir is None else Path(config.data_dir),
        election_timeout_ms=config.quorum.election_timeout_ms,
        fetch_timeout_ms=config.quorum.fetch_timeout_ms,
        linearizable=config.read_consistency == "linearizable",
        noop_interval_ms=config.noop_interval_ms,
        state_wait_ms=config.state_wait_ms,
        defaults=TopicDefaults(
            num_partitions=config.defaults.num_partitions, replication_factor=config.defaults.replication_factor
        ),
        admin=None if config.admin.bind is None else (config.admin.bind.host, config.admin.bind.port),
        security=security_of(config.security),
    )


@final
class Backend:
    """The nodes of one process. Made and used inside one event loop; `start` it once, `stop` it in the end.

    Attributes:
        network: what connects its nodes; can be cut.
        failed: set when something has ended that should not.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self.network = Network(settings.cluster_id, settings.controllers)
        self.failed = asyncio.Event()
        self._hosts: dict[int, ReplicaHost] = {}
        self._controllers = {
            node_id: self._controller(node_id, host, port)
            for node_id, (host, port) in sorted(settings.controllers.items())
            if settings.runs(node_id)
        }
        self._brokers = {node.node_id: self._broker(node) for node in settings.brokers if settings.runs(node.node_id)}
        self._faults: list[str] = []
        self._admin = None if settings.admin is None else Admin(*settings.admin, Metrics(self).text, self.reasons)

    @property
    def controller(self) -> Controller:
        """The active controller.

        Raises:
            LookupError: None of this process is active.
        """
        for node in self._controllers.values():
            if node.is_active:
                return node.controller
        raise LookupError("no controller of this process is active")

    @property
    def controllers(self) -> Mapping[int, ControllerNode]:
        """The controllers of this process, by id."""
        return self._controllers

    def broker(self, node_id: int) -> Broker:
        """The broker with that id, and its knobs.

        Raises:
            KeyError: There is none.
        """
        return self._brokers[node_id]

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """The brokers of this process, running or not, by id."""
        return self._brokers

    @property
    def bootstrap_servers(self) -> str:
        """What clients take as `bootstrap.servers`, once the nodes have started; all brokers if none runs here."""
        places = [broker.address for broker in self._brokers.values()]
        return ",".join(
            f"{host}:{port}" for host, port in places or [(b.advertised_host, b.port) for b in self.settings.brokers]
        )

    @property
    def head_offset(self) -> int:
        """The offset of the last record that any node of this process knows to be committed; -1 for none."""
        running = [host.driver.high_watermark for host in self._hosts.values() if host.is_running]
        return max([0, *running]) - 1

    def reasons(self) -> list[str]:
        """Why the nodes of this process are not ready; empty when they are."""
        absent = [f"broker {node_id} does not serve" for node_id, b in self._brokers.items() if not b.is_serving]
        return absent + self._faults

    async def start(self) -> None:
        """Start all nodes; returns when each broker serves and has all that was committed then.

        The delays of the settings begin then: a cluster does not wait for its own lag.

        Raises:
            StartError: A port cannot be had, or a directory not be used; nothing is left running.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except (PortTaken, AdminTaken) as error:
            await self.stop()
            raise StartError(f"{error}; free the port or change it in the configuration") from error
        except StorageError as error:
            await self.stop()
            raise StartError(str(error)) from error
        except TimeoutError as error:
            reasons = "; ".join(self.reasons())
            await self.stop()
            raise StartError(f"not ready after {START_TIMEOUT_S} s: {reasons}; the log says more") from error
        for node in self.settings.brokers:
            if not self.settings.runs(node.node_id):
                continue
            broker = self._brokers[node.node_id]
            broker.replay_delay_ms = node.replay_delay_ms
            broker.publish_delay_ms = node.publish_delay_ms

    async def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped, on the port that it had.

        Raises:
            PortTaken: Somebody else has it now.
        """
        await self._brokers[node_id].start(self._failed)

    async def stop(self) -> None:
        """End everything; requests that are under way are answered first."""
        # Who stops for good tells those who stay, if there are any.
        others_stay = not all(self.settings.runs(node_id) for node_id in self.settings.controllers)
        await asyncio.gather(*(broker.stop(leave=others_stay) for broker in self._brokers.values()))
        await asyncio.gather(*(node.stop(resign=others_stay) for node in self._controllers.values()))
        await asyncio.gather(*(host.stop() for host in self._hosts.values()))
        if self._admin is not None:
            await self._admin.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _start(self) -> None:
        for broker in self._brokers.values():
            broker.open()
        for node in self._controllers.values():
            node.open()
        if self._admin is not None:
            await self._admin.start()
        await asyncio.gather(*(node.start(self._failed) for node in self._controllers.values()))
        await asyncio.gather(*(self.start_broker(node_id) for node_id in self._brokers))
        head = self.head_offset
        await asyncio.gather(*(broker.publication.reach(head) for broker in self._brokers.values()))

    def _host(self, node_id: int) -> ReplicaHost:
        """The replica of a node: a voter's if it is a controller, else one that observes."""
        settings = self.settings
        voters = tuple(sorted(settings.controllers))
        host = self._hosts[node_id] = ReplicaHost(
            QuorumSettings(
                node_id=node_id,
                voters=voters,
                election_timeout_ms=settings.election_timeout_ms,
                fetch_timeout_ms=settings.fetch_timeout_ms,
            ),
            self.network,
            self._storage(node_id, voters),
            blocks=settings.data_dir is not None,
            # One voter need not wait for a leader that may be there: it asks before it disturbs anybody (KIP-996).
            hasty=node_id == voters[0],
        )
        return host

    def _storage(self, node_id: int, voters: tuple[int, ...]) -> Callable[[], ReplicaStorage]:
        settings = self.settings
        if settings.data_dir is None:
            return lambda: MemoryStorage(voters=voters)
        directory = settings.data_dir / f"node-{node_id}"
        return lambda: FileStorage(directory, cluster_id=settings.cluster_id, node_id=node_id, voters=voters)

    def _controller(self, node_id: int, host: str, port: int) -> ControllerNode:
        return ControllerNode(
            self._identity(node_id),
            self._host(node_id),
            self.network,
            self.settings.defaults,
            address=(host, port) if port else None,
            security=self.settings.security,
            noop_interval_ms=self.settings.noop_interval_ms,
        )

    def _broker(self, node: BrokerNode) -> Broker:
        node_id = node.node_id
        settings = BrokerSettings(
            identity=self._identity(node_id),
            host=node.host,
            port=node.port,
            advertised_host=node.advertised_host,
            state_wait_ms=self.settings.state_wait_ms,
            linearizable=self.settings.linearizable,
            security=self.settings.security,
        )
        if node_id in self._controllers:
            return Broker(settings, self._controllers[node_id].attach)
        host = self._host(node_id)

        async def observe() -> Attachment:
            metadata_log = await host.start(self._failed)
            return Attachment(
                log=metadata_log,
                controller=ControllerChannel(metadata_log, host.peers),
                snapshots=Snapshots(metadata_log),
            )

        return Broker(settings, observe)

    def _identity(self, node_id: int) -> Identity:
        is_broker = any(node.node_id == node_id for node in self.settings.brokers)
        roles = ["broker"] * is_broker + ["controller"] * (node_id in self.settings.controllers)
        return Identity(
            node_id=node_id,
            cluster_id=self.settings.cluster_id,
            listener_name=self.settings.security.protocol,
            controllers=self.settings.controllers,
            static_configs={
                **self.settings.defaults.static_configs,
                "node.id": str(node_id),
                "process.roles": ",".join(roles),
            },
        )

    def _failed(self, what: str, error: BaseException) -> None:
        self._faults.append(f"{what} has failed")
        log.error("unexpected, please report: %s: %r", what, error, exc_info=error)
        self.failed.set()


async def serve(config: BackendConfig, say: Callable[[str], None]) -> int:
    """Run this process's nodes until SIGTERM or SIGINT, or until one of them cannot go on.

    Returns:
        The exit code: `DONE` or `FAILED`.

    Raises:
        StartError: A port of the configuration cannot be had, or a directory not be used.
        ConfigError: A file that it names cannot be used.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for signum in signals:
        loop.add_signal_handler(signum, stopping.set)
    loop.set_exception_handler(_unexpected)
    backend = Backend(settings_of(config))
    try:
        await backend.start()
        say(ready_line(backend))
        await _first_of(stopping, backend.failed)
        return FAILED if backend.failed.is_set() else DONE
    finally:
        await backend.stop()
        for signum in signals:
            loop.remove_signal_handler(signum)


def ready_line(backend: Backend) -> str:
    """What is said once the nodes serve."""
    brokers = {node_id: broker.address for node_id, broker in backend.brokers.items()}
    controllers = {node_id: backend.settings.controllers[node_id] for node_id in backend.controllers}
    said = [f"bootstrap {backend.bootstrap_servers}"]
    said += [
        f"{role} {' '.join(f'{node_id}={host}:{port}' for node_id, (host, port) in places.items())}"
        for role, places in (("brokers", brokers), ("controllers", controllers))
        if places
    ]
    if backend.settings.admin is not None:
        said.append("admin {}:{}".format(*backend.settings.admin))
    return f"tidegate backend ready: {', '.join(said)}"


def run(config: BackendConfig) -> int:
    """Run this process's nodes until SIGTERM or SIGINT.

    Returns:
        The exit code: 0 after an orderly end, 1 when a node cannot go on, 2 when a port, a file or a directory of the
        configuration cannot be used.
    """
    try:
        return uvloop.run(serve(config, _say))
    except (StartError, ConfigError) as error:
        _say(f"tidegate: {error}")
        return UNUSABLE


async def _first_of(*events: asyncio.Event) -> None:
    """Returns once one of the events is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waiting:
            wait.cancel()


def _unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.error("unexpected, please report: %s", context.get("message"), exc_info=context.get("exception"))


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
