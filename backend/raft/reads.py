"""ReadIndex: how a leader proves, for a read, that it still leads.

A high watermark is the latest only if nobody else leads in a later epoch. The proof is a majority of voters that are
still in the leader's epoch *after the read arrived*. "A majority has fetched since then" does not prove it: a Fetch can
have been sent before its sender voted for another, and come in late, after the new leader has committed. Only the
answer to a question that was asked after the read arrived is proof.

So the leader asks every voter with BeginQuorumEpoch, whose answer without error says "I am in your epoch". One round of
questions serves all reads that wait when it begins; reads that come meanwhile wait for the next round. The own vote
counts. A new leader first needs a committed record of its own epoch: before, it does not know what is committed.

    acknowledge          counts an answer only in the round whose question it answers
    may_begin            no round before the high watermark is the leader's own

Pure; sends nothing. Sources: Raft thesis 6.4, KIP-650 draft.
"""

from dataclasses import dataclass, field
from typing import Final, final

from backend.raft.calls import Calls

READS_WAITING_MAX: Final = 10_000
"""Reads that wait for a round at most; more are refused."""

NO_ROUND: Final = 0


@final
@dataclass(slots=True)
class ReadRounds:
    """The reads that wait for the next round, and the round that is under way.

    Attributes:
        waiting: handles of reads that the round under way does not prove.
        number: of the latest round; counts up from 1.
        asked: handles that the round under way will prove; empty when there is none.
        calls: whom it still has to ask.
        acknowledged: who has answered it, this node included.
    """

    waiting: list[int] = field(default_factory=list)
    number: int = NO_ROUND
    asked: list[int] = field(default_factory=list)
    calls: Calls = field(default_factory=lambda: Calls(()))
    acknowledged: set[int] = field(default_factory=set)

    @property
    def is_full(self) -> bool:
        """Whether no further read can wait."""
        return len(self.waiting) + len(self.asked) >= READS_WAITING_MAX

    def may_begin(self, leader_knows_high_watermark: bool) -> bool:
        """Whether reads wait, no round is under way, and the leader knows what is committed."""
        return leader_knows_high_watermark and bool(self.waiting) and not self.asked

    def begin(self, node_id: int, other_voters: tuple[int, ...]) -> None:
        """Begin a round for all that wait."""
        self.asked, self.waiting = self.waiting, []
        self.number += 1
        self.calls = Calls(other_voters)
        self.acknowledged = {node_id}

    def acknowledge(self, voter: int, number: int) -> None:
        """A voter of the same epoch has answered a question of the round `number`."""
        if self.asked and number == self.number:
            self.acknowledged.add(voter)
            self.calls.done(voter)

    def proven(self, majority: int) -> list[int]:
        """The handles of the round, if a majority has answered it: it is over."""
        if len(self.acknowledged) < majority:
            return []
        proven, self.asked = self.asked, []
        self.calls = Calls(())
        return proven

    def unanswered(self) -> list[int]:
        """The handles of all reads that wait, for this round or the next."""
        return self.asked + self.waiting
