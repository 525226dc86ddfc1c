"""One client connection: the order in which its requests may go and its answers must leave (consistency.md section 6).

    request arrives ──> exchanges (all unanswered, in the client's order)
                          │ plain: at once, on the client's own broker connection
                          │ gated read, write: `queue`, from the front, when `eligible` says so
    answer arrives  ──> kept in its exchange until every earlier one has left

The rules:

- a gated read behind an unanswered write waits for that answer, and takes its bound then;
- a gated read behind an unanswered gated read follows it on the same channel, or waits for its answer;
- a write never overtakes a gated read that came before it: the read would see the future;
- a read that may turn out to create topics counts as a write for all that comes behind it;
- anything else overtakes a held read; its answer waits in line;
- nothing overtakes a write: while one waits, `accepts` tells the shell to leave later requests unread.

Knows nothing of positions, bounds or bytes. `sidecar.core.sidecar` decides where an eligible read goes.
"""

from collections.abc import Iterator

from sidecar.core.apis import Kind
from sidecar.core.exchange import Exchange, Request
from sidecar.core.ids import OWN, Identity, NodeId, Offset, Seq
from sidecar.core.sessions import Session
from sidecar.core.view import Channel


class ClientConnection:
    """The state of one client connection.

    Attributes:
        connection_id: names it to the shell.
        node_id: the client's own broker: that of the port it connected to, or the one chosen for the bootstrap port.
        identity: who it is to the brokers; None: nobody who could be carried to another broker, so that only its own
            one may answer it.
        home: the connection to that broker, None while it is not open.
        session: that of its latest gated request.
        tied: the broker keeps something that ends with this very connection, or can answer by closing it only.
        waiting_bytes: size of the answers that wait for an earlier one.
    """

    __slots__ = (
        "_exchanges",
        "_home_line",
        "_queue",
        "_reads_sent",
        "_writes_queued",
        "_writes_sent",
        "closed",
        "connection_id",
        "home",
        "identity",
        "node_id",
        "session",
        "tied",
        "waiting_bytes",
    )

    def __init__(self, connection_id: int, node_id: NodeId, identity: Identity | None = OWN) -> None:
        self.connection_id = connection_id
        self.node_id = node_id
        self.identity = identity
        self.home: Channel | None = None
        self.session: Session | None = None
        self.closed = False
        self.tied = False
        self.waiting_bytes = 0
        # Lists: short but for rare bursts, and an empty deque has twelve times the size, three times a connection.
        self._exchanges: list[Exchange] = []
        self._home_line: list[Exchange] = []
        self._queue: list[Exchange] = []
        self._reads_sent: list[Exchange] = []
        self._writes_sent = 0
        self._writes_queued = 0

    # Requests

    def accepts(self, in_flight_max: int, waiting_bytes_max: int) -> bool:
        """Whether the next request may be read from the client: no write waits, and the limits leave room."""
        return (
            not self._writes_queued and len(self._exchanges) < in_flight_max and self.waiting_bytes <= waiting_bytes_max
        )

    def pass_through(
        self, request: Request, arrived: Seq, now_ms: float, correlation_id: int | None = None
    ) -> Exchange:
        """Takes a plain request, whose bytes the caller now sends on the home connection.

        Args:
            correlation_id: None: that of ``request``.
        """
        exchange = Exchange(self, request, arrived, now_ms)
        if correlation_id is not None:
            exchange.correlation_id = correlation_id
        exchange.sent_ms = now_ms
        self._exchanges.append(exchange)
        self._home_line.append(exchange)
        if self.home is not None:
            self.home.load.in_flight += 1
        return exchange

    def take_local(self, request: Request, arrived: Seq, now_ms: float) -> Exchange:
        """Takes a request that the sidecar answers itself; `answered` follows at once."""
        exchange = Exchange(self, request, arrived, now_ms)
        self._exchanges.append(exchange)
        return exchange

    def enqueue(self, request: Request, arrived: Seq, now_ms: float) -> Exchange:
        """Takes a gated read or a write; `eligible` says when it may go."""
        exchange = Exchange(self, request, arrived, now_ms)
        if not (self._writes_queued or self._writes_sent):
            # Time behind a read that is held counts: else the deadlines of pipelined reads would add up.
            exchange.eligible_ms = now_ms
        self._exchanges.append(exchange)
        self._queue.append(exchange)
        self._writes_queued += exchange.kind is Kind.WRITE
        return exchange

    def eligible(self) -> tuple[Exchange, Channel | None] | None:
        """The next exchange that order allows to go, with the one channel it may follow on (None: any)."""
        if not self._queue:
            return None
        exchange = self._queue[0]
        if exchange.kind is Kind.READ:
            if self._writes_sent:
                return None
            if not self._reads_sent:
                return exchange, None
            channel = self._reads_sent[0].channel
            return (exchange, channel) if self._ahead_on(channel) else None
        # A write, or what became one: reads that are out on this same connection are ahead of it there.
        if not self._ahead_on(self.home):
            return None
        if exchange.kind is Kind.CREATE and (self._writes_sent or self._reads_sent):
            return None
        return exchange, None

    def sent(self, exchange: Exchange, channel: Channel, now_ms: float) -> None:
        """Notes that the exchange at the front of the queue goes out on ``channel``, now."""
        self.drop_front(exchange)
        exchange.channel = channel
        exchange.sent_ms = now_ms
        channel.load.in_flight += 1
        if exchange.kind is Kind.READ:
            self._reads_sent.append(exchange)
        else:
            self._writes_sent += 1
        if channel is self.home:
            self._home_line.append(exchange)

    def drop_front(self, exchange: Exchange) -> None:
        """Takes the exchange at the front of the queue out of it: it is answered without being sent."""
        assert self._queue[0] is exchange, "only the front of the queue may leave it"
        self._queue.pop(0)
        self._writes_queued -= exchange.kind is Kind.WRITE

    @property
    def nothing_ahead(self) -> bool:
        """Whether no gated request and no write waits, or has yet to be answered."""
        return not (self._queue or self._reads_sent or self._writes_sent)

    # Answers

    @property
    def next_at_home(self) -> Exchange | None:
        """The exchange that the next answer on the home connection belongs to; None if nothing is outstanding there."""
        return self._home_line[0] if self._home_line else None

    def home_answered(self) -> Exchange | None:
        """The exchange that the next answer on the home connection belongs to; None if nothing is outstanding there."""
        if not self._home_line:
            return None
        if self.home is not None:
            self.home.load.in_flight -= 1
        return self._home_line.pop(0)

    def is_next(self, exchange: Exchange) -> bool:
        """Whether the answer to this exchange may leave as it comes."""
        return self._exchanges[0] is exchange

    def left(self, exchange: Exchange) -> None:
        """Notes that the answer to a plain exchange that `is_next` has left."""
        assert self._exchanges[0] is exchange, "answers leave in the order of their requests"
        self._exchanges.pop(0)

    def passed(self, exchange: Exchange) -> None:
        """Notes that a plain exchange that `is_next` was answered at home, and that the answer has left."""
        assert self._exchanges[0] is exchange is self._home_line[0], "answers leave in the order of their requests"
        del self._exchanges[0], self._home_line[0]
        if self.home is not None:
            self.home.load.in_flight -= 1

    def settle(self, exchange: Exchange) -> None:
        """Notes that a sent read or write was answered by its broker: what waited for that may become eligible."""
        if exchange.channel is None:
            return
        if exchange.channel is not self.home:
            exchange.channel.load.in_flight -= 1
        if exchange.kind is Kind.READ:
            self._reads_sent.remove(exchange)
        else:
            self._writes_sent -= 1

    def answered(self, exchange: Exchange, payload: bytes) -> None:
        """Keeps the answer until it is its turn; see `take_ready`."""
        exchange.answer = payload
        self.waiting_bytes += len(payload)

    def take_ready(self) -> Iterator[Exchange]:
        """The answered exchanges whose turn it is, in the client's order."""
        while self._exchanges and self._exchanges[0].answer is not None:
            exchange = self._exchanges.pop(0)
            self.waiting_bytes -= len(exchange.answer or b"")
            yield exchange

    # The home connection, and the end

    def home_opened(self, home: Channel) -> None:
        """The connection to the client's own broker is open; what was passed through before counts as its load."""
        self.home = home
        home.load.in_flight += len(self._home_line)

    @property
    def leaves_nothing_at_home(self) -> bool:
        """Whether the home connection, which is open, could be replaced: nothing is outstanding, or kept, there."""
        return self.home is not None and not (self.closed or self.tied or self._home_line)

    def home_closed(self) -> None:
        """The home connection is gone, and `leaves_nothing_at_home`; another one is opened."""
        self.home = None

    def home_showed(self, offset: Offset) -> None:
        """An ApiVersions answer on the home connection carried the position of that very process."""
        if self.home is not None:
            self.home.shown = max(self.home.shown, offset)

    def close(self) -> None:
        """Ends the connection: what it had in flight no longer counts as load."""
        self.closed = True
        if self.home is not None:
            self.home.load.in_flight -= len(self._home_line)
        for read in self._reads_sent:
            if read.channel is not None and read.channel is not self.home:
                read.channel.load.in_flight -= 1

    # Second chances

    def ask_again(self, exchange: Exchange, kind: Kind) -> None:
        """Puts a settled exchange back to the front: its channel broke, or its answer was not good enough.

        Its bound is taken anew: what was answered meanwhile may have been ahead of it on the same channel.
        """
        exchange.channel = None
        exchange.bound = None
        exchange.kind = kind
        position = next(
            (i for i, waiting in enumerate(self._queue) if waiting.arrived > exchange.arrived), len(self._queue)
        )
        self._queue.insert(position, exchange)

    # Looking at it

    @property
    def in_flight(self) -> int:
        """Requests that have not been answered to the client."""
        return len(self._exchanges)

    @property
    def only_waits(self) -> bool:
        """Whether nothing of it is at a broker or has yet to change anything there: all it has left are reads."""
        return not (self._home_line or self._reads_sent or self._writes_sent or self._writes_queued) and all(
            waiting.kind is Kind.READ for waiting in self._queue
        )

    @property
    def front(self) -> Exchange | None:
        """The first exchange that was not sent yet."""
        return self._queue[0] if self._queue else None

    @property
    def waits_elsewhere(self) -> bool:
        """Whether the answer that must leave next is not to come on the home connection as things stand: its request is
        held, or was sent elsewhere.
        """
        return bool(self._exchanges) and self._exchanges[0] not in self._home_line

    def reads_on(self, channel: Channel) -> list[Exchange]:
        """The reads that were sent on ``channel`` and have no answer yet."""
        return [read for read in self._reads_sent if read.channel is channel]

    def _ahead_on(self, channel: Channel | None) -> bool:
        """Whether what is sent on ``channel`` now stays behind all reads that are out, whatever becomes of them."""
        return all(read.channel is channel and not read.request.may_create for read in self._reads_sent)
