"""The metadata log and its controllers, reduced to what a sidecar can notice: commits, elections, a deposed leader.

The true committed offset is known here; what DescribeQuorum says of it depends on who answers.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from sidecar.core.head import QuorumAnswer, Voter
from tests.simulation.clock import Clock

VOTERS = (101, 102, 103)
FETCHED_MS_MAX = 450
"""Age of a healthy voter's last fetch (measured, consistency.md section 4)."""

Committed = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposed:
    """A leader that was cut from the other voters and still answers through some brokers."""

    leader_id: int
    epoch: int
    high_watermark: int
    last_fetch_ms: float
    reaches: frozenset[int]
    until_ms: float


class MetadataLog:
    """See the module.

    Attributes:
        committed: the last committed offset.
        epoch: of the present leader, or of the last one while there is none.
        leader_id: None while there is no leader, or it hangs.
        deposed: who still answers though nobody follows him.
        on_commit: called with every offset that is committed.
    """

    def __init__(self, clock: Clock, random: Random) -> None:
        self.committed = random.randint(20, 60)
        self.epoch = random.randint(3, 9)
        self.leader_id: int | None = VOTERS[0]
        self.deposed: Deposed | None = None
        self.on_commit: list[Committed] = []
        self._clock = clock
        self._random = random
        self._skew_ms = 5000.0
        self._end = self.committed
        self._has_committed = True
        self._term = 0
        self._commit_ms = 0.0
        self._pending: list[tuple[int, Committed]] = []
        self._stalled: list[Callable[[], None]] = []

    # Writes

    def append(self, then: Committed) -> None:
        """Appends one record; ``then`` gets its offset when it is committed, under whatever leader."""
        if self.leader_id is None:
            self._stalled.append(partial(self.append, then))
            return
        self._end += 1
        self._pending.append((self._end, then))
        self._plan_commit(self._end, self._random.uniform(0.5, 6))

    def after_all(self, then: Committed) -> None:
        """A write that changes nothing: answered when the records before it are committed."""
        if self.leader_id is None:
            self._stalled.append(partial(self.after_all, then))
        elif self._end == self.committed:
            then(self.committed)
        else:
            self._pending.append((self._end, then))

    def _plan_commit(self, offset: int, delay_ms: float) -> None:
        self._commit_ms = max(self._commit_ms, self._clock.now_ms + delay_ms)
        self._clock.at(self._commit_ms, self._commit, offset, self._term)

    def _commit(self, offset: int, term: int) -> None:
        if term != self._term or self.leader_id is None:
            return
        self._has_committed = True
        self.committed = max(offset, self.committed)
        for listener in self.on_commit:
            listener(offset)
        done = [then for pending, then in self._pending if pending <= offset]
        self._pending = [(pending, then) for pending, then in self._pending if pending > offset]
        for then in done:
            then(offset)

    # Elections

    def cut(self, node_ids: list[int]) -> None:
        """Cuts the leader from the other voters, but not from every broker; another one is elected after a while."""
        if self.leader_id is None:
            return
        now_ms, random = self._clock.now_ms, self._random
        last_fetch_ms = now_ms - random.uniform(0, FETCHED_MS_MAX)
        self.deposed = Deposed(
            leader_id=self.leader_id,
            epoch=self.epoch,
            high_watermark=self.committed + 1 if self._has_committed else -1,
            last_fetch_ms=last_fetch_ms,
            reaches=frozenset(random.sample(node_ids, random.randint(1, len(node_ids)))),
            until_ms=now_ms + random.uniform(2200, 3400),
        )
        self._leave(last_fetch_ms + 2000 - now_ms + random.uniform(0, 600))

    def resign(self) -> None:
        """The leader steps down in good order; the next one is elected at once."""
        if self.leader_id is not None:
            self._leave(self._random.uniform(2, 30))

    def hang(self, duration_ms: float) -> None:
        """The leader stops for a while, too short for an election."""
        if self.leader_id is not None:
            leader_id, self.leader_id = self.leader_id, None
            self._clock.after(duration_ms, self._lead, leader_id, self._term)

    def heal(self) -> None:
        """Ends all that keeps a leader away."""
        self.deposed = None
        if self.leader_id is None:
            self._elect(self._term)

    def replace(self, committed: int, epoch: int) -> None:
        """Another log takes the place of this one: restored from a backup, or another cluster behind the same names."""
        self._term += 1
        self.deposed = None
        self.committed = self._end = committed
        self.epoch = epoch
        self.leader_id = self._random.choice(VOTERS)
        self._has_committed = True
        self._pending.clear()
        self._stalled.clear()

    def _leave(self, election_ms: float) -> None:
        self.leader_id = None
        self._term += 1
        self._end = self.committed
        lost, self._pending = self._pending, []
        self._stalled += [partial(self.append, then) for _, then in lost]
        self._clock.after(election_ms, self._elect, self._term)

    def _elect(self, term: int) -> None:
        if term != self._term:
            return
        self._term += 1
        self.epoch += 1
        self._has_committed = False
        self._lead(self._random.choice(VOTERS), self._term)
        # The new leader's first record: with it, it knows what is committed.
        self._end += 1
        self._plan_commit(self._end, self._random.uniform(2, 60))

    def _lead(self, leader_id: int, term: int) -> None:
        if term != self._term:
            return
        self.leader_id = leader_id
        self._skew_ms = self._random.uniform(-9000, 9000) + 20_000
        self._clock.at(self._clock.now_ms, self._go_on)
        for offset in range(self.committed + 1, self._end + 1):
            self._plan_commit(offset, 1.0)

    def _go_on(self) -> None:
        if self.leader_id is not None:
            stalled, self._stalled = self._stalled, []
            for again in stalled:
                again()

    # Questions

    def describe_quorum(self, node_id: int, then: Callable[[QuorumAnswer], None]) -> None:
        """Answers through the broker ``node_id``, by whom that broker takes for the leader; late if nobody leads."""
        deposed, now_ms = self.deposed, self._clock.now_ms
        if deposed is not None and node_id in deposed.reaches and now_ms < deposed.until_ms:
            then(self._answer(deposed.leader_id, deposed.epoch, deposed.high_watermark, deposed.last_fetch_ms))
        elif self.leader_id is None:
            self._stalled.append(partial(self.describe_quorum, node_id, then))
        else:
            high_watermark = self.committed + 1 if self._has_committed else -1
            last_fetch_ms = now_ms - self._random.uniform(0, FETCHED_MS_MAX)
            then(self._answer(self.leader_id, self.epoch, high_watermark, last_fetch_ms))

    def _answer(self, leader_id: int, epoch: int, high_watermark: int, last_fetch_ms: float) -> QuorumAnswer:
        leader_now_ms = int(self._clock.now_ms + self._skew_ms)
        voters = [Voter(replica_id=leader_id, last_fetch_ms=-1, last_caught_up_ms=leader_now_ms)]
        for replica_id in VOTERS:
            if replica_id != leader_id:
                fetched_ms = int(last_fetch_ms + self._skew_ms) - self._random.randint(0, 50)
                voters.append(Voter(replica_id=replica_id, last_fetch_ms=fetched_ms, last_caught_up_ms=fetched_ms))
        return QuorumAnswer(
            leader_id=leader_id, leader_epoch=epoch, high_watermark=high_watermark, voters=tuple(voters)
        )


class CommitHistory:
    """What was committed when the core was at which event: the truth behind "as of any probe sent after s"."""

    def __init__(self, committed: int) -> None:
        self._seqs = [0]
        self._offsets = [committed]

    def note(self, seq: int, committed: int) -> None:
        """``committed`` holds for every event after ``seq``."""
        self._seqs.append(seq)
        self._offsets.append(committed)

    def at(self, seq: int) -> int:
        """The offset that was committed before the event ``seq``."""
        return self._offsets[bisect_left(self._seqs, seq) - 1] if seq > 0 else -1
