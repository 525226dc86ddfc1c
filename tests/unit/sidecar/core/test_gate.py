"""Holding, releasing and giving up, as conversations."""

import pytest

from codec.api_keys import ApiKey
from sidecar.core.cluster import HeadSource
from sidecar.core.gate import GateSettings, OnTimeout
from sidecar.core.levels import Level, Policy
from tests.unit.sidecar.core.conversation import Conversation, quorum

METADATA, CREATE, ACLS = ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.CREATE_ACLS


def at_rest(talk: Conversation, *node_ids: int, at: int = 10) -> None:
    """Brokers are up and caught up, and the session of the service has one number and no promise."""
    talk.up(*node_ids, at=at)
    client = talk.client(node_ids[0])
    talk.asks(client, METADATA)
    talk.head(quorum(at))
    talk.shows(node_ids[0], at)
    talk.answers(talk.last[-1])
    talk.leaves(client)
    for node_id in node_ids:
        talk.shows(node_id, at)
    talk.no_channels()
    talk.last.clear()


def test_the_first_read_of_a_session_waits_for_the_head_as_of_its_creation() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=10)
    client = talk.client(1)
    assert talk.asks(client, METADATA) == []
    assert talk.headed(quorum(10)) == [], "asked before the session came: it redeems nothing"
    assert talk.shows(1, 10) == []
    assert talk.headed(quorum(12)) == [], "now it is a number, which the broker is not known to show"
    assert talk.shows(1, 11) == []
    assert talk.shows(1, 12) == ["release Metadata: proven (new session)", "send Metadata to home"]


def test_a_session_at_rest_reads_without_any_wait() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client = talk.client(1)
    talk.shows(1, 10)
    assert talk.asks(client, METADATA) == ["send Metadata to home"]
    assert talk.asks(client, METADATA) == ["send Metadata to home"], "and again behind the first"


def test_a_read_after_a_write_waits_until_a_broker_has_the_head_asked_for_after_the_answer() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    writer, reader = talk.client(1), talk.client(2)
    assert talk.asks(writer, CREATE) == ["send CreateTopics to home"]
    (write,) = talk.last
    assert talk.answers(write) == ["deliver"]
    assert 1 in talk.asking_head, "through the broker that relayed the write"
    assert talk.asks(reader, METADATA) == []
    assert talk.head(quorum(11)) == []
    assert talk.shows(2, 10) == []
    assert talk.shows(2, 11) == ["release Metadata: proven (own write)", "send Metadata to home"]


def test_a_read_goes_to_another_broker_that_has_caught_up() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client = talk.client(1)
    talk.asks(client, CREATE)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA)
    talk.head(quorum(11))
    assert talk.shows(2, 11) == ["open channel to 2"]
    assert talk.channel(2, shown=11) == ["release Metadata: proven (own write)", "send Metadata to broker 2"]


def test_reads_stay_at_home_where_the_identity_cannot_be_carried() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client = talk.client(1, identity=None)
    talk.asks(client, CREATE)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA)
    talk.head(quorum(11))
    assert talk.shows(2, 11) == []
    assert talk.shows(1, 11) == ["release Metadata: proven (own write)", "send Metadata to home"]


def test_what_was_read_from_a_broker_is_free_on_that_broker_and_asked_for_elsewhere() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    first, second = talk.client(1), talk.client(2)
    talk.shows(1, 10)
    talk.shows(2, 10)
    talk.asks(first, METADATA)
    talk.answers(talk.last[-1])
    assert talk.asks(first, METADATA) == ["send Metadata to home"]
    assert talk.asks(second, METADATA) == ["open channel to 1"], "and so it waits for what broker 1 had"
    assert talk.shows(1, 12) == [], "that is 12 now, which broker 2 does not show yet"
    assert talk.shows(2, 12) == ["release Metadata: proven (earlier read)", "send Metadata to home"]


def test_a_change_of_access_must_act_before_anything_is_read() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1)
    client = talk.client(1)
    talk.asks(client, ACLS)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA)
    talk.head(quorum(11))
    assert talk.shows(1, 11) == [], "visible; a later position proves that it acts"
    assert talk.shows(1, 12) == ["release Metadata: proven (own write)", "send Metadata to home"]


def test_a_read_of_rules_waits_until_what_the_session_saw_acts() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1)
    client = talk.client(1)
    talk.shows(1, 11)
    talk.asks(client, METADATA)
    talk.answers(talk.last[-1])
    assert talk.asks(client, ApiKey.DESCRIBE_ACLS) == [], "broker 1 showed it, and need not have acted upon it"
    assert talk.shows(1, 11) == []
    assert talk.shows(1, 12) == ["release DescribeAcls: proven (earlier read)", "send DescribeAcls to home"]


def test_without_later_records_a_read_of_rules_ends_after_the_grace() -> None:
    talk = Conversation(brokers=1, settings=GateSettings(effective_grace_ms=500, wait_timeout_ms=3000))
    at_rest(talk, 1)
    client = talk.client(1)
    talk.asks(client, ACLS)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA)
    talk.head(quorum(11))
    talk.shows(1, 11)
    assert talk.wait(499) == []
    released, refused = talk.wait(1)
    assert released == "release Metadata: error (own write)"
    assert refused.startswith("refuse Metadata: no broker was seen to act upon the session's last change within 50")


def test_pipelined_behind_a_write_a_read_takes_its_bound_when_that_is_answered() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1)
    client = talk.client(1)
    talk.shows(1, 10)
    assert talk.asks(client, CREATE) == ["send CreateTopics to home"]
    assert talk.asks(client, METADATA) == [], "no bound yet"
    write, read = talk.last
    assert read.bound is None
    assert talk.answers(write) == ["deliver"]
    talk.head(quorum(11))
    assert talk.shows(1, 10) == []
    assert talk.shows(1, 11) == ["release Metadata: proven (own write)", "send Metadata to home"]


def test_a_write_waits_behind_a_held_read_and_reading_from_the_client_pauses() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=10)
    client = talk.client(1)
    assert talk.asks(client, METADATA) == []
    assert client.accepts(100, 100)
    assert talk.asks(client, CREATE) == []
    assert not client.accepts(100, 100)
    talk.head(quorum(10))
    assert talk.shows(1, 10) == [
        "release Metadata: proven (new session)",
        "send Metadata to home",
        "send CreateTopics to home",
    ]
    assert client.accepts(100, 100)


def test_a_held_read_does_not_wait_for_the_writes_of_others() -> None:
    talk = Conversation(brokers=1)
    at_rest(talk, 1)
    reader, writer = talk.client(1), talk.client(1)
    assert talk.asks(reader, METADATA) == [], "the connection is newer than what is known of the broker"
    talk.asks(writer, CREATE)
    talk.answers(talk.last[-1])
    assert talk.shows(1, 10) == ["release Metadata: proven (not effective)", "send Metadata to home"]


def test_missing_topics_turn_a_read_into_a_create_at_home() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client = talk.client(1)
    talk.shows(1, 10)
    assert talk.asks(client, METADATA, may_create=True) == ["send Metadata to home, creating nothing"]
    (read,) = talk.last
    assert talk.answers(read, creates=True) == ["send create by Metadata to home"], "broker 1 has what it showed itself"
    assert talk.answers(read) == ["deliver"]
    assert talk.asks(client, METADATA) == [], "answered like a write: the head is promised"


def test_a_create_waits_until_its_own_broker_has_what_another_showed() -> None:
    talk = Conversation()
    at_rest(talk, 1, 2)
    client = talk.client(1)
    talk.asks(client, CREATE)
    talk.answers(talk.last[-1])
    talk.asks(client, METADATA, may_create=True)
    read = talk.last[-1]
    talk.head(quorum(11))
    talk.shows(2, 11)
    talk.channel(2, shown=11)
    assert read.channel is not None
    assert read.channel.node_id == 2
    assert talk.answers(read, creates=True) == []
    talk.shows(2, 11)
    assert talk.shows(1, 11) == ["release create by Metadata: proven (earlier read)", "send create by Metadata to home"]


def test_linearizable_reads_ask_for_the_head_after_their_arrival() -> None:
    talk = Conversation(brokers=1, policy=Policy(level=Level.LINEARIZABLE))
    at_rest(talk, 1)
    client = talk.client(1)
    talk.shows(1, 10)
    assert talk.asks(client, METADATA) == []
    talk.head(quorum(11))
    assert talk.shows(1, 11) == ["release Metadata: proven (linearizable)", "send Metadata to home"]


def test_eventual_reads_go_at_once_even_in_a_new_session() -> None:
    talk = Conversation(brokers=1, policy=Policy(level=Level.EVENTUAL))
    talk.up(1, at=10)
    assert talk.asks(talk.client(1), METADATA) == ["send Metadata to home"]


# When time is up


def held(on_timeout: OnTimeout) -> Conversation:
    """A read that waits for the head as broker 2 shows more than broker 1, its own."""
    talk = Conversation(settings=GateSettings(on_timeout=on_timeout, wait_timeout_ms=300))
    talk.up(1, at=10)
    talk.up(2, at=15)
    talk.channel(2, shown=15)
    client = talk.client(1)
    assert talk.asks(client, METADATA) == []
    assert talk.wait(299) == []
    return talk


def test_on_timeout_error_refuses_and_goes_on() -> None:
    talk = held(OnTimeout.ERROR)
    (read,) = talk.last
    assert talk.wait(1) == [
        "release Metadata: error (new session)",
        "refuse Metadata: the head of the metadata log could not be confirmed within 300 ms",
    ]
    assert talk.makes(read) == ["deliver"]
    assert talk.core.gate.held_bytes == 0


def test_on_timeout_stale_asks_the_clients_own_broker() -> None:
    assert held(OnTimeout.STALE).wait(1) == ["release Metadata: stale (new session)", "send Metadata to home"]


def test_on_timeout_freshest_asks_the_broker_that_is_farthest_ahead() -> None:
    assert held(OnTimeout.FRESHEST).wait(1) == ["release Metadata: freshest (new session)", "send Metadata to broker 2"]


def test_on_timeout_close_closes() -> None:
    assert held(OnTimeout.CLOSE).wait(1) == ["release Metadata: close (new session)", "close client: wait_timeout"]


def test_without_a_home_connection_stale_becomes_an_error() -> None:
    talk = Conversation(brokers=1, settings=GateSettings(on_timeout=OnTimeout.STALE, wait_timeout_ms=300))
    talk.up(1, at=10)
    talk.asks(talk.client(1, connected=False), METADATA)
    assert talk.wait(300)[0] == "release Metadata: error (new session)"


def test_the_deadlines_of_pipelined_reads_do_not_add_up() -> None:
    talk = Conversation(brokers=1, settings=GateSettings(wait_timeout_ms=300))
    talk.up(1, at=10)
    client = talk.client(1)
    talk.asks(client, METADATA)
    talk.wait(100)
    talk.asks(client, METADATA)
    first, second = talk.last
    talk.wait(200)
    talk.makes(first)
    assert second in talk.core.gate.held
    assert talk.wait(99) == []
    assert talk.wait(1)[0] == "release Metadata: error (new session)"


# Limits, and the end of a client


def test_a_client_that_leaves_frees_its_hold() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=10)
    client = talk.client(1)
    talk.asks(client, METADATA)
    assert talk.leaves(client) == ["release Metadata: client_left (new session)"]
    assert not talk.core.gate.held
    assert talk.core.gate.held_bytes == 0
    assert talk.core.gate.wakeup_ms() == float("inf")


@pytest.mark.parametrize(
    "limits", [GateSettings(held_requests_max=1), GateSettings(held_bytes_max=10)], ids=["requests", "bytes"]
)
def test_beyond_the_limits_a_client_is_closed_instead_of_held(limits: GateSettings) -> None:
    talk = Conversation(brokers=1, settings=limits)
    talk.up(1, at=10)
    assert talk.asks(talk.client(1), METADATA) == []
    assert talk.asks(talk.client(1), METADATA) == ["close client: too_many_held"]


# Degraded


def test_where_the_head_is_refused_all_live_brokers_stand_in_for_it() -> None:
    talk = Conversation()
    talk.up(1, 2, at=10)
    client = talk.client(1)
    talk.refuses_head()
    assert talk.asks(client, METADATA) == []
    assert talk.shows(1, 11) == []
    assert talk.shows(2, 10) == ["release Metadata: proven (new session)", "send Metadata to home"], "now both said so"
    assert talk.last[0].connection.node_id == 1


def test_head_source_broker_max_never_asks_for_the_head() -> None:
    talk = Conversation(source=HeadSource.BROKER_MAX, brokers=1)
    talk.up(1, at=10)
    talk.asks(talk.client(1), METADATA)
    talk.wait(1500)
    assert not talk.asking_head


def test_brokers_without_positions_are_passed_through() -> None:
    talk = Conversation(brokers=1)
    talk.up(1, at=None)
    assert talk.asks(talk.client(1), METADATA) == ["send Metadata to home"]
