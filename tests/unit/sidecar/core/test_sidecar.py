"""Lost connections, brokers that come and go, elections and other clusters, as conversations with the whole core."""

import pytest

from codec.api_keys import ApiKey
from sidecar.core.cluster import Guarantee
from sidecar.core.events import BrokersSeen, ChannelThrottled, HomeOpened
from sidecar.core.gate import GateSettings
from tests.unit.sidecar.core.conversation import Conversation, address, quorum
from tests.unit.sidecar.core.test_gate import at_rest

METADATA, CREATE = ApiKey.METADATA, ApiKey.CREATE_TOPICS


def routed(talk: Conversation) -> None:
    """A read of a client of broker 1 has gone to broker 2."""
    at_rest(talk, 1, 2)
    client = talk.client(1)
    talk.asks(client, CREATE)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA)
    talk.head(quorum(11))
    talk.shows(2, 11)
    assert talk.channel(2, shown=11)[-1] == "send Metadata to broker 2"


@pytest.mark.row("3.9")
def test_a_channel_that_its_broker_does_not_read_from_is_left_alone_for_so_long() -> None:
    talk = Conversation()
    routed(talk)
    first = talk.last[-1]
    channel = first.channel
    assert channel is not None
    talk.answers(first)
    assert talk(ChannelThrottled(channel, 2000)) == []
    end_ms = talk.now_ms + 2000
    assert talk.asks(first.connection, METADATA) == [], "only broker 2 has what the session has seen"
    assert talk.shows(2, 11) == []
    assert talk.last[-1] in talk.core.gate.held
    assert talk.core.wakeup_ms() <= end_ms
    assert talk.wait(end_ms - talk.now_ms - 1) == []
    assert talk.wait(1)[-1] == "send Metadata to broker 2"


@pytest.mark.row("3.8")
def test_a_routed_read_whose_channel_breaks_is_decided_again() -> None:
    talk = Conversation()
    routed(talk)
    read = talk.last[-1]
    assert talk.channel_breaks(2) == [], "its client notices nothing"
    assert read in talk.core.gate.held
    assert talk.core.cluster.loads.keys() == {1, 2}
    assert all(load.in_flight == 0 for load in talk.core.cluster.loads.values())
    assert talk.shows(1, 11) == ["release Metadata: proven (broker behind)", "send Metadata to home"]


def test_a_read_behind_a_broken_one_waits_behind_it_again() -> None:
    talk = Conversation()
    routed(talk)
    first = talk.last[-1]
    writer = talk.client(2)
    talk.asks(writer, CREATE)
    talk.answers(talk.last[-1])
    talk.asks(first.connection, METADATA)
    second = talk.last[-1]
    assert list(talk.core.gate.held) == [second], "it requires more than the first and may only follow it"
    talk.channel_breaks(2)
    assert list(talk.core.gate.held) == [first], "the earlier one is in front again"
    assert talk.core.gate.held_bytes == len(first.request.payload)
    assert talk.leaves(first.connection)[0].endswith("client_left (own write)")
    assert not talk.core.gate.held


def test_a_lost_home_connection_closes_its_client_after_what_is_answered() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=10)
    client = talk.client(1)
    assert talk.home_breaks(client) == ["deliver", "close client: broker_closed"]
    assert talk.core.cluster.view.brokers[client.node_id].visible == -1, "it may be another process now"


def test_a_home_connection_that_never_opened_is_called_unreachable() -> None:
    talk = Conversation(brokers=1)
    client = talk.client(1, connected=False)
    assert talk.home_breaks(client) == ["deliver", "close client: broker_unreachable"]


def test_a_home_connection_that_opens_after_its_client_left_counts_for_nothing() -> None:
    talk = Conversation(brokers=1)
    client = talk.client(1, connected=False)
    talk.leaves(client)
    assert talk(HomeOpened(client, 7)) == []
    assert talk.core.cluster.loads[client.node_id].in_flight == 0


@pytest.mark.row("2.1")
def test_the_bootstrap_port_is_served_by_the_live_broker_with_the_fewest_clients() -> None:
    talk = Conversation()
    assert talk.core.open_client(None) is None, "nobody is up"
    talk.up(2, at=10)
    assert talk.client(None).node_id == 2
    talk.up(1, at=10)
    assert talk.client(None).node_id == 1


def test_a_port_whose_broker_is_unknown_serves_nobody() -> None:
    talk = Conversation(brokers=1)
    assert talk.core.open_client(address(9).node_id) is None


def test_a_promise_on_a_broker_that_goes_down_becomes_one_on_the_head() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    first, second = talk.client(1), talk.client(2)
    talk.shows(1, 11)
    talk.asks(first, METADATA)
    talk.answers(talk.last[-1])
    talk.asks(second, METADATA)
    talk.down(1)
    assert talk.shows(2, 11) == [], "nobody can tell any more what broker 1 had"
    assert talk.head(quorum(11)) == ["release Metadata: proven (earlier read)", "send Metadata to home"]


def test_the_answer_of_a_process_that_died_promises_the_head_and_not_what_its_successor_has() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client, other = talk.client(1), talk.client(1)
    talk.shows(1, 11)
    talk.asks(client, METADATA)
    (read,) = talk.last
    talk.down(1)
    talk.up(1, at=3)
    talk.answers(read)
    (session,) = talk.core.sessions
    assert session.bound.head_promised, "the answer was built by the former process"
    assert not session.bound.brokers
    assert talk.asks(other, METADATA) == []


def test_a_broker_that_does_not_answer_probes_is_given_up_with_all_that_waits_for_it() -> None:
    talk = Conversation(settings=GateSettings(wait_timeout_ms=20_000))
    at_rest(talk, 1, 2)
    first, second = talk.client(1), talk.client(2)
    talk.shows(1, 11)
    talk.asks(first, METADATA)
    talk.answers(talk.last[-1])
    talk.asks(second, METADATA)
    lines = []
    while talk.core.cluster.live != [2]:
        lines += talk.wait(1000)
        if 2 in talk.probing:
            lines += talk.probed(2, 11)
    assert lines == ["reset probe of 1"]
    assert talk.head(quorum(11)) == ["release Metadata: proven (earlier read)", "send Metadata to home"]


def test_a_broker_that_left_takes_its_promises_and_its_channel_with_it() -> None:
    talk = Conversation()
    routed(talk)
    read = talk.last[-1]
    talk.down(2)
    assert talk.described(1) == ["unwatch 2"]
    assert read in talk.core.gate.held
    assert read.bound is not None
    assert not read.bound.brokers


def test_a_broker_that_moved_is_another_incarnation() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client = talk.client(2)
    talk.shows(2, 11)
    talk.asks(client, METADATA)
    talk.answers(talk.last[-1])
    (session,) = talk.core.sessions
    assert list(session.bound.brokers) == [2]
    before = talk.core.cluster.view.brokers[client.node_id].incarnation
    assert talk(BrokersSeen((address(2, port=9999),))) == ["unwatch 2", "watch 2"]
    assert talk.core.cluster.view.brokers[client.node_id].incarnation > before
    assert not session.bound.brokers
    assert session.bound.head_promised


def test_a_broker_that_is_merely_seen_is_watched() -> None:
    talk = Conversation(brokers=1)
    assert talk(BrokersSeen((address(1), address(7)))) == ["watch 7"]


def test_another_cluster_makes_all_sessions_start_again() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1, at=100)
    client = talk.client(1)
    talk.asks(client, METADATA)
    assert talk.described(1, cluster_id="another") == ["unwatch 1", "watch 1"]
    (session,) = talk.core.sessions
    assert session.bound.visible == -1
    assert session.bound.head_promised
    assert talk.core.cluster.view.head is None
    (held,) = talk.core.gate.held.values()
    assert held.bound.visible == -1, "what is held would wait for ever for an offset of the former log"


def test_a_head_that_is_lower_at_a_later_epoch_is_another_log() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1, at=100)
    talk.head(quorum(3, epoch=6))
    (session,) = talk.core.sessions
    assert session.bound.visible <= 3
    assert talk.core.cluster.view.head is not None
    assert talk.core.cluster.view.head.offset == 3


def test_a_deposed_leader_releases_nothing() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1)
    client = talk.client(1)
    talk.asks(client, CREATE)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA)
    assert talk.headed(quorum(10, fetched_ms_ago=2200)) == []
    assert talk.shows(1, 10) == []
    talk.wait(20)
    assert talk.head(quorum(11, epoch=6)) == []
    assert talk.shows(1, 11) == ["release Metadata: proven (own write)", "send Metadata to home"]


def test_what_can_be_promised_is_said_with_the_reason() -> None:
    talk = Conversation(brokers=1)
    assert talk.core.cluster.guarantee() == (Guarantee.NONE, ["no broker reachable"])
    talk.up(1, at=10)
    talk.head(quorum(10))
    assert talk.core.cluster.guarantee() == (Guarantee.FULL, [])
    talk.wait(1000)
    talk.refuses_head()
    guarantee, reasons = talk.core.cluster.guarantee()
    assert guarantee is Guarantee.DEGRADED
    assert "lacks Describe" in reasons[0]


def test_an_idle_core_asks_once_a_second_and_sleeps_in_between() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=10)
    talk.head(quorum(10))
    wakeups = set()
    for _ in range(20):
        wakeup_ms = talk.core.wakeup_ms()
        assert wakeup_ms > talk.now_ms
        wakeups.add(wakeup_ms)
        talk.wait(wakeup_ms - talk.now_ms)
        if talk.probing:
            talk.probed(1, 10)
        if talk.asking_head:
            talk.headed(quorum(10))
    assert max(wakeups) - min(wakeups) >= 6000


def test_a_silent_broker_does_not_keep_the_core_awake() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=10)
    talk.asks(talk.client(1), METADATA)
    talk.wait(250)
    assert talk.core.wakeup_ms() > talk.now_ms, "the one broker is being asked for the head already"
