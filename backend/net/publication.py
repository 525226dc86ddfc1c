"""What a broker has published: the image that reads show, the one that it acts upon, and who waits for it to move.

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
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def offset(self) -> int:
        """The broker's position."""
        return self.image.highest_offset

    def show(self, image: Image) -> None:
        """The first step: reads see the image from now on, and those who wait for it go on."""
        self.image = image
        while self._waiting and self._waiting[0][0] <= image.highest_offset:
            _, _, reached = heapq.heappop(self._waiting)
            if not reached.done():
                reached.set_result(None)

    def act(self) -> None:
        """The second step: what is shown is in effect."""
        self.acting = self.image

    def reach(self, offset: int) -> asyncio.Future[None]:
        """Done once the image is at `offset`; whoever no longer waits cancels it."""
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.offset >= offset:
            reached.set_result(None)
        else:
            heapq.heappush(self._waiting, (offset, next(self._order), reached))
            reached.add_done_callback(self._forget)
        return reached

    def _forget(self, reached: asyncio.Future[None]) -> None:
        """Drop a wait that was cancelled, lest tokens that are never reached pile up."""
        if reached.cancelled():
            self._waiting = [entry for entry in self._waiting if entry[2] is not reached]
            heapq.heapify(self._waiting)
