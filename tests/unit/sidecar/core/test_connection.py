"""The order on one client connection, rule by rule."""

import pytest

from codec.api_keys import ApiKey
from sidecar.core.apis import Kind, Trace
from sidecar.core.connection import ClientConnection
from sidecar.core.exchange import Exchange, Request
from sidecar.core.ids import NodeId, Seq
from sidecar.core.view import Channel, Load


def channel(channel_id: int, node_id: int) -> Channel:
    return Channel(channel_id=channel_id, node_id=NodeId(node_id), established=Seq(1), shown=-1, load=Load())


class Line:
    """A connection to broker 1, and another channel to broker 2."""

    def __init__(self, *, connected: bool = True) -> None:
        self.connection = ClientConnection(1, NodeId(1))
        self.home = channel(1, 1)
        self.other = channel(2, 2)
        self._seq = 10
        if connected:
            self.connection.home_opened(self.home)

    def queue(self, kind: Kind, *, may_create: bool = False) -> Exchange:
        self._seq += 1
        request = Request(
            api_key=ApiKey.METADATA,
            api_version=1,
            kind=kind,
            trace=Trace.BROKER,
            may_create=may_create,
            payload=b"1234",
        )
        return self.connection.enqueue(request, Seq(self._seq), 1.0)

    def plain(self) -> Exchange:
        self._seq += 1
        request = Request(api_key=ApiKey.PRODUCE, api_version=1, kind=Kind.PLAIN, trace=Trace.NONE)
        return self.connection.pass_through(request, Seq(self._seq), 1.0)

    def goes(self, exchange: Exchange, where: Channel) -> None:
        eligible = self.connection.eligible()
        assert eligible is not None
        assert eligible[0] is exchange
        self.connection.sent(exchange, where, 2.0)

    def answered(self, exchange: Exchange) -> None:
        if exchange.channel is self.home:
            assert self.connection.home_answered() is exchange
        self.connection.settle(exchange)
        self.connection.answered(exchange, b"answer")


def test_a_read_alone_may_go_anywhere() -> None:
    line = Line()
    read = line.queue(Kind.READ)
    assert line.connection.eligible() == (read, None)


def test_a_read_behind_an_unanswered_write_waits_for_its_answer() -> None:
    line = Line()
    write, read = line.queue(Kind.WRITE), line.queue(Kind.READ)
    line.goes(write, line.home)
    assert line.connection.eligible() is None
    line.answered(write)
    assert line.connection.eligible() == (read, None)


def test_a_read_behind_an_unanswered_read_follows_it_on_its_channel() -> None:
    line = Line()
    first, second = line.queue(Kind.READ), line.queue(Kind.READ)
    line.goes(first, line.other)
    assert line.connection.eligible() == (second, line.other)
    line.answered(first)
    assert line.connection.eligible() == (second, None)


def test_a_read_behind_reads_on_two_channels_follows_neither() -> None:
    line = Line()
    reads = [line.queue(Kind.READ) for _ in range(3)]
    line.goes(reads[0], line.other)
    line.goes(reads[1], line.home)  # it gave up waiting
    assert line.connection.eligible() is None
    line.answered(reads[0])
    assert line.connection.eligible() == (reads[2], line.home)


def test_a_write_never_overtakes_a_read_that_waits() -> None:
    line = Line()
    read, _write = line.queue(Kind.READ), line.queue(Kind.WRITE)
    assert line.connection.eligible() == (read, None)


def test_a_write_follows_a_read_on_the_home_connection_and_waits_for_one_elsewhere() -> None:
    at_home, elsewhere = Line(), Line()
    for line, where in ((at_home, at_home.home), (elsewhere, elsewhere.other)):
        line.goes(line.queue(Kind.READ), where)
        line.queue(Kind.WRITE)
    assert at_home.connection.eligible() is not None
    assert elsewhere.connection.eligible() is None


def test_what_comes_behind_a_read_that_may_create_topics_waits_for_its_answer() -> None:
    for kind in (Kind.READ, Kind.WRITE):
        line = Line()
        creator, later = line.queue(Kind.READ, may_create=True), line.queue(kind)
        line.goes(creator, line.home)
        assert line.connection.eligible() is None
        line.answered(creator)
        assert line.connection.eligible() == (later, None)


def test_a_create_goes_alone() -> None:
    line = Line()
    write, create = line.queue(Kind.WRITE), line.queue(Kind.CREATE)
    line.goes(write, line.home)
    assert line.connection.eligible() is None
    line.answered(write)
    assert line.connection.eligible() == (create, None)


def test_a_read_that_turned_out_to_create_comes_before_what_was_behind_it() -> None:
    line = Line()
    creator, later = line.queue(Kind.READ, may_create=True), line.queue(Kind.READ)
    line.goes(creator, line.home)
    line.connection.home_answered()
    line.connection.settle(creator)
    line.connection.ask_again(creator, Kind.CREATE)
    assert line.connection.eligible() == (creator, None)
    line.goes(creator, line.home)
    assert line.connection.eligible() is None
    line.answered(creator)
    assert line.connection.eligible() == (later, None)


def test_a_read_that_is_asked_again_takes_its_bound_anew() -> None:
    line = Line()
    read = line.queue(Kind.READ)
    line.goes(read, line.other)
    line.connection.settle(read)
    line.connection.ask_again(read, Kind.READ)
    assert read.bound is None
    assert read.channel is None
    assert line.connection.front is read


@pytest.mark.row("3.1")
def test_answers_leave_in_the_order_of_the_requests() -> None:
    line = Line()
    read, plain = line.queue(Kind.READ), line.plain()
    assert line.connection.home_answered() is plain, "it overtook the held read"
    assert not line.connection.is_next(plain)
    line.connection.answered(plain, b"12345")
    assert line.connection.waiting_bytes == 5
    assert list(line.connection.take_ready()) == []
    line.goes(read, line.home)
    line.answered(read)
    assert list(line.connection.take_ready()) == [read, plain]
    assert line.connection.waiting_bytes == 0
    assert line.connection.in_flight == 0


def test_a_plain_answer_whose_turn_it_is_leaves_as_it_comes() -> None:
    line = Line()
    plain = line.plain()
    assert line.connection.home_answered() is plain
    assert line.connection.is_next(plain)
    line.connection.left(plain)
    assert line.connection.in_flight == 0


def test_an_answer_out_of_turn_must_not_leave() -> None:
    line = Line()
    line.queue(Kind.READ)
    plain = line.plain()
    with pytest.raises(AssertionError, match="order of their requests"):
        line.connection.left(plain)


def test_only_the_front_of_the_queue_may_go() -> None:
    line = Line()
    line.queue(Kind.READ)
    second = line.queue(Kind.READ)
    with pytest.raises(AssertionError, match="only the front"):
        line.connection.sent(second, line.home, 1.0)


def test_nothing_is_accepted_behind_a_write_that_waits() -> None:
    line = Line()
    line.queue(Kind.READ)
    assert line.connection.accepts(10, 10)
    write = line.queue(Kind.WRITE)
    assert not line.connection.accepts(10, 10)
    line.goes(line.connection.front or write, line.home)
    line.goes(write, line.home)
    assert line.connection.accepts(10, 10)


@pytest.mark.row("3.6")
def test_the_limits_stop_reading_from_the_client() -> None:
    line = Line()
    line.queue(Kind.READ)
    line.connection.answered(line.plain(), b"123456")
    assert line.connection.accepts(3, 6)
    assert not line.connection.accepts(2, 6), "two are in flight"
    assert not line.connection.accepts(3, 5), "six bytes wait"


def test_an_answer_that_nobody_asked_for_belongs_to_nobody() -> None:
    assert Line().connection.home_answered() is None


def test_loads_count_what_is_out_and_are_freed_at_the_end() -> None:
    line = Line(connected=False)
    line.plain()
    assert line.home.load.in_flight == 0, "nowhere yet"
    line.connection.home_opened(line.home)
    assert line.home.load.in_flight == 1
    line.plain()
    read = line.queue(Kind.READ)
    line.goes(read, line.other)
    assert (line.home.load.in_flight, line.other.load.in_flight) == (2, 1)
    line.connection.home_answered()
    assert line.home.load.in_flight == 1
    line.connection.close()
    assert (line.home.load.in_flight, line.other.load.in_flight) == (0, 0)


def test_time_behind_a_held_read_counts_and_time_behind_a_write_does_not() -> None:
    line = Line()
    line.queue(Kind.READ)
    assert line.queue(Kind.READ).eligible_ms == 1.0
    line.queue(Kind.WRITE)
    assert line.queue(Kind.READ).eligible_ms == 0.0


def test_reads_on_a_channel_are_those_without_an_answer() -> None:
    line = Line()
    first, second = line.queue(Kind.READ), line.queue(Kind.READ)
    line.goes(first, line.other)
    line.goes(second, line.other)
    line.answered(first)
    assert line.connection.reads_on(line.other) == [second]


def test_a_position_shown_on_the_home_connection_never_goes_back() -> None:
    line = Line()
    line.connection.home_showed(7)
    line.connection.home_showed(5)
    assert line.home.shown == 7
