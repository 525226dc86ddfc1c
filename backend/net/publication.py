"""What a broker has published: the image that reads show, the one that it acts upon, and who waits for either to move.

Kafka publishes a batch in two steps, within one call: first the image, then, publisher by publisher, what acts upon it
(authorizer, credentials, quotas). Batches are published one after the other, so everything at or below one position is
in effect once a higher one is seen. Knows no log and no delay: `broker` says when.
"""

import asyncio
import heapq
from itertools import count
from typing import final

from backend.metadata.image import Image


@final
class Publication:
    """The two images of one broker.

    Attributes:
        image: what reads show; its highest offset is the broker's position.
        acting: what the authorizer and the credentials know; `image`, or an earlier one between the two steps.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        self.acting = image
        self._showing = _Waiting()
        self._acting = _Waiting()

    @property
    def offset(self) -> int:
        """The broker's position."""
        return self.image.highest_offset

    def show(self, image: Image) -> None:
        """The first step: reads see the image from now on, and those who wait for it go on."""
        self.image = image
        self._showing.release(image.highest_offset)

    def act(self) -> None:
        """The second step: what is shown is in effect."""
        self.acting = self.image
        self._acting.release(self.acting.highest_offset)

    def reach(self, offset: int) -> asyncio.Future[None]:
        """Done once the image is at `offset`; whoever no longer waits cancels it."""
        return self._showing.until(offset, self.image.highest_offset)

    def reach_effect(self, offset: int) -> asyncio.Future[None]:
        """Done once what is in effect is at `offset`; whoever no longer waits cancels it."""
        return self._acting.until(offset, self.acting.highest_offset)


@final
class _Waiting:
    """Who waits for which offset, the lowest first."""

    def __init__(self) -> None:
        self._order = count()
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []

    def until(self, offset: int, now_at: int) -> asyncio.Future[None]:
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if now_at >= offset:
            reached.set_result(None)
        else:
            heapq.heappush(self._heap, (offset, next(self._order), reached))
            reached.add_done_callback(self._forget)
        return reached

    def release(self, offset: int) -> None:
        while self._heap and self._heap[0][0] <= offset:
            _, _, reached = heapq.heappop(self._heap)
            if not reached.done():
                reached.set_result(None)

    def _forget(self, reached: asyncio.Future[None]) -> None:
        """Drop a wait that was cancelled, lest offsets that are never reached pile up."""
        if reached.cancelled():
            self._heap = [entry for entry in self._heap if entry[2] is not reached]
            heapq.heapify(self._heap)
