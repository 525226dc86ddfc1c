"""Composes the sidecar from its configuration, runs it, and ends it.

The only module of the sidecar that reads the configuration as a whole, and the only one that catches `Exception`.
"""

import asyncio
import logging
import signal
import sys

import uvloop

from codec.api_keys import ApiKey
from config.files import read_secret
from config.sidecar import ClusterSecurity, SidecarConfig
from sidecar.core.addresses import NodePorts
from sidecar.core.cluster import HeadSource
from sidecar.core.gate import GateSettings, OnTimeout
from sidecar.core.levels import Depth, Level, Override, Policy
from sidecar.core.probing import Pace
from sidecar.core.sessions import Scope
from sidecar.core.sidecar import Sidecar
from sidecar.net.discovery import Discovery
from sidecar.net.driver import Driver, DriverSettings
from sidecar.net.links import Links
from sidecar.net.listener import Listener
from sidecar.net.sasl import Credentials

log = logging.getLogger("tidegate.app")


def credentials_of(security: ClusterSecurity) -> Credentials | None:
    """The sidecar's own identity; None where the cluster asks for none.

    Raises:
        config.faults.ConfigError: the password file cannot be read.
    """
    if not security.protocol.startswith("SASL_"):
        return None
    sasl = security.sasl
    assert sasl.mechanism and sasl.username and sasl.password_file, "the configuration demands all three"
    return Credentials(mechanism=sasl.mechanism, username=sasl.username, password=read_secret(sasl.password_file))


def gate_settings(config: SidecarConfig) -> GateSettings:
    """What the gate obeys."""
    consistency = config.consistency
    apis = {
        int(ApiKey[name.upper()]): Override(
            level=Level(override.level) if override.level else None,
            depth=Depth(override.depth) if override.depth else None,
        )
        for name, override in consistency.apis.items()
    }
    return GateSettings(
        policy=Policy(level=Level(consistency.level), depth=Depth(consistency.depth), apis=apis),
        wait_timeout_ms=consistency.wait_timeout_ms,
        effective_grace_ms=consistency.effective_grace_ms,
        on_timeout=OnTimeout(consistency.on_timeout),
        held_requests_max=config.limits.held_requests,
        held_bytes_max=config.limits.held_bytes,
        # With SASL a client's identity stays on its own connection: ours would show it another principal's view.
        roams=not config.cluster.security.protocol.startswith("SASL_"),
    )


def core_of(config: SidecarConfig) -> Sidecar:
    """The decisions, as configured."""
    probe = config.cluster.probe
    return Sidecar(
        gate_settings(config),
        source=HeadSource(config.cluster.head_source),
        pace=Pace(
            idle_interval_ms=probe.idle_interval_ms,
            min_interval_ms=probe.min_interval_ms,
            timeout_ms=probe.timeout_ms,
        ),
        sessions_max=config.limits.sessions,
        session_idle_ms=config.limits.session_idle_ms,
    )


class App:
    """One running sidecar. To be made inside the event loop."""

    def __init__(self, config: SidecarConfig) -> None:
        self.config = config
        credentials = credentials_of(config.cluster.security)
        self.driver = Driver(
            core_of(config),
            DriverSettings(
                limits=config.limits,
                scope=Scope(config.consistency.scope),
                connect_timeout_ms=config.cluster.probe.timeout_ms,
            ),
        )
        self.driver.links = Links(self.driver, credentials)
        self.driver.listeners = [
            Listener(
                self.driver,
                listener.name,
                listener.bind.host,
                listener.bind.port,
                NodePorts(
                    listener.node_ports.first,
                    listener.node_ports.last,
                    advertised_host=listener.advertised_host,
                    advertised_first=listener.advertised_node_ports.first if listener.advertised_node_ports else None,
                ),
                lambda: None,
            )
            for listener in config.listeners
        ]
        bootstrap = [(server.host, server.port) for server in config.cluster.bootstrap_servers]
        self.discovery = Discovery(self.driver, bootstrap, credentials)


async def serve(config: SidecarConfig) -> None:
    """Runs until SIGTERM or SIGINT."""
    app = App(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    for listener in app.driver.listeners:
        listener.open()
    discovery = loop.create_task(app.discovery.run())
    await app.discovery.described.wait()
    print("ready", file=sys.stderr, flush=True)
    await stop.wait()
    discovery.cancel()
    app.driver.close()
    app.driver.links.close()
    for listener in app.driver.listeners:
        listener.close()


def run(config: SidecarConfig) -> None:
    uvloop.run(serve(config))
