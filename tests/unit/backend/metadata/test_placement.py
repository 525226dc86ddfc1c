"""Where replicas go."""

from collections import Counter

import pytest

from backend.metadata.cluster import ClusterImage
from backend.metadata.errors import ApiError
from backend.metadata.placement import place_replicas
from backend.metadata.records import RegisterBrokerRecord
from codec.error_codes import ErrorCode
from tests.support.memory_backend import broker


def cluster(*brokers: RegisterBrokerRecord) -> ClusterImage:
    image = ClusterImage.empty()
    for record in brokers:
        image = image.register(record)
    return image


def place(image: ClusterImage, partitions: int, factor: int, start: int = 0) -> list[tuple[int, ...]]:
    return place_replicas(image, partitions=partitions, replication_factor=factor, start=start)


def test_without_racks_each_partition_starts_one_broker_further() -> None:
    image = cluster(broker(1), broker(2), broker(3))
    assert place(image, 4, 2) == [(1, 2), (2, 3), (3, 1), (1, 2)]
    assert place(image, 1, 3, start=2) == [(3, 1, 2)]


def test_replicas_stripe_over_racks() -> None:
    image = cluster(*(broker(i, rack=rack) for i, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "c"), (6, "c"))))
    placed = place(image, 12, 3)
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    assert all({racks[i] for i in replicas} == {"a", "b", "c"} for replicas in placed)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(1, 7), 2)


def test_more_replicas_than_racks_use_racks_again_and_no_broker_twice() -> None:
    image = cluster(broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b"))
    for start in range(6):
        (replicas,) = place(image, 1, 3, start)
        assert sorted(replicas) == [1, 2, 3]


def test_a_fenced_broker_follows_but_never_leads() -> None:
    image = cluster(broker(1), broker(2, fenced=True), broker(3))
    placed = place(image, 6, 3)
    assert all(sorted(replicas) == [1, 2, 3] for replicas in placed)
    assert {replicas[0] for replicas in placed} == {1, 3}
    assert all(2 not in replicas for replicas in place(image, 6, 2))


def test_a_rack_of_fenced_brokers_leads_nothing() -> None:
    image = cluster(broker(1, rack="a", fenced=True), broker(2, rack="b"), broker(3, rack="c"))
    assert {place(image, 1, 3, start)[0][0] for start in range(6)} == {2, 3}


@pytest.mark.parametrize(
    ("brokers", "factor", "reason"),
    [
        ((), 1, "All brokers are currently fenced."),
        ((broker(1, fenced=True),), 1, "All brokers are currently fenced."),
        ((broker(1), broker(2)), 3, "The target replication factor of 3 cannot be reached because only 2 broker"),
    ],
)
def test_what_cannot_be_placed_is_refused(brokers: tuple[RegisterBrokerRecord, ...], factor: int, reason: str) -> None:
    with pytest.raises(ApiError) as caught:
        place(cluster(*brokers), 1, factor)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert caught.value.message is not None
    assert caught.value.message.startswith(reason)
