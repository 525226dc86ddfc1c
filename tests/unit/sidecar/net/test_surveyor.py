"""Looks at fake clusters: who lags, whom the head is believed from, and what is said of brokers that do not answer."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from config.sidecar import ClusterSecurity
from config.values import HostPort
from sidecar.net.access import Access
from sidecar.survey import ClusterUnreachable, Head, NoHead, Patience, Survey, Surveyor, surveying
from tests.support.fake_broker import Ask, FakeBroker, FakeCluster, HangUp

PATIENCE = Patience(connect_ms=10_000, answer_ms=10_000, head_ms=20_000)
HASTE = Patience(connect_ms=10_000, answer_ms=400, head_ms=800)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(3) as cluster:
        yield cluster


async def look(cluster: FakeCluster, *, patience: Patience = PATIENCE) -> Survey:
    async with surveying(servers(cluster), ClusterSecurity(), patience) as surveyor:
        return await surveyor.look()


def servers(cluster: FakeCluster, *node_ids: int) -> tuple[HostPort, ...]:
    return tuple(HostPort(*cluster.brokers[node_id].address) for node_id in node_ids or cluster.brokers)


def lags(survey: Survey) -> list[int | None]:
    return [survey.lag_records(standing) for standing in survey.brokers]


def offsets(survey: Survey) -> list[int | None]:
    return [standing.offset for standing in survey.brokers]


def head_of(survey: Survey) -> tuple[int, int]:
    assert isinstance(survey.head, Head)
    return survey.head.offset, survey.head.leader_epoch


def reason_of(survey: Survey) -> str:
    assert isinstance(survey.head, NoHead)
    return survey.head.reason


def connections(cluster: FakeCluster) -> int:
    return sum(broker.accepted for broker in cluster.brokers.values())


def without_answer(ask: Ask) -> None:
    return None


async def test_the_lag_of_each_broker(cluster: FakeCluster) -> None:
    cluster.commit(seen_by=(1, 2))
    cluster.commit(seen_by=(2,))
    survey = await look(cluster)
    assert head_of(survey) == (102, 1)
    assert [standing.node_id for standing in survey.brokers] == [1, 2, 3]
    assert [(standing.host, standing.port) for standing in survey.brokers] == [
        broker.address for broker in cluster.brokers.values()
    ]
    assert offsets(survey) == [101, 102, 100]
    assert lags(survey) == [1, 0, 2]
    assert survey.answered
    assert survey.cluster_id == "fake"


async def test_a_record_committed_after_the_head_was_asked_makes_no_negative_lag(cluster: FakeCluster) -> None:
    def commits_behind(ask: Ask) -> dict[str, Any]:
        answer = cluster.quorum()
        cluster.commit()
        return answer

    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.DESCRIBE_QUORUM] = commits_behind
    survey = await look(cluster)
    assert head_of(survey) == (100, 1)
    assert offsets(survey) == [101, 101, 101]
    assert lags(survey) == [0, 0, 0]


async def test_without_the_privilege_the_head_is_unknown_and_says_so(cluster: FakeCluster) -> None:
    cluster.refuses_quorum = True
    survey = await look(cluster)
    assert "CLUSTER_AUTHORIZATION_FAILED; the principal needs Describe on the cluster" in reason_of(survey)
    assert offsets(survey) == [100, 100, 100]
    assert lags(survey) == [None, None, None]
    asked = [len(broker.asked_for(ApiKey.DESCRIBE_QUORUM)) for broker in cluster.brokers.values()]
    assert asked == [1, 1, 1], "each broker may refuse on its own; none is asked twice"


async def test_one_broker_that_has_the_grant_is_enough(cluster: FakeCluster) -> None:
    for node_id in (1, 2):
        cluster.brokers[node_id].handlers[ApiKey.DESCRIBE_QUORUM] = lambda ask: {
            "error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "topics": [],
        }
    assert head_of(await look(cluster)) == (100, 1)


def changed(cluster: FakeCluster, **fields: Any) -> Callable[[Ask], dict[str, Any]]:
    def handler(ask: Ask) -> dict[str, Any]:
        answer = cluster.quorum()
        answer["topics"][0]["partitions"][0].update(fields)
        return answer

    return handler


def stale_voters(count: int) -> list[dict[str, Any]]:
    leader = {
        "replica_id": 9,
        "log_end_offset": 101,
        "last_fetch_timestamp": 1_000_000,
        "last_caught_up_timestamp": 1_000_000,
    }
    return [leader, *({**leader, "replica_id": n, "last_fetch_timestamp": 990_000} for n in range(count))]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"current_voters": stale_voters(2)}, "no majority of the voters has fetched"),
        ({"high_watermark": -1}, "the leader has not committed in its epoch yet"),
        ({"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}, "an error about the metadata log"),
    ],
    ids=["deposed leader", "new leader", "error"],
)
async def test_a_head_that_is_not_to_be_believed(cluster: FakeCluster, fields: dict[str, Any], reason: str) -> None:
    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.DESCRIBE_QUORUM] = changed(cluster, **fields)
    survey = await look(cluster, patience=HASTE)
    assert reason in reason_of(survey)
    assert lags(survey) == [None, None, None]
    # Another broker's leader may be the right one.
    cluster.brokers[3].handlers[ApiKey.DESCRIBE_QUORUM] = lambda ask: cluster.quorum()
    assert head_of(await look(cluster)) == (100, 1)


async def test_the_head_is_asked_again_until_it_is_believed(cluster: FakeCluster) -> None:
    answers = [changed(cluster, high_watermark=-1)] * 4

    def improves(ask: Ask) -> dict[str, Any]:
        return (answers.pop() if answers else changed(cluster))(ask)

    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.DESCRIBE_QUORUM] = improves
    assert head_of(await look(cluster)) == (100, 1)
    assert answers == []


async def test_a_head_that_hangs_holds_no_position_up(cluster: FakeCluster) -> None:
    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.DESCRIBE_QUORUM] = without_answer
    survey = await look(cluster, patience=HASTE)
    assert "no answer came in time" in reason_of(survey)
    assert offsets(survey) == [100, 100, 100]


async def test_the_head_of_an_earlier_epoch_is_not_believed_any_more(cluster: FakeCluster) -> None:
    async with surveying(servers(cluster), ClusterSecurity(), HASTE) as surveyor:
        cluster.leader_epoch = 5
        assert head_of(await surveyor.look()) == (100, 5)
        cluster.leader_epoch = 4
        assert reason_of(await surveyor.look()) == "a leader of a later epoch is known"
        cluster.cluster_id = "another"
        assert head_of(await surveyor.look()) == (100, 4)


async def test_brokers_without_describe_quorum_have_no_position(cluster: FakeCluster) -> None:
    for broker in cluster.brokers.values():
        del broker.versions[ApiKey.DESCRIBE_QUORUM]
    survey = await look(cluster)
    assert reason_of(survey) == "the brokers do not offer DescribeQuorum"
    assert {standing.reason for standing in survey.brokers} == {"reports no metadata position: not a KRaft broker"}
    assert offsets(survey) == [None, None, None]
    assert survey.answered


async def test_a_broker_that_shows_no_position(cluster: FakeCluster) -> None:
    cluster.brokers[2].position = None
    survey = await look(cluster)
    assert offsets(survey) == [100, None, 100]
    assert lags(survey) == [0, None, 0]


async def test_a_broker_that_is_down(cluster: FakeCluster) -> None:
    await cluster.brokers[2].stop()
    survey = await look(cluster)
    assert lags(survey) == [0, None, 0]
    assert survey.brokers[1].reason == "cannot connect: Connection refused"
    assert survey.answered


async def test_a_broker_that_stands_still(cluster: FakeCluster) -> None:
    async with surveying(servers(cluster), ClusterSecurity(), HASTE) as surveyor:
        assert lags(await surveyor.look()) == [0, 0, 0]
        answer = cluster.brokers[2].handlers.pop(ApiKey.API_VERSIONS)
        cluster.brokers[2].handlers[ApiKey.API_VERSIONS] = without_answer
        survey = await surveyor.look()
        assert lags(survey) == [0, None, 0]
        assert survey.brokers[1].reason == "no answer came in time"
        cluster.brokers[2].handlers[ApiKey.API_VERSIONS] = answer
        assert lags(await surveyor.look()) == [0, 0, 0]


async def test_connections_are_kept_and_closed_in_the_end(cluster: FakeCluster) -> None:
    async with surveying(servers(cluster), ClusterSecurity(), PATIENCE) as surveyor:
        await surveyor.look()
        opened = connections(cluster)
        cluster.commit()
        survey = await surveyor.look()
        assert (head_of(survey), lags(survey)) == ((101, 1), [0, 0, 0])
        assert connections(cluster) == opened
        await restart(cluster.brokers[1])
        assert lags(await surveyor.look()) == [0, 0, 0]
        assert connections(cluster) > opened


async def restart(broker: FakeBroker) -> None:
    await broker.stop()
    await broker.start()


async def test_brokers_that_come_and_go(cluster: FakeCluster) -> None:
    async with surveying(servers(cluster, 1), ClusterSecurity(), PATIENCE) as surveyor:
        third = cluster.brokers.pop(3)
        assert len((await surveyor.look()).brokers) == 2
        cluster.brokers[3] = third
        assert lags(await surveyor.look()) == [0, 0, 0]
        await cluster.brokers[2].stop()
        second = cluster.brokers.pop(2)
        assert [standing.node_id for standing in (await surveyor.look()).brokers] == [1, 3]
        cluster.brokers[2] = second


async def test_any_bootstrap_server_will_do(cluster: FakeCluster) -> None:
    await cluster.brokers[1].stop()
    survey = await look(cluster)
    assert lags(survey) == [None, 0, 0]


async def test_a_cluster_that_cannot_be_reached_names_every_server(cluster: FakeCluster) -> None:
    for broker in cluster.brokers.values():
        await broker.stop()
    surveyor = Surveyor(servers(cluster), Access(ClusterSecurity()), PATIENCE)
    with pytest.raises(ClusterUnreachable) as caught:
        await surveyor.look()
    assert str(caught.value).splitlines() == [
        f"{server}: cannot connect: Connection refused" for server in servers(cluster)
    ]


async def test_a_cluster_that_names_unreachable_addresses(cluster: FakeCluster) -> None:
    names = [{"node_id": 7, "host": "nobody.invalid", "port": 9092}]
    cluster.brokers[1].handlers[ApiKey.METADATA] = lambda ask: {**cluster.metadata(), "brokers": names}
    survey = await look(cluster)
    assert not survey.answered
    assert (survey.brokers[0].reason or "").startswith("the host name does not resolve")
    assert reason_of(survey) == "no broker could be asked"


def hang_up(ask: Ask) -> None:
    raise HangUp


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda broker: broker.handlers.update({ApiKey.METADATA: hang_up}), "demands a SASL login"),
        (lambda broker: broker.handlers.update({ApiKey.METADATA: without_answer}), "not described in time"),
        (
            lambda broker: broker.handlers.update(
                {ApiKey.METADATA: lambda ask: {"brokers": [], "cluster_id": "x", "controller_id": -1, "topics": []}}
            ),
            "knows no broker",
        ),
        (
            lambda broker: (broker.versions.pop(ApiKey.METADATA), broker.versions.update({ApiKey.VOTE: (0, 2)})),
            "a controller answers there; name the port of a broker",
        ),
        (lambda broker: broker.versions.update({ApiKey.METADATA: (98, 99)}), "no Metadata version that Tidegate knows"),
    ],
    ids=["SASL listener", "silence", "no brokers", "controller", "versions"],
)
async def test_a_port_that_is_of_no_use_says_why(
    cluster: FakeCluster, prepare: Callable[[FakeBroker], object], reason: str
) -> None:
    prepare(cluster.brokers[1])
    async with surveying(servers(cluster, 1), ClusterSecurity(), HASTE) as surveyor:
        with pytest.raises(ClusterUnreachable, match=reason):
            await surveyor.look()
