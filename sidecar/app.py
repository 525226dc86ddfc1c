"""Composes the sidecar from its configuration, runs it, and ends it.

The only module of the sidecar that reads the configuration as a whole, and the only one that catches `Exception`.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import uvloop

from codec.api_keys import ApiKey
from config.faults import ConfigError
from config.masking import masked
from config.sidecar import Listener as ListenerConfig
from config.sidecar import SidecarConfig
from sidecar import logs, memory
from sidecar.core.addresses import NodePorts
from sidecar.core.cluster import HeadSource
from sidecar.core.events import Tick
from sidecar.core.gate import GateSettings, OnTimeout
from sidecar.core.ids import NodeId
from sidecar.core.levels import Depth, Level, Override, Policy
from sidecar.core.probing import Pace
from sidecar.core.sessions import Scope
from sidecar.core.sidecar import Sidecar
from sidecar.net import drain, reports, state
from sidecar.net.access import Access
from sidecar.net.admin import Admin, AdminTaken, Sources
from sidecar.net.discovery import Discovery
from sidecar.net.driver import Driver, DriverSettings
from sidecar.net.links import Links
from sidecar.net.listener import Listener, PortTaken
from sidecar.net.metrics import Metrics, SidecarCollector
from sidecar.reloading import LOOKS_EVERY_S, Reloader, Secured, admin_token, listener_tls

log = logging.getLogger("tidegate.app")

LOOK_S: Final = 0.25
"""How often is looked whether the sidecar is ready."""
RETRY_S: Final = 1.0
"""How long after an unexpected exception that which it ended goes on."""
EXCEPTIONS_MAX: Final = 1000
"""How many different unexpected exceptions are told apart."""
DONE: Final = 0
UNUSABLE: Final = 2
"""Exit code for a configuration that cannot be carried out."""


class StartError(Exception):
    """The sidecar cannot start as configured; the text says what to change."""


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
    """One running sidecar. To be made inside the event loop, and `run` once.

    Args:
        say: takes the ready line.
        source: the file of the configuration, to be read again when it changes.

    Raises:
        config.faults.ConfigError: a file that the configuration names cannot be used.
    """

    def __init__(self, config: SidecarConfig, say: Callable[[str], None], source: Path | None = None) -> None:
        self.config = config
        self.draining = False
        self._say = say
        self._said: reports.Readiness | None = None
        self._promised = "full"
        self._stop, self._hurry = asyncio.Event(), asyncio.Event()
        self._unexpected_seen: set[tuple[str, str]] = set()
        self._state = _StateFile(config.state_file)
        self._access = Access(config.cluster.security)
        driver = self.driver = Driver(
            core_of(config),
            DriverSettings(
                limits=config.limits,
                scope=Scope(config.consistency.scope),
                connect_timeout_ms=config.cluster.probe.timeout_ms,
                expose_state=config.consistency.expose_state,
            ),
        )
        driver.links = Links(driver, self._access)
        self._listeners = [self._listener(listener) for listener in config.listeners]
        driver.listeners = list(self._listeners)
        self._ports = {listener.name: listener.ports for listener in self._listeners}
        self._state.ports = self._ports
        bootstrap = [(server.host, server.port) for server in config.cluster.bootstrap_servers]
        driver.discovery = self.discovery = Discovery(driver, bootstrap, self._access)
        self._admin = Admin(config.admin.bind, self._sources(), admin_token(config))
        self._reloader = Reloader(self, source)

    def stop(self) -> None:
        """Ends `run`: the first call lets clients leave and answers arrive, the second ends at once."""
        if self._stop.is_set():
            self._hurry.set()
        self.draining = True
        self._stop.set()

    def reload(self) -> None:
        """Takes over what has changed in the configuration and in its files, as far as it can; logs what."""
        self._reloader.reload("SIGHUP")

    def obey(self, config: SidecarConfig, secured: Secured) -> None:
        """Obeys another configuration, which differs in live keys only."""
        former, self.config = self.config, config
        limits = config.limits
        self.driver.limits = limits
        self.driver.core.obey(
            gate_settings(config), sessions_max=limits.sessions, session_idle_ms=limits.session_idle_ms
        )
        self._access.take(secured.access)
        self.discovery.bootstrap = [(server.host, server.port) for server in config.cluster.bootstrap_servers]
        for listener, context in zip(self._listeners, secured.contexts, strict=True):
            if listener.tls is not None and context is not None:
                listener.tls.context = context
        self._admin.token = secured.admin_token
        if config.logging != former.logging:
            logs.configure(config.logging.level, config.logging.format, sys.stderr)

    async def run(self) -> None:
        """Serves until `stop`. It waits for a cluster that cannot be reached, however long that takes.

        Raises:
            StartError: a port of the configuration cannot be had.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unexpected)
        tasks: list[asyncio.Task[Any]] = []
        try:
            self._open_listeners()
            await self._open_admin()
            tasks.append(loop.create_task(self._keep_describing()))
            tasks.append(loop.create_task(self._keep_looking()))
            watching = loop.create_task(self._watch())
            stopping = loop.create_task(self._stop.wait())
            tasks += [watching, stopping]
            await asyncio.wait((watching, stopping), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
            await drain.wait_for_clients(self.driver, self.config.limits.drain_timeout_ms, self._hurry)
        finally:
            await self._close(tasks)

    def readiness(self) -> reports.Readiness:
        """What `/readyz` says."""
        listeners = self._listeners
        return reports.readiness(
            self.driver.core.cluster,
            fault=None if self.discovery.described.is_set() else self.discovery.fault,
            unbound=[f"broker {n} on listener {x.name}: {why}" for x in listeners for n, why in x.unbound.items()],
            portless=[f"broker {n} has no port on listener {x.name}" for x in listeners for n in sorted(x.portless)],
            draining=self.draining,
        )

    # Start

    def _listener(self, listener: ListenerConfig) -> Listener:
        ports = NodePorts(
            listener.node_ports.first,
            listener.node_ports.last,
            advertised_host=listener.advertised_host,
            advertised_first=listener.advertised_node_ports.first if listener.advertised_node_ports else None,
            remembered=self._state.remembered.get(listener.name),
        )
        bind = listener.bind
        return Listener(
            self.driver,
            listener.name,
            bind.host,
            bind.port,
            ports,
            self._state.changed,
            access=self._access,
            lends_identity=listener.identity == "sidecar",
            context=listener_tls(listener),
        )

    def _sources(self) -> Sources:
        driver, core = self.driver, self.driver.core
        collector = SidecarCollector(
            core,
            driver.counters,
            now_ms=driver.now_ms,
            portless=lambda: len({node_id for listener in self._listeners for node_id in listener.portless}),
        )
        return Sources(
            metrics=Metrics(collector).text,
            readiness=self.readiness,
            documents={
                "/brokers": lambda: reports.broker_rows(core, self._ports, driver.now_ms()),
                "/head": lambda: reports.head_row(core.cluster, driver.now_ms()),
                "/sessions": lambda: reports.session_rows(core, driver.now_ms()),
                "/held": lambda: reports.held_rows(core, driver.now_ms()),
                "/config": lambda: masked(self.config),
            },
        )

    def _open_listeners(self) -> None:
        for index, listener in enumerate(self._listeners):
            try:
                listener.open()
            except PortTaken as error:
                raise StartError(f"{error}; change listeners[{index}].bind (--listen)") from error

    async def _open_admin(self) -> None:
        try:
            await self._admin.start()
        except AdminTaken as error:
            raise StartError(f"{error}; change admin.bind (--admin)") from error
        if self._admin.token is None and not self.config.admin.bind.is_loopback:
            log.warning(
                "whoever reaches admin.bind (%s) sees what the sidecar knows; set admin.token_file, or bind loopback",
                self.config.admin.bind,
            )

    def _check_node_ports(self) -> None:
        for index, listener in enumerate(self._listeners):
            for node_id, reason in sorted(listener.unbound.items()):
                raise StartError(
                    f"{reason}, which is the port of broker {node_id}; "
                    f"free it or change listeners[{index}].node_ports (--node-ports)"
                )

    # While it runs

    async def _keep_describing(self) -> None:
        while True:
            try:
                await self.discovery.run()
            except Exception as error:  # noqa: BLE001 - whatever happens, the sidecar goes on
                self._note_unexpected("discovery", error)
                await asyncio.sleep(RETRY_S)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            try:
                self._reloader.look()
            except Exception as error:  # noqa: BLE001 - whatever happens, the sidecar goes on
                self._note_unexpected("reload", error)

    async def _watch(self) -> None:
        """Says when the sidecar is ready, when it no longer is, and when it can promise less or more than before."""
        await self.discovery.described.wait()
        self._check_node_ports()
        while True:
            for listener in self._listeners:
                for node_id in list(listener.unbound):
                    listener.serve(node_id)
            self._tell(self.readiness())
            await asyncio.sleep(LOOK_S)

    def _tell(self, now: reports.Readiness) -> None:
        before = self._said
        if before is None:
            if not now.ready:
                return
            self._say(self._ready_line())
        elif before.ready and not now.ready:
            log.warning("not ready: %s", "; ".join(now.reasons))
        elif now.ready and not before.ready:
            log.info("ready again")
        if now.ready and now.guarantee != self._promised:
            self._promised = now.guarantee
            level = logging.INFO if now.guarantee == "full" else logging.WARNING
            reasons = f": {'; '.join(now.reasons)}" if now.reasons else ""
            log.log(level, "the guarantee is %s now%s", now.guarantee, reasons)
        self._said = now

    def _ready_line(self) -> str:
        known = self.driver.core.cluster.addresses
        places = []
        for listener in self.config.listeners:
            assigned: Mapping[NodeId, int] = self._ports[listener.name].assigned
            places.append((listener.bind, {node_id: port for node_id, port in assigned.items() if node_id in known}))
        return reports.ready_line(places, self.config.admin.bind)

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._note_unexpected(context.get("message", "event loop"), error)
        # Whatever the exception cut short, the timer of the core goes on.
        loop.call_later(RETRY_S, self.driver.handle, Tick())

    def _note_unexpected(self, where: str, error: BaseException | None) -> None:
        """Counts an exception; logs its traceback the first time that it comes from that place."""
        self.driver.counters.internal_errors += 1
        frame = error.__traceback__ if error is not None else None
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        place = where if frame is None else f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
        known = (type(error).__name__, place)
        if known in self._unexpected_seen or len(self._unexpected_seen) >= EXCEPTIONS_MAX:
            return
        self._unexpected_seen.add(known)
        log.error("unexpected, please report: %s: %r", where, error, exc_info=error)

    # End

    async def _close(self, tasks: list[asyncio.Task[Any]]) -> None:
        driver = self.driver
        for listener in self._listeners:
            listener.close()
        await drain.finish(driver, self._hurry)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        driver.close()
        driver.links.close()
        await drain.wait_for_connections(driver)
        await self._admin.close()
        self._state.flush()


class _StateFile:
    """`state_file`: read when made, written soon after `changed`. Faults are logged, the sidecar goes on without.

    Attributes:
        remembered: node ports of an earlier run, by listener.
        ports: those to be remembered.
    """

    def __init__(self, path: Path | None) -> None:
        self.remembered: state.Assignments = {}
        self.ports: Mapping[str, NodePorts] = {}
        self._path = path
        self._put_aside = False
        self._writing: asyncio.Handle | None = None
        if path is None:
            return
        try:
            self.remembered = state.read(path)
        except state.StateUnreadable as error:
            self._put_aside = True
            log.warning(
                "state_file %s cannot be used: %s; brokers get their ports anew, and the file is kept as %s%s",
                path,
                error,
                path.name,
                state.ASIDE,
            )

    def changed(self) -> None:
        """Writes the file once the present event has been dealt with: it may assign many ports."""
        if self._path is not None and self._writing is None:
            self._writing = asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Writes what `changed` announced."""
        if self._path is None or self._writing is None:
            return
        self._writing.cancel()
        self._writing = None
        # A listener that the configuration no longer names may come back.
        assigned = {name: ports.assigned for name, ports in self.ports.items()}
        try:
            state.write(self._path, {**self.remembered, **assigned}, put_aside=self._put_aside)
        except OSError as error:
            log.warning(
                "state_file %s cannot be written: %s; brokers may get other ports after a restart",
                self._path,
                error.strerror or error,
            )
        else:
            self._put_aside = False


async def serve(config: SidecarConfig, say: Callable[[str], None], source: Path | None = None) -> None:
    """Runs a sidecar until SIGTERM or SIGINT; SIGHUP makes it read its configuration again.

    Raises:
        StartError: a port of the configuration cannot be had.
        config.faults.ConfigError: a file that the configuration names cannot be used.
    """
    app = App(config, say, source)
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for signum in signals:
        loop.add_signal_handler(signum, app.reload if signum == signal.SIGHUP else app.stop)
    try:
        await app.run()
    finally:
        for signum in signals:
            loop.remove_signal_handler(signum)


def run(config: SidecarConfig, source: Path | None = None) -> int:
    """Runs a sidecar in this process until SIGTERM or SIGINT; logs to standard error.

    Args:
        source: the file of the configuration, to be read again on SIGHUP and when it changes.

    Returns:
        The exit code: 0 after draining, 2 when a port or a file of the configuration cannot be had.
    """
    logs.configure(config.logging.level, config.logging.format, sys.stderr)
    memory.keep_freed()
    try:
        uvloop.run(serve(config, _say_ready, source))
    except (StartError, ConfigError) as error:
        _say(f"tidegate: {error}")
        return UNUSABLE
    return DONE


def _say_ready(line: str) -> None:
    memory.settle()
    _say(line)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
