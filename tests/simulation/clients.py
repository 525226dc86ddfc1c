"""Model clients: they pipeline what they wish for, expect answers in order, and leave or come back."""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from sidecar.core.apis import Kind
from sidecar.core.connection import ClientConnection
from sidecar.core.events import ClientClosed, HomeClosed, HomeOpened, RequestReceived
from sidecar.core.exchange import Exchange
from sidecar.core.sessions import Scope, session_name
from sidecar.core.view import Channel
from tests.simulation import invariants
from tests.simulation.links import Link, Work
from tests.simulation.requests import Note, Reply, Seen, Wish, note_of, request_of

if TYPE_CHECKING:
    from tests.simulation.driver import Driver


class Client:
    """One client connection, from the socket of the client to that of its own broker.

    Attributes:
        principal: who it is to the brokers.
        unread: what the client has sent and the sidecar has not read yet.
        expected: the requests that the sidecar has read and the client has no answer to, in order.
        at_home: what was sent on the home connection and not answered there, in order.
        routed: what was sent elsewhere and not answered there.
        flexible: its requests have headers with room for a ConsistencyState.
        floor: what the answers so far have shown to each session of each log, in the client's order.
    """

    def __init__(
        self, driver: "Driver", name: str, client_id: str, principal: str, connection: ClientConnection
    ) -> None:
        self.driver = driver
        self.name = name
        self.principal = principal
        self.connection = connection
        self.unread: deque[Wish] = deque()
        self.expected: deque[Note] = deque()
        self.at_home: deque[Exchange] = deque()
        self.routed: dict[Exchange, Channel] = {}
        self.floor: dict[tuple[int, str], Seen] = {}
        self.flexible = driver.world.weather.carries_state and driver.world.state_random.random() < 0.8
        self.closed = False
        self._client_id = client_id
        self._count = 0
        self._unsent: list[tuple[Exchange, Work]] = []
        self._is_open = False
        self._home = driver.connect(connection.node_id, on_open=self._opened, on_end=self._ended)

    # From the client

    def wish(self, wishes: list[Wish]) -> None:
        """The client sends these requests, all at once."""
        self.unread.extend(wishes)
        self.read_on()

    def read_on(self) -> None:
        """Reads from the client as long as the core accepts."""
        weather = self.driver.world.weather
        while (
            self.unread
            and not self.closed
            and self.connection.accepts(weather.in_flight_max, weather.waiting_bytes_max)
        ):
            self._take(self.unread.popleft())

    def leave(self) -> None:
        """Ends the connection, from whichever side."""
        if not self.closed:
            self.abandon()
            self.driver.handle(ClientClosed(self.connection))

    def abandon(self) -> None:
        """Closes both sockets."""
        self.closed = True
        self._home.close()

    def _take(self, wish: Wish) -> None:
        driver, connection = self.driver, self.connection
        self._count += 1
        wish = driver.world.claimed(wish) if self.flexible else wish
        note = Note(self, wish, self._count, driver.world.log.committed, driver.world.generation)
        scope = Scope(driver.world.weather.scope)
        request = request_of(note, session_name(scope, connection.connection_id, self._client_id))
        self.expected.append(note)
        if request.kind is Kind.PLAIN:
            invariants.nothing_overtakes_a_waiting_write(self, note)
            exchange = connection.pass_through(request, driver.core.next_seq(), driver.clock.now_ms)
            self.send(exchange, driver.world.work_of(exchange, pure=False))
        else:
            driver.handle(RequestReceived(connection, request))

    # To and from the client's own broker

    def send(self, exchange: Exchange, work: Work) -> None:
        """Sends on the home connection, once it is open."""
        note_of(exchange).state = "sent"
        self.at_home.append(exchange)
        if self._is_open:
            self._home.send(work, partial(self._answered, exchange))
        else:
            self._unsent.append((exchange, work))

    def home_gone(self) -> None:
        """The broker has left: its connection is closed under the client."""
        if not self.closed:
            self._home.close()
            self.driver.handle(HomeClosed(self.connection))

    def _opened(self, link: Link) -> None:
        self._is_open = True
        unsent, self._unsent = self._unsent, []
        for exchange, work in unsent:
            link.send(work, partial(self._answered, exchange))
        self.driver.handle(HomeOpened(self.connection, self.driver.next_channel_id()))
        self.read_on()

    def reopen_home(self) -> None:
        """Connects to its broker again."""
        self._is_open = False
        self._home = self.driver.connect(self.connection.node_id, on_open=self._opened, on_end=self._ended)

    def _ended(self, _link: Link) -> None:
        self.driver.handle(HomeClosed(self.connection, served=self._is_open))

    def _answered(self, exchange: Exchange, reply: Reply) -> None:
        invariants.home_answers_belong_to_their_requests(exchange, self.at_home.popleft(), self.connection)
        self.driver.answered(exchange, reply)

    # To the client

    def deliver(self) -> None:
        """Takes the answers whose turn it is."""
        for exchange in self.connection.take_ready():
            self.deliver_one(exchange)

    def deliver_one(self, exchange: Exchange) -> None:
        """One answer leaves."""
        note = note_of(exchange)
        invariants.answers_leave_in_order(self, note)
        self.expected.popleft()
        if note.reply is not None:
            invariants.no_client_sees_time_go_back(self, exchange, note, note.reply)
        self.driver.world.counts["answers"] += 1
