"""What a broker has published: two steps, and those who wait for one of them."""

import asyncio

from backend.metadata.image import Image
from backend.metadata.records import Batch, NoOpRecord
from backend.net.publication import Publication


def image_at(offset: int) -> Image:
    batch = Batch(base_offset=0, leader_epoch=1, records=(NoOpRecord(),) * (offset + 1))
    return Image.empty("c").apply(batch)


def publish(publication: Publication, offset: int) -> None:
    publication.show(image_at(offset))
    publication.act()


async def test_what_is_shown_is_in_effect_only_after_the_second_step() -> None:
    publication = Publication(Image.empty("c"))
    assert publication.offset == -1
    publication.show(image_at(3))
    assert (publication.offset, publication.acting.highest_offset) == (3, -1)
    publication.act()
    assert publication.acting is publication.image


async def test_whoever_waits_goes_on_when_the_image_is_there_and_no_earlier() -> None:
    publication = Publication(image_at(1))
    waits = {offset: publication.reach(offset) for offset in (5, 1, 3, 4)}
    assert [offset for offset, wait in waits.items() if wait.done()] == [1]
    publication.show(image_at(3))
    assert [offset for offset, wait in waits.items() if wait.done()] == [1, 3]
    publication.show(image_at(9))
    await asyncio.gather(*waits.values())


async def test_effect_is_waited_for_by_itself() -> None:
    publication = Publication(image_at(1))
    effect = publication.reach_effect(3)
    publication.show(image_at(3))
    assert not effect.done()
    publication.act()
    await effect
    assert publication.reach_effect(2).done()


async def test_a_wait_that_is_given_up_leaves_nothing_behind() -> None:
    publication = Publication(image_at(1))
    waits = [publication.reach(100) for _ in range(5)]
    kept = publication.reach(100)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert len(publication._showing._heap) == 1
    publish(publication, 100)
    await kept
    assert publication._showing._heap == []
