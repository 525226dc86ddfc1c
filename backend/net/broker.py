"""One broker: an observer of the metadata log that registers, keeps its session alive, and publishes what it replays.

    log --fetch--> ReplayQueue --when due--> Publication --image--> Apis --> Listener

The knobs `replay_delay_ms`, `paused` and `publish_delay_ms` may be turned at any time, so lag is a matter of one
assignment; a broker that starts catches up without delay first. Knows the log and the controller by their interfaces
only.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, final

from backend.metadata.image import Image
from backend.metadata.records import Batch, BrokerEndpoint, Record
from backend.net.active_controller import ActiveController, NotRegistered, Registration, StaleBrokerEpoch
from backend.net.apis import Apis, Identity
from backend.net.controller import new_uuid
from backend.net.controller_channel import NoController
from backend.net.listener import Listener
from backend.net.offers import FEATURES
from backend.net.publication import Publication
from backend.net.replay import NO_DELAY, Delay, ReplayQueue
from backend.net.security import OPEN, PROTOCOLS, Security
from backend.net.session import Session
from backend.net.snapshots import Snapshots
from backend.raft.interfaces import Observer

log = logging.getLogger("tidegate.broker")

FETCH_RECORDS_MAX: Final = 1000
WAITING_RECORDS_MAX: Final = 10_000
"""Records that wait for their replay before a broker stops fetching; the log keeps the rest for it."""
HEARTBEAT_INTERVAL_MS: Final = 2000
"""Kafka's `broker.heartbeat.interval.ms`."""
LEAVE_TIMEOUT_S: Final = 2.0
"""How long a broker that stops tries to say so."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """How a broker starts.

    Attributes:
        host, port: where it listens; port 0 takes a free one, the same again after a restart.
        advertised_host: what clients are told instead of `host`.
        state_wait_ms: how long a request may wait for its token.
        security: what clients must speak and show, and what they may do.
        linearizable: whether reads without a token show all that was committed before they came.
    """

    identity: Identity
    host: str
    port: int
    advertised_host: str
    state_wait_ms: int
    security: Security = OPEN
    linearizable: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """What a broker hangs on while it runs.

    Attributes:
        log: its replica's; closed when the broker stops.
        controller: whoever leads.
        snapshots: shorten that log; None where the controller of the same node does it.
    """

    log: Observer[Record, Image]
    controller: ActiveController
    snapshots: Snapshots | None


@final
class Broker:
    """See the module. `open` binds the port, `start` makes it serve, `stop` ends it; it may be started again."""

    def __init__(self, settings: BrokerSettings, attach: Callable[[], Awaitable[Attachment]]) -> None:
        self.node_id = settings.identity.node_id
        self._settings = settings
        self._attach = attach
        self._port = settings.port
        self._log_dir = new_uuid()
        self._replay_delay = NO_DELAY
        self._publish_delay_ms = 0
        self._paused = False
        self._serving = False
        self._epoch = -1
        self._incarnation_id = new_uuid()
        self._run: _Run | None = None

    # Knobs

    @property
    def replay_delay_ms(self) -> Delay:
        """How long a committed batch waits before the image shows it; set a number of ms, or a pair of bounds."""
        return self._replay_delay

    @replay_delay_ms.setter
    def replay_delay_ms(self, value: int | tuple[int, int] | Delay) -> None:
        self._replay_delay = Delay.of(value)
        self._turn()

    @property
    def publish_delay_ms(self) -> int:
        """How long what an image shows is not yet in effect: authorizer and credentials come so much later."""
        return self._publish_delay_ms

    @publish_delay_ms.setter
    def publish_delay_ms(self, value: int) -> None:
        self._publish_delay_ms = Delay.of(value).most_ms
        self._turn()

    @property
    def paused(self) -> bool:
        """Whether replay stands still."""
        return self._paused

    @paused.setter
    def paused(self, value: bool) -> None:
        self._paused = value
        self._turn()

    def _turn(self) -> None:
        """Put the knobs in force, unless the broker is still catching up."""
        if self._run is not None and self._serving:
            self._run.turn(self._replay_delay, self._publish_delay_ms, paused=self._paused)

    # What it has

    @property
    def address(self) -> tuple[str, int]:
        """Where clients reach it, once it is open."""
        return self._settings.advertised_host, self._port

    @property
    def is_serving(self) -> bool:
        """Whether it has caught up, is not fenced, and accepts clients."""
        return self._serving

    @property
    def publication(self) -> Publication:
        """What it has published, in this life; only while it runs."""
        assert self._run is not None, "the broker is stopped"
        return self._run.publication

    # Life

    def open(self) -> None:
        """Bind the port, so that it is known before anybody is told of it.

        Raises:
            PortTaken: The port cannot be had.
        """
        settings = self._settings
        listener = Listener(settings.host, self._port)
        self._port = listener.port
        publication = Publication(Image.empty(settings.identity.cluster_id))
        self._run = _Run(listener, publication)

    async def start(self, on_failure: Callable[[str, BaseException], None]) -> None:
        """Register, catch up, get unfenced, serve; returns when clients are accepted.

        Args:
            on_failure: called when a task of the broker ends by itself, which none should.
        """
        if self._run is None:
            self.open()
        run = self._run
        assert run is not None, "it was opened"
        attachment = run.attachment = await self._attach()
        run.spawn(run.fetch(attachment.log), f"broker {self.node_id}: fetch", on_failure)
        run.spawn(run.replay(attachment), f"broker {self.node_id}: replay", on_failure)
        self._incarnation_id = new_uuid()
        await self._register(attachment.controller)
        await run.publication.reach(self._epoch)
        await self._come_in(run, attachment.controller)
        security = self._settings.security
        apis = Apis(
            self._settings.identity,
            run.publication,
            attachment.log,
            attachment.controller,
            state_wait_ms=self._settings.state_wait_ms,
            security=security,
            linearizable=self._settings.linearizable,
        )
        await run.listener.serve(lambda peer: Session(apis, security, run.publication, peer), security.tls)
        run.spawn(self._keep_session(run, attachment.controller), f"broker {self.node_id}: heartbeat", on_failure)
        self._serving = True
        self._turn()
        log.info("broker %d serves %s:%d", self.node_id, *self.address)

    async def stop(self, *, leave: bool = True) -> None:
        """End it. With `leave` its controller is told, and moves what it led; without, it just falls silent."""
        run, self._run = self._run, None
        if run is None:
            return
        was_serving, self._serving = self._serving, False
        if leave and was_serving and run.attachment is not None:
            controller = run.attachment.controller
            with contextlib.suppress(TimeoutError, NoController, NotRegistered, StaleBrokerEpoch):
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await controller.heartbeat(self.node_id, self._epoch, run.publication.offset, leaving=True)
        await run.close()

    async def _register(self, controller: ActiveController) -> None:
        """Register this process, however long it takes until there is a controller."""
        host, port = self.address
        registration = Registration(
            broker_id=self.node_id,
            incarnation_id=self._incarnation_id,
            end_points=(
                BrokerEndpoint(
                    name=self._settings.identity.listener_name,
                    host=host,
                    port=port,
                    security_protocol=PROTOCOLS[self._settings.security.protocol],
                ),
            ),
            log_dir=self._log_dir,
            features=FEATURES,
        )
        while True:
            try:
                self._epoch = await controller.register(registration)
                return
            except NoController as error:
                log.warning("broker %d cannot register: %s", self.node_id, error)

    async def _come_in(self, run: "_Run", controller: ActiveController) -> None:
        """Send heartbeats until the broker's own image says that it is not fenced."""
        while True:
            with contextlib.suppress(NoController):
                await controller.heartbeat(self.node_id, self._epoch, run.publication.offset, leaving=False)
            shown = run.publication.image.cluster.brokers.get(self.node_id)
            if shown is not None and shown.broker_epoch == self._epoch and not shown.fenced:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_INTERVAL_MS / 1000):
                    await run.publication.reach(run.publication.offset + 1)

    async def _keep_session(self, run: "_Run", controller: ActiveController) -> None:
        """Send heartbeats for ever.

        Raises:
            StaleBrokerEpoch: Another process has registered with this id.
        """
        while True:
            await asyncio.sleep(HEARTBEAT_INTERVAL_MS / 1000)
            try:
                await controller.heartbeat(self.node_id, self._epoch, run.publication.offset, leaving=False)
            except NoController as error:
                log.warning("broker %d: heartbeat: %s", self.node_id, error)
            except NotRegistered:
                await self._register(controller)
            except StaleBrokerEpoch:
                raise StaleBrokerEpoch(f"another process has registered as broker {self.node_id}") from None


@final
class _Run:
    """One life of a broker, from `open` to `stop`."""

    def __init__(self, listener: Listener, publication: Publication) -> None:
        self.listener = listener
        self.publication = publication
        self.attachment: Attachment | None = None
        self._queue = ReplayQueue(NO_DELAY)
        self._publish_delay_ms = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def turn(self, replay_delay: Delay, publish_delay_ms: int, *, paused: bool) -> None:
        """Set the knobs."""
        self._queue.delay = replay_delay
        self._queue.paused = paused
        self._publish_delay_ms = publish_delay_ms
        self._news.set()

    def spawn(self, work: Any, name: str, on_failure: Callable[[str, BaseException], None]) -> None:
        """Run `work` until `close`."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                on_failure(name, error)

        task.add_done_callback(ended)

    async def close(self) -> None:
        """End the tasks, then the clients."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.listener.close()
        if self.attachment is not None:
            if self.attachment.snapshots is not None:
                await self.attachment.snapshots.close()
            await self.attachment.log.close()

    async def fetch(self, metadata_log: Observer[Record, Image]) -> None:
        """Follow the log; what comes waits in the queue."""
        offset = 0
        while True:
            fetched = await metadata_log.fetch(offset, FETCH_RECORDS_MAX)
            if fetched.snapshot is not None:
                offset = fetched.snapshot.end_offset
                self._offer(fetched.snapshot.content)
            for batch in fetched.batches:
                offset = batch.last_offset + 1
                self._offer(
                    Batch(base_offset=batch.base_offset, leader_epoch=batch.leader_epoch, records=batch.records)
                )
            while self._queue.records >= WAITING_RECORDS_MAX:
                self._room.clear()
                await self._room.wait()

    async def replay(self, attachment: Attachment) -> None:
        """Publish what is due, all of it as one image, in two steps; the next image waits for the second."""
        while True:
            due = self._queue.take(self._now_ms())
            if not due:
                await self._wait(self._queue.due_ms())
                continue
            self._room.set()
            image = self.publication.image
            for item in due:
                image = item if isinstance(item, Image) else image.apply(item)
            self.publication.show(image)
            shown_ms = self._now_ms()
            while self._publish_delay_ms and (until_ms := shown_ms + self._publish_delay_ms) > self._now_ms():
                await self._wait(until_ms)
            self.publication.act()
            if attachment.snapshots is not None:
                attachment.snapshots.applied(image)

    def _offer(self, item: Batch | Image) -> None:
        self._queue.offer(item, self._now_ms(), random.random())
        self._news.set()

    async def _wait(self, until_ms: float | None) -> None:
        """Wait for something new, at most until then."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(None if until_ms is None else until_ms / 1000):
                await self._news.wait()

    def _now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000
