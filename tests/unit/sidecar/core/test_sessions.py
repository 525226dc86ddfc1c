"""Who shares what has been seen, and who is owed what."""

import pytest

from sidecar.core.bounds import Why
from sidecar.core.ids import NodeId, Seq
from sidecar.core.sessions import Scope, Sessions, session_name
from sidecar.core.view import Broker, Head


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        (Scope.SERVICE, "service"),
        (Scope.CLIENT_ID, "client_id:app"),
        (Scope.CONNECTION, "connection:7"),
    ],
)
def test_names(scope: Scope, name: str) -> None:
    assert session_name(scope, 7, "app") == name


def test_clients_without_an_id_share_one_session() -> None:
    assert session_name(Scope.CLIENT_ID, 7, None) == session_name(Scope.CLIENT_ID, 8, "")


def test_a_new_session_is_owed_the_head_as_of_its_creation() -> None:
    sessions = Sessions(10, 1000)
    session = sessions.of("a", Seq(5), 0)
    assert (session.bound.head, session.bound.head_why) == (5, Why.NEW_SESSION)
    assert sessions.owed_head
    assert sessions.of("a", Seq(9), 1) is session
    assert session.bound.head == 5


def test_a_head_asked_for_later_pays_all_that_it_covers() -> None:
    sessions = Sessions(10, 1000)
    first, second = sessions.of("a", Seq(5), 0), sessions.of("b", Seq(15), 0)
    sessions.head_confirmed(Head(offset=20, leader_epoch=1, asked=Seq(10)))
    assert (first.bound.visible, second.bound.visible) == (20, -1)
    assert [session.name for session in sessions._owed_head] == ["b"]
    sessions.head_confirmed(Head(offset=21, leader_epoch=1, asked=Seq(16)))
    assert (first.bound.visible, second.bound.visible) == (20, 21)
    assert not sessions._owed_head


def test_the_least_recently_seen_session_is_evicted_and_starts_again_with_a_promise() -> None:
    sessions = Sessions(2, 1000)
    first = sessions.of("a", Seq(1), 0)
    sessions.of("b", Seq(2), 0)
    sessions.of("a", Seq(3), 0)
    sessions.of("c", Seq(4), 0)
    assert [session.name for session in sessions] == ["a", "c"]
    assert sessions.of("a", Seq(5), 0) is first
    again = sessions.of("b", Seq(6), 0)
    assert again.bound.head == 6
    assert len(sessions) == 2


def test_idle_sessions_are_forgotten_unless_a_client_is_there() -> None:
    sessions = Sessions(10, 1000)
    sessions.of("idle", Seq(1), 0)
    sessions.of("used", Seq(2), 0).clients = 1
    sessions.of("recent", Seq(3), 500)
    sessions.forget_idle(1001)
    assert [session.name for session in sessions] == ["used", "recent"]
    assert {session.name for session in sessions._owed_head} == {"used", "recent"}


def test_the_session_of_a_connection_ends_with_it_and_others_do_not() -> None:
    sessions = Sessions(10, 1000)
    for name in ("connection:1", "service"):
        session = sessions.of(name, Seq(1), 0)
        session.clients = 1
        sessions.client_left(session)
    assert [session.name for session in sessions] == ["service"]


def test_an_evicted_session_may_be_left_and_its_namesake_stays() -> None:
    sessions = Sessions(1, 1000)
    evicted = sessions.of("connection:1", Seq(1), 0)
    evicted.clients = 1
    sessions.of("connection:2", Seq(2), 0)
    namesake = sessions.of("connection:1", Seq(3), 0)
    sessions.client_left(evicted)
    assert list(sessions) == [namesake]


def test_a_broker_pays_its_promises_or_passes_them_to_the_head() -> None:
    sessions = Sessions(10, 1000)
    session = sessions.of("a", Seq(1), 0)
    sessions.head_confirmed(Head(offset=5, leader_epoch=1, asked=Seq(2)))
    broker = Broker(node_id=NodeId(1), up=True, visible=8, proven=Seq(4))
    sessions.owe_broker(session, broker, Seq(3))
    sessions.broker_probed(broker)
    assert (session.bound.visible, session.bound.brokers) == (8, {})
    sessions.owe_broker(session, broker, Seq(5))
    sessions.broker_probed(Broker(node_id=NodeId(1), up=True, incarnation=1, visible=3, proven=Seq(6)))
    assert (session.bound.visible, session.bound.head, sessions.owed_head) == (8, 5, True)


def test_a_broker_that_left_passes_its_promises_to_the_head() -> None:
    sessions = Sessions(10, 1000)
    session = sessions.of("a", Seq(1), 0)
    sessions.head_confirmed(Head(offset=5, leader_epoch=1, asked=Seq(2)))
    sessions.owe_broker(session, Broker(node_id=NodeId(1), up=True, visible=8, proven=Seq(2)), Seq(3))
    sessions.broker_gone(NodeId(1))
    sessions.broker_gone(NodeId(2))
    assert (session.bound.brokers, session.bound.head, sessions.owed_head) == ({}, 3, True)


def test_a_reset_forgets_numbers_and_remembers_that_access_was_changed() -> None:
    sessions = Sessions(10, 1000)
    reader, writer = sessions.of("reader", Seq(1), 0), sessions.of("writer", Seq(1), 0)
    sessions.owe_head(writer, Seq(2), Why.OWN_WRITE, effective=True)
    sessions.head_confirmed(Head(offset=50, leader_epoch=1, asked=Seq(3)))
    sessions.reset(Seq(9))
    for session in (reader, writer):
        assert (session.bound.visible, session.bound.effective, session.bound.head) == (-1, -1, 9)
    assert (reader.bound.head_effective, writer.bound.head_effective) == (0, 9)
