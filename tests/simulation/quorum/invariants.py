"""What must hold, by name, checked in every step, at the moment when something becomes visible.

The ledger sees all processes at once, as nobody in the system can: what was promised, who voted for whom, what is
committed. It grows with what happens and compares only what is new; a process that restarts is compared from the
beginning. A `Violation` bears the name of the invariant that does not hold.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from backend.raft.batches import LogBatch, SnapshotId
from backend.raft.effects import Effects, ReadConfirmed
from backend.raft.messages import FetchRequest, Request, VoteRequest, VoteResponse
from codec.errors import CodecError
from tests.simulation.quorum.clients import Read, Write
from tests.simulation.quorum.state_machine import StateMachine
from tests.simulation.story import Violation

if TYPE_CHECKING:
    from tests.simulation.quorum.process import Process
    from tests.simulation.quorum.world import World


class Ledger:
    """See the module.

    Attributes:
        committed: all batches that ever were, in order.
        state: what they amount to.
        promised: the end of what a client was told of: a write acknowledged, or a read answered.
        leaders: of each epoch, the process that leads it.
    """

    def __init__(self, world: "World") -> None:
        self.world = world
        self.committed: list[LogBatch] = []
        self.state = StateMachine(world.writings)
        self.promised = 0
        self.leaders: dict[int, Process] = {}
        self.acknowledgements: list[Write] = []
        self._bases: list[int] = []
        self._committed_in: list[int] = []
        self._lengths: dict[int, tuple[int, int]] = {0: (0, 0)}
        self._epochs: dict[int, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._leader_ids: dict[int, int] = {}
        self._written: dict[tuple[int, int], LogBatch] = {}

    @property
    def end(self) -> int:
        """The end of what is committed, exclusive."""
        return self.state.next_offset

    # Every step

    def check(self, process: "Process", effects: Effects) -> None:
        """Something is about to be told."""
        replica = process.replica
        epoch, leader_id = replica.leader_epoch, replica.leader_id
        if epoch != self._epochs.get(process.node_id, 0):
            self.epochs_never_go_back(process, epoch)
        if leader_id >= 0 and self._leader_ids.setdefault(epoch, leader_id) != leader_id:
            self._fail(
                "one_leader_an_epoch",
                f"{process.node_id} takes {leader_id} for the leader of {epoch}, others {self._leader_ids[epoch]}",
            )
        if leader_id == process.node_id and process.led_epoch != epoch:
            process.led_epoch = epoch
            self.one_leader_an_epoch(process, epoch)
            self.leaders_have_what_is_committed(process)
        for outgoing in effects.requests:
            request = outgoing.request
            if type(request) is VoteRequest and not request.pre_vote:
                self.no_second_vote(process, request.replica_epoch, request.replica_id)
        for reply in effects.replies:
            if reply.handle not in process.asked:
                self._fail("each_request_is_answered_once", f"{process.node_id} answers {reply.response} again")
            if type(reply.response) is VoteResponse and reply.response.vote_granted:
                asked = process.asked[reply.handle][2]
                assert isinstance(asked, VoteRequest)
                if not asked.pre_vote:
                    self.no_second_vote(process, asked.replica_epoch, asked.replica_id)
                    self.world.voted(process.node_id)
        if leader_id != process.node_id and process.owes > len(effects.replies) + len(effects.reads):
            self._fail(
                "nobody_waits_on_a_leader_that_was",
                f"{process.node_id} is {replica.state} and owes {process.owes} answers, and gives "
                f"{len(effects.replies)} and {len(effects.reads)} to reads",
            )
        if effects.high_watermark is not None:
            self.high_watermarks_never_go_back(process, effects.high_watermark)
            self.committed_batches_are_the_same_everywhere(process, effects.high_watermark)

    def epochs_never_go_back(self, process: "Process", epoch: int) -> None:
        """A node that has shown an epoch shows none before it, not even after a crash."""
        shown = self._epochs.get(process.node_id, 0)
        if epoch < shown:
            self._fail("epochs_never_go_back", f"{process.node_id} is in epoch {epoch}, and was in {shown}")
        self._epochs[process.node_id] = epoch

    def one_leader_an_epoch(self, process: "Process", epoch: int) -> None:
        """One process leads an epoch; a node that restarts does not lead on."""
        if self.leaders.setdefault(epoch, process) is not process:
            other = self.leaders[epoch]
            who = "an earlier process of it" if other.node_id == process.node_id else str(other.node_id)
            self._fail("one_leader_an_epoch", f"{process.node_id} leads epoch {epoch}, which {who} has led")
        self.world.count("elections")

    def leaders_have_what_is_committed(self, process: "Process") -> None:
        """Leader completeness: who leads an epoch has all that was committed in an earlier one."""
        files, epoch = process.disk.live, process.replica.leader_epoch
        first = bisect_left(self._bases, files.start)
        for batch, committed_in in zip(self.committed[first:], self._committed_in[first:], strict=True):
            if committed_in < epoch and files.at(batch.base_offset) != batch:
                self._fail(
                    "leaders_have_what_is_committed", f"{process.node_id} leads epoch {epoch} without {_named(batch)}"
                )

    def no_second_vote(self, process: "Process", epoch: int, candidate_id: int) -> None:
        """Nobody votes for two in one epoch, not even after a crash; who stands has voted for itself."""
        voted = self._votes.setdefault((process.node_id, epoch), candidate_id)
        if voted != candidate_id:
            self._fail("no_second_vote", f"{process.node_id} votes for {candidate_id} in epoch {epoch}, after {voted}")

    def high_watermarks_never_go_back(self, process: "Process", high_watermark: int) -> None:
        """As long as the process lives."""
        if high_watermark < process.high_watermark:
            self._fail(
                "high_watermarks_never_go_back",
                f"{process.node_id} says {high_watermark}, and said {process.high_watermark}",
            )

    def committed_batches_are_the_same_everywhere(self, process: "Process", high_watermark: int) -> None:
        """What a process takes for committed is what all others do; what is new to all of them, a majority has."""
        files = process.disk.live
        at = max(process.checked, files.start)
        place = bisect_left(self._bases, at)
        own = bisect_left(files.bases, at)
        while at < high_watermark:
            if own >= len(files.log) or (batch := files.log[own]).last_offset >= high_watermark:
                self._fail(
                    "committed_batches_are_the_same_everywhere",
                    f"{process.node_id} has the high watermark {high_watermark}, and no batch that ends there",
                )
            if place == len(self.committed):
                self.a_majority_has_what_is_committed(process, batch)
                self._commit(batch, process.replica.leader_epoch)
            elif self.committed[place] is not batch and self.committed[place] != batch:
                self._fail(
                    "committed_batches_are_the_same_everywhere",
                    f"{process.node_id} has {_named(batch)} where {_named(self.committed[place])} is committed",
                )
            own += 1
            place += 1
            at = batch.last_offset + 1
        process.checked = max(at, process.checked)

    def a_majority_has_what_is_committed(self, process: "Process", batch: LogBatch) -> None:
        """On disks that no crash can empty; and so has whoever leads a later epoch by now."""
        world = self.world
        having = [voter for voter in world.voters if world.nodes[voter].disk.durable.holds(batch)]
        if 2 * len(having) <= len(world.voters):
            self._fail(
                "a_majority_has_what_is_committed", f"{process.node_id} commits {_named(batch)}; it is on {having}"
            )
        for other in world.processes:
            leads_later = other.led_epoch == other.replica.leader_epoch > process.replica.leader_epoch
            if leads_later and not other.disk.live.holds(batch):
                self._fail("leaders_have_what_is_committed", f"{other.node_id} leads without {_named(batch)}")

    # What goes in

    def received(self, process: "Process", handle: int, request: Request, now_ms: int) -> Effects:
        """Hands a request to the replica."""
        replica = process.replica
        if type(request) is FetchRequest:
            return replica.receive(handle, request, now_ms)
        before = (replica.leader_epoch, replica.leader_id)
        effects = replica.receive(handle, request, now_ms)
        if type(request) is VoteRequest and request.pre_vote:
            self.no_epoch_is_disturbed_by_a_pre_vote(process, before)
        return effects

    def no_epoch_is_disturbed_by_a_pre_vote(self, process: "Process", before: tuple[int, int]) -> None:
        """Who is asked for a pre-vote keeps its epoch and its leader; though a leader may resign in the same step."""
        after = (process.replica.leader_epoch, process.replica.leader_id)
        if after != before and (after[0] != before[0] or before[1] != process.node_id):
            self._fail("no_epoch_is_disturbed_by_a_pre_vote", f"{process.node_id} goes from {before} to {after}")
        self.world.count("pre-votes")

    # What goes to disk

    def appended(self, process: "Process", batches: Sequence[LogBatch]) -> None:
        """Log matching: one leader wrote one batch at each place of its epoch."""
        for batch in batches:
            known = self._written.setdefault((batch.leader_epoch, batch.base_offset), batch)
            if known is not batch and known != batch:
                self._fail(
                    "epoch_and_offset_name_one_batch",
                    f"{process.node_id} appends {_named(batch)}, and another has that name",
                )

    def truncated(self, process: "Process", end_offset: int) -> None:
        """What is committed is never cut off."""
        self.world.count("truncations")
        if end_offset < process.high_watermark:
            self._fail(
                "committed_batches_are_never_cut",
                f"{process.node_id} cuts its log at {end_offset}, below its high watermark {process.high_watermark}",
            )
        for batch in self.committed[bisect_left(self._bases, end_offset) :]:
            if process.disk.live.at(batch.base_offset) == batch:
                self._fail("committed_batches_are_never_cut", f"{process.node_id} cuts {_named(batch)}")
        process.checked = min(process.checked, end_offset)

    def installed(self, process: "Process", snapshot_id: SnapshotId) -> None:
        """A snapshot leads forward, never back."""
        self.world.count("snapshots installed")
        if snapshot_id.end_offset < max(process.machine.next_offset, process.high_watermark):
            self._fail(
                "snapshots_lead_forward", f"{process.node_id} is at {process.machine.next_offset}: {snapshot_id}"
            )

    def snapshot_written(self, process: "Process", snapshot_id: SnapshotId, content: bytes) -> None:
        """A node has made a snapshot."""
        self.world.count("snapshots written")
        self.world.tell(process.node_id, "writes", snapshot_id)
        self.snapshots_are_the_state_at_their_offset(process, snapshot_id, content)

    def loaded(self, process: "Process", snapshot_id: SnapshotId, content: bytes) -> None:
        """A node begins anew from a snapshot."""
        self.world.count("snapshots loaded")
        self.world.tell(process.node_id, "loads", snapshot_id)
        if snapshot_id.end_offset < process.machine.next_offset:
            self._fail(
                "snapshots_lead_forward", f"{process.node_id} is at {process.machine.next_offset}: {snapshot_id}"
            )
        self.snapshots_are_the_state_at_their_offset(process, snapshot_id, content)
        process.checked = max(process.checked, snapshot_id.end_offset)

    def snapshots_are_the_state_at_their_offset(
        self, process: "Process", snapshot_id: SnapshotId, content: bytes
    ) -> None:
        """No more and no less, and with the epoch of the last batch in it."""
        length, epoch = self._lengths.get(snapshot_id.end_offset, (-1, -1))
        machine = StateMachine(self.world.writings)
        try:
            machine.load(content)
        except (CodecError, ValueError) as error:
            self._fail("snapshots_are_the_state_at_their_offset", f"{process.node_id}: {snapshot_id} is none: {error}")
        same = length >= 0 and machine.content == self.state.content[:length]
        if not same or epoch != snapshot_id.epoch or machine.next_offset != snapshot_id.end_offset:
            self._fail(
                "snapshots_are_the_state_at_their_offset",
                f"{process.node_id}: {snapshot_id} holds {len(machine.content)} bytes below {machine.next_offset}; "
                f"there, the state has {length} and the last batch is of epoch {epoch}",
            )

    def applied(self, process: "Process", batch: LogBatch) -> None:
        """Each offset once and in order."""
        if batch.base_offset != process.machine.next_offset:
            self._fail(
                "each_offset_is_applied_once",
                f"{process.node_id} is at {process.machine.next_offset}, and next comes {_named(batch)}",
            )

    # What clients are told

    def acknowledged(self, process: "Process", write: Write) -> None:
        """A write that is acknowledged is committed: it stands where the leader said."""
        place = bisect_left(self._bases, write.last_offset + 1) - 1
        found = self.committed[place] if place >= 0 else None
        if (
            found is None
            or (found.last_offset, found.leader_epoch) != (write.last_offset, write.leader_epoch)
            or self.world.writings.read(found) != write.content
        ):
            self._fail("acknowledged_writes_are_committed", f"{process.node_id} acknowledges {write}")
        self.acknowledgements.append(write)
        self.promised = max(self.promised, write.last_offset + 1)
        self.world.count("commits")
        self.world.tell(process.node_id, "commits", write)

    def read_confirmed(self, leader: "Process", read: Read, told: ReadConfirmed) -> None:
        """A read sees all that was promised before it began."""
        if told.high_watermark < read.floor:
            self._fail("reads_are_linearizable", f"{leader.node_id} confirms {told.high_watermark} for {read}")
        if told.high_watermark > self.end:
            self._fail("reads_see_what_is_committed", f"{leader.node_id} confirms {told.high_watermark} for {read}")

    def read_answered(self, process: "Process", read: Read) -> None:
        """And so does its answer; others that begin from now on see as much."""
        if read.seen < read.floor:
            self._fail("reads_are_linearizable", f"{process.node_id} shows {read.seen} to {read}")
        self.promised = max(self.promised, read.seen)
        self.world.count("reads")
        if process.node_id not in self.world.voters:
            self.world.count("reads of observers")
        self.world.tell(process.node_id, "answers", read)

    # Liveness, and the end

    def all_states_are_the_same(self) -> None:
        """Everybody has applied all that is committed, and every acknowledged write is in it."""
        committed = {(batch.last_offset, batch.leader_epoch) for batch in self.committed}
        for write in self.acknowledgements:
            if (write.last_offset, write.leader_epoch) not in committed:
                self._fail("acknowledged_writes_are_committed", f"{write} is lost")
        for node in self.world.nodes.values():
            assert node.process is not None
            if node.process.machine.content != self.state.content:
                self._fail("all_states_are_the_same", f"{node.node_id} has another state")

    def _commit(self, batch: LogBatch, epoch: int) -> None:
        self.committed.append(batch)
        self._committed_in.append(epoch)
        self._bases.append(batch.base_offset)
        self.state.apply(batch)
        self._lengths[self.state.next_offset] = (len(self.state.content), batch.leader_epoch)

    def _fail(self, name: str, message: str) -> NoReturn:
        raise Violation(name, message)


def _named(batch: LogBatch) -> str:
    return f"batch {batch.base_offset}..{batch.last_offset} of epoch {batch.leader_epoch}"
