"""A TCP relay in front of the controllers that can delay, hold or cut what one node says to one controller.

Every node reaches every controller through it: `controller.quorum.voters` names the relay, and the controllers
advertise it, since a node that asks the wrong controller is told the active one's address and goes there from then on.
It runs as a process of its own, so that a busy test cannot slow it down, and so it is also a plain script; standard
library only. First line on standard input: the links, as JSON. Each later line is an order, answered with one line.
At end of file the relay ends.

It knows one thing of Kafka's protocol, the client id of a connection's first request: `raft-client-N` is node N's feed
of metadata, `N` its other business with the controller. A lag on the feed alone is what a slow replay looks like: the
broker heartbeats, forwards writes and serves clients as ever, only its picture of the cluster is old.
"""

import asyncio
import contextlib
import dataclasses
import json
import math
import re
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

HOST = "127.0.0.1"
CHUNK_BYTES = 65536
CHUNKS_MAX = 1000
FIRST_REQUEST_HEADER = struct.Struct(">ihhih")
CLIENT_ID_OF_A_NODE = re.compile(rb"(raft-client-)?(\d+)")
TO_TARGET, TO_SOURCE = "to_target", "to_source"
NO_NODE = -1


Pair = tuple[int, int]
"""A node id and a controller id: the connections that this node opens to that controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The way to one controller: whoever connects to `listen_port` reaches `target_port`."""

    controller_id: int
    listen_port: int
    target_port: int


class Relay:
    """The parent's end of the relay process."""

    def __init__(self, links: Iterable[Link], log: Path) -> None:
        """Start the relay and return once it listens on every link.

        Raises:
            RuntimeError: if it cannot; the message says why.
        """
        self._log = log
        self._lock = threading.Lock()
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        self._ask([dataclasses.astuple(link) for link in links])

    @property
    def pid(self) -> int:
        """Its process id, which is its process group too."""
        return self._process.pid

    def delay(
        self, pairs: Iterable[Pair], delay_ms: float | None, *, direction: str = TO_SOURCE, feed_only: bool = True
    ) -> None:
        """Delay what goes this way between these nodes from now on, bytes already on their way included.

        Args:
            pairs: whose connections to which controllers.
            delay_ms: how long after its arrival a byte goes on; None holds all bytes until the next order.
            direction: `to_source` is from the controller to the node that connected, `to_target` the other way.
            feed_only: only connections that carry the metadata feed; False: all connections between the two.
        """
        self._ask({"pairs": list(pairs), "delay_ms": delay_ms, "direction": direction, "feed_only": feed_only})

    def cut(self, pairs: Iterable[Pair]) -> None:
        """Break the connections that these nodes have to these controllers, and every one they open, until `clear`."""
        self._ask({"cut": list(pairs)})

    def clear(self) -> None:
        """No delay and no cut anywhere."""
        self._ask({"clear": True})

    def close(self) -> None:
        """End the relay; its connections break."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process.wait(30)

    def _ask(self, order: object) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(json.dumps(order) + "\n")
                stdin.flush()
            if stdout.readline() != "done\n":
                self.close()
                raise RuntimeError(f"the relay failed: {self._log.read_text().strip()}")


@dataclass(slots=True)
class Rule:
    """How long bytes wait; changing it wakes everybody who waits under it."""

    delay_ms: float | None = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def set(self, delay_ms: float | None) -> None:
        """Replace the delay."""
        self.delay_ms = delay_ms
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait_until_due(self, arrival_s: float) -> None:
        """Return when bytes that arrived then may go on."""
        while (left_s := self._left_s(arrival_s)) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if left_s == math.inf else left_s):
                    await self.changed.wait()

    def _left_s(self, arrival_s: float) -> float:
        return math.inf if self.delay_ms is None else arrival_s + self.delay_ms / 1000 - time.monotonic()


class Rules:
    """What the parent wants: one rule for each pair, kind of connection and direction, and the pairs that are cut."""

    def __init__(self) -> None:
        self._rules: dict[tuple[int, int, bool, str], Rule] = defaultdict(Rule)
        self._connections: dict[Pair, set[asyncio.Task[None]]] = defaultdict(set)
        self._cut: set[Pair] = set()

    def find(self, pair: Pair, feed: bool, direction: str) -> Rule:
        """The rule of one direction of a connection."""
        return self._rules[(*pair, feed, direction)]

    async def carry(self, pair: Pair, work: Coroutine[None, None, None]) -> None:
        """Do the work of a connection until it is done or its pair is cut."""
        if pair in self._cut:
            work.close()
            return
        task = asyncio.create_task(work)
        self._connections[pair].add(task)
        await asyncio.wait([task])
        self._connections[pair].discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), OSError):
            raise error

    def obey(self, order: dict[str, Any]) -> None:
        """Change what is wanted."""
        if "clear" in order:
            self._cut.clear()
            for rule in self._rules.values():
                rule.set(0.0)
        elif "cut" in order:
            for source, target in order["cut"]:
                self._cut.add((source, target))
                for task in self._connections[source, target]:
                    task.cancel()
        else:
            for source, target in order["pairs"]:
                for feed in (True,) if order["feed_only"] else (True, False):
                    self.find((source, target), feed, order["direction"]).set(order["delay_ms"])


class RunningLink:
    """The way to one controller at work."""

    def __init__(self, controller_id: int, target_port: int, rules: Rules) -> None:
        self._controller_id = controller_id
        self._target_port = target_port
        self._rules = rules

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        with contextlib.suppress(OSError), contextlib.closing(writer):
            first, client_id = await first_request_start(reader)
            found = CLIENT_ID_OF_A_NODE.fullmatch(client_id)
            source, feed = (int(found[2]), found[1] is not None) if found else (NO_NODE, False)
            pair = (source, self._controller_id)
            to_target, to_source = (self._rules.find(pair, feed, direction) for direction in (TO_TARGET, TO_SOURCE))
            await self._rules.carry(pair, self._connect(reader, writer, first, to_target, to_source))

    async def _connect(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        first: bytes,
        to_target: Rule,
        to_source: Rule,
    ) -> None:
        target_reader, target_writer = await asyncio.open_connection(HOST, self._target_port)
        with contextlib.closing(target_writer):
            directions = [
                asyncio.create_task(pump(reader, target_writer, to_target, first)),
                asyncio.create_task(pump(target_reader, writer, to_source, b"")),
            ]
            try:
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for direction in directions:
                    direction.cancel()
                await asyncio.gather(*directions, return_exceptions=True)


async def first_request_start(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The connection's first bytes, up to and including the client id of its first request, and that client id."""
    try:
        head = await reader.readexactly(FIRST_REQUEST_HEADER.size)
        client_id = await reader.readexactly(max(0, FIRST_REQUEST_HEADER.unpack(head)[-1]))
    except asyncio.IncompleteReadError as error:
        return error.partial, b""
    return head + client_id, client_id


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rule: Rule, first: bytes) -> None:
    """Carry one direction; returns once the end of the stream, delayed like the bytes before it, has arrived."""
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)

    async def receive() -> None:
        data = first
        with contextlib.suppress(OSError):
            data = data or await reader.read(CHUNK_BYTES)
            while data:
                await queue.put((time.monotonic(), data))
                data = await reader.read(CHUNK_BYTES)
        await queue.put((time.monotonic(), b""))

    receiver = asyncio.create_task(receive())
    try:
        while True:
            arrival_s, data = await queue.get()
            await rule.wait_until_due(arrival_s)
            if not data:
                return
            writer.write(data)
            await writer.drain()
    finally:
        receiver.cancel()


async def run(orders: IO[str], answers: IO[str]) -> None:
    """Serve the links named in the first line, then obey until the orders end."""
    rules = Rules()
    for controller_id, listen_port, target_port in json.loads(orders.readline()):
        link = RunningLink(controller_id, target_port, rules)
        await asyncio.start_server(link.serve, HOST, listen_port)
    print("done", file=answers, flush=True)
    while line := await asyncio.to_thread(orders.readline):
        rules.obey(json.loads(line))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    asyncio.run(run(sys.stdin, sys.stdout))
