"""When batches are due: fixed and random delays, a pause, and knobs that are turned while batches wait."""

import pytest

from backend.metadata.image import Image
from backend.metadata.records import Batch, NoOpRecord
from backend.net.replay import DELAY_MS_MAX, NO_DELAY, Delay, ReplayQueue


def batch(base_offset: int, size: int = 1) -> Batch:
    return Batch(base_offset=base_offset, leader_epoch=1, records=(NoOpRecord(),) * size)


def queue_of(delay: Delay, *arrivals: tuple[float, float]) -> ReplayQueue:
    """A queue with a batch for each time of arrival and fraction."""
    queue = ReplayQueue(delay)
    for offset, (arrived_ms, fraction) in enumerate(arrivals):
        queue.offer(batch(offset), arrived_ms, fraction)
    return queue


def taken(queue: ReplayQueue, now_ms: float) -> list[int]:
    return [item.base_offset for item in queue.take(now_ms) if isinstance(item, Batch)]


def test_without_delay_everything_is_due_as_it_comes() -> None:
    assert taken(queue_of(NO_DELAY, (10, 0.9), (11, 0.1)), 11) == [0, 1]


def test_a_fixed_delay_counts_from_the_arrival() -> None:
    queue = queue_of(Delay.of(500), (1000, 0.3), (1200, 0.3))
    assert queue.due_ms() == 1500
    assert taken(queue, 1499) == []
    assert taken(queue, 1500) == [0]
    assert queue.due_ms() == 1700


def test_a_random_delay_lies_between_its_bounds_and_never_reorders() -> None:
    queue = queue_of(Delay.of((100, 300)), (0, 1.0), (0, 0.0))
    assert queue.due_ms() == 300
    assert taken(queue, 299) == []
    assert taken(queue, 300) == [0, 1]


def test_what_is_due_is_taken_together() -> None:
    assert taken(queue_of(Delay.of(100), (0, 0), (50, 0), (90, 0)), 150) == [0, 1]


def test_a_delay_that_changes_counts_for_what_waits() -> None:
    queue = queue_of(Delay.of(500), (1000, 0.5))
    queue.delay = Delay.of(50)
    assert queue.due_ms() == 1050
    queue.delay = Delay.of((100, 200))
    assert queue.due_ms() == 1150


def test_while_paused_nothing_is_due() -> None:
    queue = queue_of(NO_DELAY, (0, 0))
    queue.paused = True
    assert queue.due_ms() is None
    assert taken(queue, 1e9) == []
    queue.paused = False
    assert taken(queue, 0) == [0]


def test_the_records_that_wait_are_counted() -> None:
    queue = ReplayQueue(Delay.of(10))
    queue.offer(batch(0, 3), 0, 0)
    queue.offer(batch(3, 2), 5, 0)
    assert queue.records == 5
    queue.take(10)
    assert queue.records == 2


def test_an_image_from_a_snapshot_waits_like_a_batch() -> None:
    queue = ReplayQueue(Delay.of(10))
    image = Image.empty("c")
    queue.offer(image, 0, 0)
    assert queue.records == 1
    assert queue.take(10) == [image]
    assert queue.records == 0


@pytest.mark.parametrize("value", [-1, DELAY_MS_MAX + 1, (2, 1), (-1, 5), (0, DELAY_MS_MAX + 1)])
def test_a_delay_out_of_bounds_is_refused(value: int | tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a delay lies between 0 and 3600000 ms"):
        Delay.of(value)


def test_a_delay_may_be_given_in_three_forms() -> None:
    assert Delay.of(5) == Delay(5, 5)
    assert Delay.of((1, 5)) == Delay(1, 5)
    assert Delay.of(Delay(1, 5)) == Delay(1, 5)
