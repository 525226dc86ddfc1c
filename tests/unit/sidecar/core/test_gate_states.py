"""Brokers, and clients, that implement the proposal, as conversations."""

import pytest

from codec.api_keys import ApiKey
from codec.headers import ConsistencyState
from sidecar.core.exchange import Exchange
from sidecar.core.gate import GateSettings, OnTimeout
from sidecar.core.ids import NodeId
from sidecar.core.states import Complaint
from sidecar.core.view import Broker
from tests.unit.sidecar.core.conversation import CLUSTER, Conversation, quorum

METADATA, CREATE, ACLS = ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.CREATE_ACLS
FLEXIBLE = 12


def resting(brokers: int = 2, settings: GateSettings | None = None) -> Conversation:
    """Brokers that carry states, at 10, and a session that requires just that."""
    talk = Conversation(brokers=brokers, carries_state=True, settings=settings)
    talk.up(*range(1, brokers + 1), at=10)
    client = talk.client(1)
    talk.asks(client, METADATA, api_version=FLEXIBLE)
    talk.head(quorum(10))
    talk.shows(1, 10)
    talk.answers(talk.last[-1], token=10)
    talk.leaves(client)
    for node_id in range(1, brokers + 1):
        talk.shows(node_id, 10)
    talk.no_channels()
    talk.last.clear()
    return talk


def broker(talk: Conversation, node_id: int) -> Broker:
    return talk.core.cluster.view.brokers[NodeId(node_id)]


def token(offset: int, cluster_id: str | None = CLUSTER) -> ConsistencyState:
    return ConsistencyState(cluster_id=cluster_id, consistency_token=offset)


def read(talk: Conversation, *, state: ConsistencyState | None = None) -> Exchange:
    """A read of a new client of broker 1 that is sent at once, on a connection that a probe has proven."""
    client = talk.client(1)
    talk.shows(1, 10)
    assert talk.asks(client, METADATA, api_version=FLEXIBLE, state=state) == ["send Metadata to home"]
    return talk.last[-1]


def test_a_read_is_stamped_with_what_its_session_has_seen() -> None:
    talk = resting()
    assert read(talk).stamp == token(10)


def test_a_token_in_an_answer_counts_as_a_probe_that_was_sent_with_the_read() -> None:
    talk = resting()
    exchange = read(talk)
    talk.answers(exchange, token=12)
    assert broker(talk, 1).visible == 12
    assert broker(talk, 1).effective == 10, "everything below the one before is acted upon"
    assert broker(talk, 1).proven == exchange.sent
    assert [session.bound.visible for session in talk.core.sessions] == [12]
    assert not any(session.bound.brokers for session in talk.core.sessions), "a number takes the place of the promise"


def test_what_a_token_tells_releases_what_others_wait_for() -> None:
    talk = resting()
    exchange = read(talk)
    second = talk.client(2)
    talk.shows(2, 10)
    talk.asks(second, METADATA, api_version=FLEXIBLE, state=token(11))
    assert talk.last[-1] in talk.core.gate.held
    talk.head(quorum(11))
    assert talk.last[-1] in talk.core.gate.held, "11 is there, but no broker is known to show it"
    assert talk.answers(exchange, token=11) == ["deliver", "open channel to 1"], "now broker 1 is"


def test_a_token_of_a_process_that_may_be_gone_is_no_position() -> None:
    talk = resting()
    exchange = read(talk)
    talk.down(1)
    talk.up(1, at=5)
    talk.answers(exchange, token=12)
    assert broker(talk, 1).visible == 5
    assert [session.bound.visible for session in talk.core.sessions] == [12], "still, somebody has 12"


def test_a_token_on_a_connection_that_nothing_has_proven_is_no_position() -> None:
    talk = resting()
    client = talk.client(1)
    talk.asks(client, METADATA, api_version=FLEXIBLE)
    exchange = talk.last[-1]
    assert exchange in talk.core.gate.held
    talk.shows(1, 10)
    exchange.process = -1
    talk.answers(exchange, token=12)
    assert broker(talk, 1).visible == 10
    assert client.home is not None
    assert client.home.shown == 12, "of that connection it is"


def test_a_probe_that_was_overtaken_by_a_token_does_not_end_the_incarnation() -> None:
    talk = resting()
    exchange = read(talk)
    talk.wait(1000)
    before = broker(talk, 1).incarnation
    talk.answers(exchange, token=12)
    talk.probed(1, 11)
    assert (broker(talk, 1).incarnation, broker(talk, 1).visible) == (before, 12)
    talk.shows(1, 11)
    assert broker(talk, 1).incarnation == before + 1, "this one was asked later, and cannot find less"


def test_a_token_in_the_answer_to_a_write_is_no_position_and_replaces_no_promise() -> None:
    talk = resting()
    client = talk.client(1)
    talk.asks(client, ACLS)
    talk.answers(talk.last[-1], token=11)
    assert broker(talk, 1).visible == 10
    (session,) = talk.core.sessions
    assert (session.bound.visible, session.bound.effective) == (11, 11)
    assert session.bound.head_promised
    assert talk.asks(client, METADATA, api_version=FLEXIBLE) == []
    talk.head(quorum(13))
    assert talk.shows(1, 12) == []
    assert talk.shows(1, 13) == []
    assert talk.shows(1, 14) == ["release Metadata: proven (own write)", "send Metadata to home"]
    assert talk.last[-1].stamp == token(13)


def test_an_answer_without_a_token_leaves_the_promise() -> None:
    talk = resting()
    talk.answers(read(talk))
    (session,) = talk.core.sessions
    assert list(session.bound.brokers) == [1]


def test_reads_with_tokens_put_off_idle_probes() -> None:
    talk = resting()
    exchange = read(talk)
    talk.now_ms += 900
    talk.answers(exchange, token=10)
    before = talk.core.cluster.wakeup_ms()
    read_again = talk.asks(exchange.connection, METADATA, api_version=FLEXIBLE)
    assert read_again == ["send Metadata to home"]
    talk.answers(talk.last[-1], token=10)
    talk.probing.clear()
    talk.now_ms = before
    talk.wait(0)
    assert 1 not in talk.probing, "the read was sent 900 ms after the last probe"


def test_a_read_that_is_refused_as_stale_goes_to_another_broker() -> None:
    talk = resting()
    exchange = read(talk)
    talk.channel(2, shown=10)
    before = broker(talk, 1).incarnation
    assert talk.complains(exchange, Complaint.STALE) == ["send Metadata to broker 2"]
    assert broker(talk, 1).incarnation == before + 1, "what was known of it cannot be true"
    assert exchange.stamp == token(10)


def test_a_broker_that_goes_on_refusing_does_not_keep_a_read_for_ever() -> None:
    talk = resting(1, settings=GateSettings(wait_timeout_ms=3000))
    exchange = read(talk)
    for _ in range(3):
        assert talk.complains(exchange, Complaint.STALE) == []
        assert talk.shows(1, 10)[-1] == "send Metadata to home", "it says that it has what is required"
    talk.now_ms += 3000
    assert talk.complains(exchange, Complaint.STALE) == []
    talk.probing.pop(1, None)
    talk.core.cluster.want(frozenset(), head=False)
    (line, refusal) = [line for line in talk.wait(0) if "Metadata" in line]
    assert line.startswith("release Metadata: error")
    assert refusal.startswith("refuse Metadata")


def test_a_read_that_ends_unproven_carries_no_stamp() -> None:
    talk = resting(1, settings=GateSettings(wait_timeout_ms=3000, on_timeout=OnTimeout.STALE))
    exchange = read(talk)
    talk.complains(exchange, Complaint.STALE)
    talk.now_ms += 3000
    assert talk.wait(0)[-1] == "send Metadata to home"
    assert exchange.stamp is None


def test_a_broker_of_another_cluster_is_forgotten_and_asked_again_without_a_stamp() -> None:
    talk = resting(1)
    exchange = read(talk)
    assert talk.complains(exchange, Complaint.FOREIGN) == ["rediscover"]
    assert talk.core.cluster.doubted
    assert talk.shows(1, 10)[-1] == "send Metadata to home"
    assert exchange.stamp is None
    assert talk.answers(exchange, token=10) == ["deliver"]
    talk.described(1)
    assert not talk.core.cluster.doubted


def test_a_state_of_another_cluster_is_not_believed_and_discovery_is_asked_to_look() -> None:
    talk = resting(1)
    assert talk.answers(read(talk), token=99, cluster_id="another") == ["rediscover", "deliver"]
    assert broker(talk, 1).visible == 10
    talk.described(1, cluster_id="another")
    assert talk.core.cluster.cluster_id == "another"


def test_nothing_is_believed_of_a_broker_that_was_not_seen_to_carry_states() -> None:
    talk = resting(1)
    talk.carries_state = False
    exchange = read(talk)
    assert exchange.stamp is None
    talk.answers(exchange, token=99)
    assert broker(talk, 1).visible == 10


# Clients that ask for a token themselves


def test_a_token_of_a_client_becomes_part_of_the_bound_of_its_read_alone() -> None:
    talk = resting(1)
    client = talk.client(1)
    talk.shows(1, 10)
    assert talk.asks(client, METADATA, api_version=FLEXIBLE, state=token(12)) == []
    (held,) = talk.core.gate.held.values()
    assert held.why.value == "client state"
    assert [session.bound.visible for session in talk.core.sessions] == [10]
    talk.head(quorum(13))
    assert talk.shows(1, 11) == []
    assert talk.shows(1, 12) == ["release Metadata: proven (client state)", "send Metadata to home"]
    assert talk.last[-1].stamp == token(12)


def test_a_token_that_is_known_to_exist_is_not_asked_for() -> None:
    talk = resting(1)
    exchange = read(talk, state=token(7))
    assert exchange.stamp == token(10), "the larger of the two"


def test_a_token_that_no_head_has_reached_is_left_to_the_broker_to_refuse() -> None:
    talk = resting(1)
    client = talk.client(1)
    talk.shows(1, 10)
    talk.asks(client, METADATA, api_version=FLEXIBLE, state=token(99))
    lines = talk.head(quorum(10)) + talk.wait(0)
    assert lines == ["release Metadata: error (client state)", "send Metadata to home"]
    assert talk.last[-1].stamp is None, "it carries the client's own"


def test_where_no_broker_knows_tokens_one_out_of_reach_ends_as_if_its_time_were_up() -> None:
    talk = resting(1)
    talk.carries_state = False
    client = talk.client(1)
    talk.shows(1, 10)
    talk.asks(client, METADATA, api_version=FLEXIBLE, state=token(99))
    assert talk.head(quorum(10)) + talk.wait(0) == [
        "release Metadata: error (client state)",
        "refuse Metadata: the client asks for metadata offset 99, which no head of the log has reached",
    ]


@pytest.mark.parametrize("carries_state", [True, False])
def test_a_token_of_another_cluster_is_left_to_the_broker(carries_state: bool) -> None:
    talk = resting(1)
    talk.carries_state = carries_state
    client = talk.client(1)
    talk.shows(1, 10)
    lines = talk.asks(client, METADATA, api_version=FLEXIBLE, state=token(99, "another")) + talk.wait(0)
    assert lines[-1] == "send Metadata to home"
    assert talk.last[-1].stamp is None
