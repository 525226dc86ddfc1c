"""Composes a cluster of controllers and brokers in one process, from a configuration or in code, runs it, and ends it.

    async with Backend(embedded()) as cluster:
        cluster.broker(3).replay_delay_ms = 500
        ... point clients at cluster.bootstrap_servers ...

The only module of the backend that reads the configuration. The quorum has a single leader, the controller with the
lowest id; brokers know it by `backend.raft.interfaces` and `ActiveController` only.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, final

import uvloop

from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.image import Image
from backend.metadata.records import Record
from backend.metadata.tokens import TokenSettings
from backend.net.admin import Admin, AdminTaken
from backend.net.apis import Identity
from backend.net.broker import Broker, BrokerSettings
from backend.net.controller import Controller, TopicDefaults
from backend.net.listener import PortTaken
from backend.net.metrics import Metrics
from backend.net.offers import FEATURES
from backend.net.quorum import LocalQuorum
from backend.net.security import OPEN, Security
from config.backend import BackendConfig, BackendSecurity
from config.faults import ConfigError
from config.files import read_secret
from config.rules import is_tls
from config.tls import server_context
from config.users import read_users

log = logging.getLogger("tidegate.app")

DONE: Final = 0
UNUSABLE: Final = 2
"""Exit code for a configuration that cannot be carried out."""
START_TIMEOUT_S: Final = 30
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
        controllers: where each controller is said to listen, by id; nothing listens there while the quorum lives in one
            process.
        noop_interval_ms: time between two NoOp records, 0 for none.
        state_wait_ms: how long a broker waits for the token of a request, 0 for not at all.
        admin: where metrics and health are served; None for nowhere.
        security: what clients must speak and show, and what they may do.
    """

    cluster_id: str
    controllers: Mapping[int, tuple[str, int]]
    brokers: tuple[BrokerNode, ...]
    noop_interval_ms: int = 500
    state_wait_ms: int = 3000
    defaults: TopicDefaults = field(default_factory=TopicDefaults)
    admin: tuple[str, int] | None = None
    security: Security = OPEN


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
    """A running cluster. Made and used inside one event loop; `start` it once, `stop` it in the end.

    Attributes:
        controller: the active controller.
        quorum: the metadata log.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        voters = sorted(settings.controllers)
        self.quorum: LocalQuorum[Record, Image] = LocalQuorum(voters[0], voters)
        self.controller = Controller(
            self.quorum,
            settings.cluster_id,
            settings.defaults,
            noop_interval_ms=settings.noop_interval_ms,
            security=settings.security,
        )
        self._brokers = {node.node_id: self._broker(node) for node in settings.brokers}
        self._faults: list[str] = []
        self._controlling: asyncio.Task[None] | None = None
        self._admin = None if settings.admin is None else Admin(*settings.admin, Metrics(self).text, self.reasons)

    def broker(self, node_id: int) -> Broker:
        """The broker with that id, and its knobs.

        Raises:
            KeyError: There is none.
        """
        return self._brokers[node_id]

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """All brokers, running or not, by id."""
        return self._brokers

    @property
    def bootstrap_servers(self) -> str:
        """What clients take as `bootstrap.servers`, once the cluster has started."""
        return ",".join(f"{host}:{port}" for host, port in (broker.address for broker in self._brokers.values()))

    @property
    def head_offset(self) -> int:
        """The offset of the last committed record."""
        return self.quorum.high_watermark - 1

    def reasons(self) -> list[str]:
        """Why the cluster is not ready; empty when it is."""
        absent = [f"broker {node_id} does not serve" for node_id, b in self._brokers.items() if not b.is_serving]
        return absent + self._faults

    async def start(self) -> None:
        """Begin the log, start all brokers; returns when each serves and has seen all the others.

        The delays of the settings begin then: a cluster does not wait for its own lag.

        Raises:
            StartError: A port cannot be had; nothing is left running.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except (PortTaken, AdminTaken) as error:
            await self.stop()
            raise StartError(f"{error}; free the port or change it in the configuration") from error
        except TimeoutError as error:
            reasons = "; ".join(self.reasons())
            await self.stop()
            raise StartError(f"not ready after {START_TIMEOUT_S} s: {reasons}; the log says more") from error
        for node in self.settings.brokers:
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
        await asyncio.gather(*(broker.stop(leave=False) for broker in self._brokers.values()))
        if self._controlling is not None:
            self._controlling.cancel()
            await asyncio.gather(self._controlling, return_exceptions=True)
            self._controlling = None
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
        if self._admin is not None:
            await self._admin.start()
        await self.controller.open(FEATURES)
        self._controlling = asyncio.get_running_loop().create_task(self.controller.run())
        self._controlling.add_done_callback(self._controller_ended)
        await asyncio.gather(*(self.start_broker(node_id) for node_id in self._brokers))
        head = self.controller.image.highest_offset
        await asyncio.gather(*(broker.publication.reach(head) for broker in self._brokers.values()))

    def _broker(self, node: BrokerNode) -> Broker:
        identity = Identity(
            node_id=node.node_id,
            cluster_id=self.settings.cluster_id,
            listener_name=self.settings.security.protocol,
            controllers=self.settings.controllers,
            static_configs={
                **self.settings.defaults.static_configs,
                "node.id": str(node.node_id),
                "process.roles": "broker,controller" if node.node_id in self.settings.controllers else "broker",
            },
        )
        settings = BrokerSettings(
            identity=identity,
            host=node.host,
            port=node.port,
            advertised_host=node.advertised_host,
            state_wait_ms=self.settings.state_wait_ms,
            security=self.settings.security,
        )
        return Broker(settings, self.quorum.observer, self.controller)

    def _controller_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed("controller", error)

    def _failed(self, what: str, error: BaseException) -> None:
        self._faults.append(f"{what} has failed")
        log.error("unexpected, please report: %s: %r", what, error, exc_info=error)


async def serve(config: BackendConfig, say: Callable[[str], None]) -> None:
    """Run a cluster until SIGTERM or SIGINT.

    Raises:
        StartError: A port of the configuration cannot be had.
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
        await stopping.wait()
    finally:
        await backend.stop()
        for signum in signals:
            loop.remove_signal_handler(signum)


def ready_line(backend: Backend) -> str:
    """What is said once the cluster serves."""
    places = [f"{node_id}={host}:{port}" for node_id, (host, port) in _addresses(backend).items()]
    admin = "" if backend.settings.admin is None else ", admin {}:{}".format(*backend.settings.admin)
    return f"tidegate backend ready: bootstrap {backend.bootstrap_servers}, brokers {' '.join(places)}{admin}"


def run(config: BackendConfig) -> int:
    """Run a cluster in this process until SIGTERM or SIGINT.

    Returns:
        The exit code: 0 after an orderly end, 2 when a port or a file of the configuration cannot be used.
    """
    try:
        uvloop.run(serve(config, _say))
    except (StartError, ConfigError) as error:
        _say(f"tidegate: {error}")
        return UNUSABLE
    return DONE


def _addresses(backend: Backend) -> dict[int, tuple[str, int]]:
    return {node_id: broker.address for node_id, broker in backend.brokers.items()}


def _unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.error("unexpected, please report: %s", context.get("message"), exc_info=context.get("exception"))


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
