"""A real Kafka cluster on loopback: controllers and brokers, one process each, controllers behind a relay.

Every method blocks; an async test calls it through `asyncio.to_thread`. Everything that is started ends with the
cluster, with the interpreter, or, if that is killed, through the watchdog.
"""

import atexit
import functools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.support.address import Address
from tests.support.certificates import Authority
from tests.support.kafka import offsets
from tests.support.kafka.errors import KafkaHarnessError
from tests.support.kafka.java import TOOL_TIMEOUT_S, Java, end_group
from tests.support.kafka.ports import HOST, free_ports
from tests.support.kafka.properties import Layout, Value, node_properties, render
from tests.support.kafka.relay import TO_SOURCE, TO_TARGET, Link, Pair, Relay
from tests.support.kafka.template import format_node, random_id
from tests.support.kafka.watchdog import Watchdog
from tests.support.raw_client import RawClientError

FIRST_CONTROLLER_ID = 3001
READY_TIMEOUT_S = 90.0
POLL_INTERVAL_S = 0.05
LOG_LINES = 30

T = TypeVar("T")


class KafkaCluster:
    """Starts on construction and is ready when the constructor returns.

    Attributes:
        brokers: node id (1, 2, ...) to the address of its PLAINTEXT listener.
        sasl_brokers: the same for SASL_PLAINTEXT.
        tls_brokers: the same for SSL.
        sasl_tls_brokers: the same for SASL_SSL.
        authority: who has signed the brokers' certificate, and whose clients they trust.
        controllers: node id (3001, ...) to the address of its controller listener.
        lagging_broker: the id of the last broker, the one that `lag` and `pause_feed` slow down.
    """

    def __init__(
        self,
        *,
        version: str = "4.4.0",
        controllers: int = 3,
        brokers: int = 3,
        overrides: Mapping[str, Value] | None = None,
        node_overrides: Mapping[int, Mapping[str, Value]] | None = None,
    ) -> None:
        """Start a cluster.

        Args:
            version: Kafka's, for instance 4.4.0.
            controllers: how many.
            brokers: how many.
            overrides: properties for every node, over those of the harness.
            node_overrides: properties for one node, over everything else.

        Raises:
            KafkaHarnessError: if a node ends or does not become ready; the message has its last log lines.
        """
        self.version = version
        self.cluster_id = random_id()
        controller_ids = range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + controllers)
        broker_ids = range(1, brokers + 1)
        self.lagging_broker = broker_ids[-1]
        self._scratch = tempfile.TemporaryDirectory(prefix="tidegate-kafka-", ignore_cleanup_errors=True)
        self._folder = Path(self._scratch.name)
        self.authority = Authority(self._folder)
        ports = iter(free_ports(2 * controllers + 4 * brokers))

        def take(node_ids: Iterable[int]) -> dict[int, Address]:
            return {node_id: Address(HOST, next(ports)) for node_id in node_ids}

        self._layout = Layout(
            controllers=take(controller_ids),
            brokers=take(broker_ids),
            sasl_brokers=take(broker_ids),
            tls_brokers=take(broker_ids),
            sasl_tls_brokers=take(broker_ids),
            certificate=self.authority.sign("broker", names=["localhost"]).both_file,
            authority=self.authority.ca_file,
            relays=take(controller_ids),
        )
        self.brokers, self.sasl_brokers = self._layout.brokers, self._layout.sasl_brokers
        self.tls_brokers, self.sasl_tls_brokers = self._layout.tls_brokers, self._layout.sasl_tls_brokers
        self.controllers = self._layout.controllers
        self._overrides = dict(overrides or {})
        self._node_overrides = {node_id: dict(own) for node_id, own in (node_overrides or {}).items()}
        self._nodes: dict[int, subprocess.Popen[str]] = {}
        self._stopped: set[int] = set()
        self._watchdog = Watchdog()
        self._watchdog.remove(self._scratch.name)
        self._relay: Relay | None = None
        atexit.register(self.close)
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    def _start_all(self) -> None:
        self._java = Java(self.version, self._folder)
        links = [
            Link(controller_id=node_id, listen_port=self._layout.relays[node_id].port, target_port=address.port)
            for node_id, address in self.controllers.items()
        ]
        self._relay = Relay(links, self._folder / "relay.log")
        self._watchdog.watch(self._relay.pid)
        for node_id in self.node_ids:
            data_dir = self._folder / f"data-{node_id}"
            properties = node_properties(self._layout, node_id, data_dir)
            properties |= self._overrides | self._node_overrides.get(node_id, {})
            self._properties_file(node_id).write_text(render(properties))
            is_controller = node_id in self.controllers
            format_node(self._java, data_dir, cluster_id=self.cluster_id, node_id=node_id, is_controller=is_controller)
        for node_id in self.node_ids:
            self.start(node_id)
        self.wait_ready()

    @property
    def node_ids(self) -> list[int]:
        """Every node, controllers first."""
        return [*self.controllers, *self.brokers]

    @property
    def bootstrap(self) -> str:
        """`bootstrap.servers` for PLAINTEXT clients, who are super users."""
        return ",".join(map(str, self.brokers.values()))

    @property
    def sasl_bootstrap(self) -> str:
        """`bootstrap.servers` for SASL_PLAINTEXT clients: PLAIN as alice or bob, SCRAM for who has credentials."""
        return ",".join(map(str, self.sasl_brokers.values()))

    @property
    def tls_bootstrap(self) -> str:
        """`bootstrap.servers` for SSL clients: super users without a certificate, and as `CN=tidegate`."""
        return ",".join(map(str, self.tls_brokers.values()))

    @property
    def sasl_tls_bootstrap(self) -> str:
        """`bootstrap.servers` for SASL_SSL clients: PLAIN as alice or bob, or an unsigned OAUTHBEARER token."""
        return ",".join(map(str, self.sasl_tls_brokers.values()))

    # --- faults

    def lag(self, delay_ms: float, *, feed_only: bool = True) -> None:
        """Make everything on the last broker's metadata feed arrive `delay_ms` late; 0 ends it.

        With the default timeouts of Kafka up to about 1500 ms; above, the broker gives its fetches up. With
        `feed_only=False` the answers to its heartbeats and to the writes it forwards are late too.
        """
        self._delay(self.lagging_broker, delay_ms, feed_only=feed_only)

    def pause_feed(self) -> None:
        """Let no metadata reach the last broker until `lag` is called; it keeps heartbeating and serving clients."""
        self._delay(self.lagging_broker, None, feed_only=True)

    def cut(self, pairs: Iterable[Pair]) -> None:
        """Break the connections of these nodes to those controllers, and refuse new ones, until `heal`.

        Args:
            pairs: (node id, controller id); between two controllers either may connect, so name both ways.
        """
        self._running_relay.cut(pairs)

    def hold(self, pairs: Iterable[Pair], *, direction: str | None = None) -> None:
        """Let the same connections stay open and silent until `heal`: nobody learns at once that nobody listens.

        Args:
            pairs: (node id, controller id).
            direction: only `relay.TO_TARGET` or `relay.TO_SOURCE`; None for both.
        """
        pairs = list(pairs)
        for each in (TO_SOURCE, TO_TARGET) if direction is None else (direction,):
            self._running_relay.delay(pairs, None, direction=each, feed_only=False)

    def kill(self, node_id: int) -> None:
        """SIGKILL; returns when the process is gone."""
        end_group(self._nodes[node_id])
        self._forget(node_id)

    def shut_down(self, node_id: int, *, timeout_s: float = 60.0) -> None:
        """SIGTERM, so a broker hands its leaderships over first; returns when the process is gone."""
        process = self._nodes[node_id]
        process.terminate()
        process.wait(timeout_s)
        self._forget(node_id)

    def stop(self, node_id: int) -> None:
        """SIGSTOP: the node stands still, its connections stay open."""
        os.killpg(self._nodes[node_id].pid, signal.SIGSTOP)
        self._stopped.add(node_id)

    def resume(self, node_id: int) -> None:
        """SIGCONT after `stop`."""
        os.killpg(self._nodes[node_id].pid, signal.SIGCONT)
        self._stopped.discard(node_id)

    def start(self, node_id: int) -> None:
        """Start a node that does not run, with the data and ports it had; returns at once, see `wait_ready`."""
        assert node_id not in self._nodes, f"node {node_id} runs already"
        with self._log_file(node_id).open("a") as log:
            process = self._java.start(
                "kafka.Kafka", str(self._properties_file(node_id)), stdout=log, stderr=subprocess.STDOUT
            )
        self._nodes[node_id] = process
        self._watchdog.watch(process.pid)

    def heal(self) -> None:
        """Undo every fault: no delay, every node running, every broker caught up. Cheap when nothing is wrong."""
        self._running_relay.clear()
        for node_id in list(self._stopped):
            self.resume(node_id)
        for node_id in self.node_ids:
            if node_id in self._nodes and self._nodes[node_id].poll() is not None:
                self._forget(node_id)
            if node_id not in self._nodes:
                self.start(node_id)
        self.wait_ready()

    # --- what the cluster knows

    def active_controller(self) -> int:
        """The id of the active controller as the brokers know it now."""
        return self.head().leader_id

    def head(self) -> offsets.Head:
        """The last committed metadata record, from the first running broker that knows it."""
        found: list[offsets.Head] = []

        def any_broker_knows() -> bool:
            for broker_id in self._running_brokers():
                if answer := _or_none(offsets.head, self.brokers[broker_id]):
                    found.append(answer)
                    return True
            return False

        self.wait_until(any_broker_knows, "no broker knows the head of the metadata log", READY_TIMEOUT_S)
        return found[0]

    def image_offset(self, broker_id: int) -> int:
        """How far this broker has read the metadata log; raises as `ask_once`."""
        return offsets.image_offset(self.brokers[broker_id])

    def wait_caught_up(self, *, effective: bool = False, timeout_s: float = 30.0) -> None:
        """Return when every running broker has read all that was committed when this was called.

        Args:
            effective: wait until it also acts on it. A broker publishes one batch of records after the other, and of
                each its image first, then what authorizer, token cache and the like make of it. So all that an image
                shows is in effect once a *later* image was seen; an image may well have jumped over the head.
            timeout_s: for each broker and image.

        Raises:
            KafkaHarnessError: if one has not after `timeout_s`.
        """
        target = self.head().offset
        for broker_id in self._running_brokers():
            shown = self._wait_read(broker_id, target, timeout_s)
            if effective:
                self._wait_read(broker_id, shown + 1, timeout_s)

    def wait_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return when the running brokers know each other and the same active controller, and are caught up.

        Raises:
            KafkaHarnessError: if a node has ended, or not all are ready after `timeout_s`.
        """
        running = set(self._running_brokers())
        for broker_id in sorted(running):
            self.wait_until(
                functools.partial(self._knows, broker_id, running),
                f"broker {broker_id} does not know just {sorted(running)}",
                timeout_s,
            )
        addresses = [self.brokers[broker_id] for broker_id in running]
        self.wait_until(lambda: _agree(addresses), "the brokers do not agree on the active controller", timeout_s)
        self.wait_caught_up(timeout_s=timeout_s)

    def wait_until(self, done: Callable[[], bool], failure: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return when `done` says so; it is asked every 50 ms.

        Raises:
            KafkaHarnessError: if a node has ended by itself, or with `failure` after `timeout_s`.
        """
        deadline_s = time.monotonic() + timeout_s
        while not done():
            for node_id, process in self._nodes.items():
                if process.poll() is not None:
                    reason = f"node {node_id} ended with {process.returncode}"
                    raise KafkaHarnessError(f"{reason}; its last log lines:\n{self.log_tail(node_id)}")
            if time.monotonic() > deadline_s:
                logs = "\n".join(f"--- node {node_id}\n{self.log_tail(node_id, 10)}" for node_id in self.node_ids)
                raise KafkaHarnessError(f"{failure} after {timeout_s} s; last log lines:\n{logs}")
            time.sleep(POLL_INTERVAL_S)

    # --- Java

    def tool(
        self, main_class: str, *args: str, stdin: str | None = None, timeout_s: float = TOOL_TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools, for instance `org.apache.kafka.tools.TopicCommand`; raises as `Java.run`."""
        return self._java.run(main_class, *args, stdin=stdin, timeout_s=timeout_s)

    def java(
        self, source: Path, *args: str, stdin: str | None = None, timeout_s: float = TOOL_TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        """Compile a Java file, once for each content, and run it; raises as `Java.run` and `Java.compile`."""
        main_class, classes = self._java.compile(source)
        return self._java.run(main_class, *args, stdin=stdin, timeout_s=timeout_s, classes=classes)

    def start_java(self, program: str | Path, *args: str) -> subprocess.Popen[str]:
        """Start a tool (by class name) or a Java file; pipes on all three streams.

        The caller ends it; what is left when the cluster closes is killed.
        """
        main_class, classes = self._java.compile(program) if isinstance(program, Path) else (program, None)
        process = self._java.start(main_class, *args, stdin=subprocess.PIPE, classes=classes)
        self._watchdog.watch(process.pid)
        return process

    # --- the end

    def log_tail(self, node_id: int, lines: int = LOG_LINES) -> str:
        """The last lines that a node logged."""
        file = self._log_file(node_id)
        text = file.read_text(errors="replace") if file.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def close(self) -> None:
        """Kill everything and delete the data. Harmless when done twice."""
        atexit.unregister(self.close)
        for node_id in list(self._nodes):
            self.kill(node_id)
        if self._relay is not None:
            self._relay.close()
            self._relay = None
        self._watchdog.close()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- parts

    @property
    def _running_relay(self) -> Relay:
        assert self._relay is not None, "the cluster is closed"
        return self._relay

    def _delay(self, node_id: int, delay_ms: float | None, *, feed_only: bool) -> None:
        pairs = [(node_id, controller_id) for controller_id in self.controllers]
        self._running_relay.delay(pairs, delay_ms, feed_only=feed_only)

    def _wait_read(self, broker_id: int, offset: int, timeout_s: float) -> int:
        shown: list[int] = []

        def has_read() -> bool:
            found = _or_none(offsets.image_offset, self.brokers[broker_id])
            shown[:] = [] if found is None or found < offset else [found]
            return bool(shown)

        self.wait_until(has_read, f"broker {broker_id} has not reached offset {offset}", timeout_s)
        return shown[0]

    def _knows(self, broker_id: int, broker_ids: set[int]) -> bool:
        return _or_none(offsets.known_brokers, self.brokers[broker_id]) == broker_ids

    def _running_brokers(self) -> list[int]:
        return [broker_id for broker_id in self.brokers if broker_id in self._nodes and broker_id not in self._stopped]

    def _forget(self, node_id: int) -> None:
        self._watchdog.forget(self._nodes.pop(node_id).pid)
        self._stopped.discard(node_id)

    def _properties_file(self, node_id: int) -> Path:
        return self._folder / f"{node_id}.properties"

    def _log_file(self, node_id: int) -> Path:
        return self._folder / f"{node_id}.log"


def _agree(brokers: Iterable[Address]) -> bool:
    heads = [_or_none(offsets.head, broker) for broker in brokers]
    return len({head and head.leader_epoch for head in heads}) == 1 and None not in heads


def _or_none(ask: Callable[[Address], T], address: Address) -> T | None:
    try:
        return ask(address)
    except (OSError, RawClientError):
        return None
