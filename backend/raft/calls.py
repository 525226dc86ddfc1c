"""Whom to ask, and when again: one question that is put to many until each has answered.

Knows times, no network: a peer that was asked comes up again after the request's time, one whose connection broke
after a pause, one that has answered not at all.
"""

from collections.abc import Iterable
from typing import Final, final

NEVER_MS: Final = 2**63 - 1
"""A deadline that does not come."""


@final
class Calls:
    """Peers that are still to be asked, each from a time on."""

    __slots__ = ("_due_ms",)

    def __init__(self, peers: Iterable[int]) -> None:
        self._due_ms = dict.fromkeys(peers, 0)

    @property
    def deadline_ms(self) -> int:
        """When the next one is to be asked."""
        return min(self._due_ms.values(), default=NEVER_MS)

    def due(self, now_ms: int) -> list[int]:
        """Who is to be asked now."""
        return [peer for peer, due_ms in self._due_ms.items() if due_ms <= now_ms]

    def put_off(self, peer: int, until_ms: int) -> None:
        """Ask a peer, if it is still to be asked, no sooner than this."""
        if peer in self._due_ms:
            self._due_ms[peer] = until_ms

    def done(self, peer: int) -> None:
        """A peer has answered."""
        self._due_ms.pop(peer, None)
