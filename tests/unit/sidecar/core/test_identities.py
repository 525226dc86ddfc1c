"""Who clients are to the brokers: channels carry one identity each, and reads follow their client's."""

import pytest

from sidecar.core.events import ChannelClosed, IdentityChanged, IdentityGone
from sidecar.core.ids import OWN, Identity, NodeId
from tests.unit.sidecar.core.conversation import Conversation, quorum
from tests.unit.sidecar.core.test_gate import CREATE, METADATA, at_rest

ALICE, BOB = Identity(1), Identity(2)

pytestmark = pytest.mark.row("5.4")


def behind(talk: Conversation) -> None:
    """Broker 2 has what a write of the service did; broker 1, the home of all, has not."""
    at_rest(talk, 1, 2)
    writer = talk.client(1)
    talk.asks(writer, CREATE)
    talk.answers(talk.last[-1])
    talk.head(quorum(11))
    talk.shows(2, 11)


def test_each_identity_has_a_channel_of_its_own() -> None:
    talk = Conversation()
    behind(talk)
    alice, bob, own = talk.client(1, identity=ALICE), talk.client(1, identity=BOB), talk.client(1)
    assert talk.asks(alice, METADATA) == ["open channel to 2 as 1"]
    assert talk.asks(bob, METADATA) == ["open channel to 2 as 2"]
    assert talk.asks(own, METADATA) == ["open channel to 2"]
    assert talk.channel(2, shown=11, identity=BOB) == [
        "release Metadata: proven (broker behind)",
        "send Metadata to broker 2",
    ]
    talk.channel(2, shown=11, identity=ALICE)
    talk.channel(2, shown=11)
    channels = talk.core.cluster.channels
    assert len(channels) == 3
    for client, identity in ((alice, ALICE), (bob, BOB), (own, OWN)):
        assert len(client.reads_on(channels[NodeId(2), identity])) == 1


def test_a_client_may_be_routed_once_its_login_was_accepted() -> None:
    talk = Conversation()
    behind(talk)
    client = talk.client(1, identity=None)
    assert talk.asks(client, METADATA) == []
    assert talk(IdentityChanged(client, ALICE)) == ["open channel to 2 as 1"]
    assert talk.channel(2, shown=11, identity=ALICE)[-1] == "send Metadata to broker 2"


def test_while_it_logs_in_again_it_stays_with_its_own_broker() -> None:
    talk = Conversation()
    behind(talk)
    client = talk.client(1, identity=ALICE)
    talk.asks(client, METADATA)
    talk(IdentityChanged(client, None))
    assert talk.channel(2, shown=11, identity=ALICE) == [], "nobody's by now"
    assert talk.shows(1, 11) == ["release Metadata: proven (broker behind)", "send Metadata to home"]


def test_a_read_does_not_follow_another_on_a_channel_of_somebody_else() -> None:
    talk = Conversation()
    behind(talk)
    client = talk.client(1, identity=ALICE)
    talk.asks(client, METADATA)
    talk.channel(2, shown=11, identity=ALICE)
    first = talk.last[-1]
    talk(IdentityChanged(client, BOB))
    assert talk.asks(client, METADATA) == []
    assert talk.answers(first) == ["deliver", "open channel to 2 as 2"]


def test_a_refused_identity_falls_back_to_the_own_broker_and_the_brokers_lose_nothing() -> None:
    talk = Conversation()
    behind(talk)
    client, other = talk.client(1, identity=ALICE), talk.client(1, identity=ALICE)
    talk.asks(client, METADATA)
    talk.channel(2, shown=11, identity=ALICE)
    talk.asks(other, CREATE)
    before = talk.core.cluster.view.brokers[NodeId(2)]
    assert talk(IdentityGone(ALICE)) == []
    assert talk.core.cluster.view.brokers[NodeId(2)] is before
    assert talk.core.cluster.channels == {}
    assert (client.identity, other.identity) == (None, None)
    assert talk.shows(1, 11) == ["release Metadata: proven (broker behind)", "send Metadata to home"]


def test_a_channel_that_the_sidecar_ends_says_nothing_about_its_broker() -> None:
    talk = Conversation()
    behind(talk)
    client = talk.client(1, identity=ALICE)
    talk.asks(client, METADATA)
    talk.channel(2, shown=11, identity=ALICE)
    channel = talk.core.cluster.channels[NodeId(2), ALICE]
    before = talk.core.cluster.view.brokers[NodeId(2)]
    assert talk(ChannelClosed(NodeId(2), channel.channel_id, ALICE, ours=True)) == ["open channel to 2 as 1"]
    assert talk.core.cluster.view.brokers[NodeId(2)] is before
    talk.channel(2, shown=11, identity=ALICE)
    talk.channel_breaks(2, ALICE)
    assert talk.core.cluster.view.brokers[NodeId(2)].incarnation == before.incarnation + 1


def test_a_channel_that_could_not_be_opened_is_asked_for_again_by_the_same_identity_only() -> None:
    talk = Conversation()
    behind(talk)
    alice, bob = talk.client(1, identity=ALICE), talk.client(1, identity=BOB)
    talk.asks(alice, METADATA)
    talk.asks(bob, METADATA)
    talk.no_channels()
    third = talk.client(1, identity=BOB)
    assert talk.asks(third, METADATA) == ["open channel to 2 as 2"]
