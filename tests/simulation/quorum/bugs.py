"""Bugs that a quorum can have, each brought back by a patch of the one function that holds the rule.

The product has no switches. A bug names the rule that it breaks, as `docs/quorum.md` lists it, and what notices it: the
invariants of which one must fail within a number of seeds, or a script that no longer comes true. A simulation that
does not see them would prove nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from backend.raft import elections, following, leading, log_index, reads, replication, snapshots, transitions, voting
from backend.raft.batches import EpochEnd, LogBatch, SnapshotId
from backend.raft.calls import Calls
from backend.raft.effects import DeleteBefore, Effects, ElectionState, SaveElection, Truncate
from backend.raft.messages import (
    NOBODY,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    FetchRequest,
    FetchSnapshotResponse,
    VoteRequest,
)
from backend.raft.node import Node
from backend.raft.states import Candidate, Leader, Prospective
from backend.storage.storage import DiskStorage
from tests.simulation.quorum.disk import Disk
from tests.simulation.quorum.process import APPLIED_BYTES_MAX, Process
from tests.simulation.quorum.state_machine import StateMachine

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One bug.

    Attributes:
        rule: module and name of the rule, `voting.may_grant_vote`.
        bring_back: patches the product, or the driver that obeys its duties.
        seeds: how many are run at most, from 0 on.
        caught_by: the invariants, one of which must fail.
        script: a script that must fail.
    """

    rule: str
    title: str
    bring_back: Callable[[Patch], None]
    seeds: int
    caught_by: frozenset[str]
    script: str


BUGS: Final[list[Bug]] = []


def bug(
    rule: str, title: str, *caught_by: str, seeds: int = 40, script: str = ""
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Registers a bug."""

    def register(bring_back: Callable[[Patch], None]) -> Callable[[Patch], None]:
        BUGS.append(
            Bug(
                rule=rule,
                title=title,
                bring_back=bring_back,
                seeds=seeds,
                caught_by=frozenset(caught_by),
                script=script,
            )
        )
        return bring_back

    return register


# Votes


@bug("voting.is_up_to_date", "a candidate with an older log gets votes", "leaders_have_what_is_committed")
def _older_log(patch: Patch) -> None:
    patch.setattr(voting, "is_up_to_date", lambda request, last_epoch, log_end_offset: True)


@bug("voting.may_grant_vote", "a voter votes again in the same epoch", "no_second_vote")
def _second_vote(patch: Patch) -> None:
    patch.setattr(voting, "may_grant_vote", lambda election, request, up_to_date: up_to_date)


@bug(
    "node.save_election",
    "a vote is not on disk, and is given again after a restart",
    "no_second_vote",
    seeds=400,
    script="second-vote",
)
def _vote_is_not_saved(patch: Patch) -> None:
    def save(self: Node, election: ElectionState) -> None:
        self.election = election
        self._persist.append(SaveElection(replace(election, voted_id=NOBODY)))

    patch.setattr(Node, "save_election", save)


@bug("node.save_election", "the epoch is not on disk", "epochs_never_go_back", "no_second_vote", "one_leader_an_epoch")
def _epoch_is_not_saved(patch: Patch) -> None:
    patch.setattr(Node, "save_election", lambda self, election: setattr(self, "election", election))


@bug("transitions.become_candidate", "a candidate stands in its present epoch", "no_second_vote", "one_leader_an_epoch")
def _same_epoch(patch: Patch) -> None:
    become_candidate = transitions.become_candidate

    def stand(node: Node, now_ms: int) -> None:
        become_candidate(node, now_ms)
        node.election = replace(node.election, leader_epoch=node.epoch - 1)
        node._persist[-1] = SaveElection(node.election)

    patch.setattr(transitions, "become_candidate", stand)


@bug("elections.count", "less than a majority elects: two lead one epoch", "one_leader_an_epoch")
def _minority(patch: Patch) -> None:
    count = elections.count

    def early(node: Node, state: Any, now_ms: int) -> bool:
        if isinstance(state, Candidate) and len(state.granted) >= node.settings.majority - 1:
            transitions.become_leader(node, now_ms)
            return True
        return count(node, state, now_ms)

    patch.setattr(elections, "count", early)


@bug("elections.on_silence", "whoever waited for an election in vain waits on", "progress_resumes")
def _waits_on(patch: Patch) -> None:
    on_silence = elections.on_silence

    def wait(node: Node, state: Any, now_ms: int) -> None:
        if isinstance(state, Prospective):
            on_silence(node, state, now_ms)
        else:
            state.election_deadline_ms = now_ms + 1000

    patch.setattr(elections, "on_silence", wait)


@bug("transitions.recover", "a leader that restarts leads on in its epoch", "one_leader_an_epoch")
def _leads_on(patch: Patch) -> None:
    recover = transitions.recover

    def lead(node: Node, now_ms: int) -> None:
        recover(node, now_ms)
        if node.election.leader_id == node.settings.node_id:
            node.state = Candidate(election_deadline_ms=now_ms, calls=Calls(()), granted=set())
            transitions.become_leader(node, now_ms)

    patch.setattr(transitions, "recover", lead)


@bug("transitions.recover", "a restart forgets the epoch", "epochs_never_go_back", "no_second_vote")
def _forgets(patch: Patch) -> None:
    recover = transitions.recover

    def forget(node: Node, now_ms: int) -> None:
        node.election = ElectionState(leader_epoch=0)
        recover(node, now_ms)

    patch.setattr(transitions, "recover", forget)


@bug(
    "replica.respond",
    "an answer of an earlier election counts",
    "one_leader_an_epoch",
    "epoch_and_offset_name_one_batch",
    "committed_batches_are_never_cut",
    "CommittedLost",
)
def _late_answers(patch: Patch) -> None:
    patch.setattr(Node, "forget_requests", lambda self: None)


@bug("transitions.learn", "a voter does not take over the epoch of a candidate", "progress_resumes")
def _stubborn(patch: Patch) -> None:
    learn = transitions.learn

    def ignore(node: Node, epoch: int, leader_id: int, now_ms: int) -> None:
        if leader_id != NOBODY:
            learn(node, epoch, leader_id, now_ms)

    patch.setattr(transitions, "learn", ignore)


# Pre-vote


@bug("elections.answer_vote", "who is asked for a pre-vote takes over its epoch", "no_epoch_is_disturbed_by_a_pre_vote")
def _taken_over(patch: Patch) -> None:
    answer_vote = elections.answer_vote

    def take_over(node: Node, handle: int, request: VoteRequest, now_ms: int) -> None:
        if request.pre_vote:
            transitions.learn(node, request.replica_epoch + 1, NOBODY, now_ms)
        answer_vote(node, handle, request, now_ms)

    patch.setattr(elections, "answer_vote", take_over)


@bug("transitions.become_prospective", "a pre-vote begins an epoch", "returning_nodes_disturb_nobody")
def _bumps(patch: Patch) -> None:
    become_prospective = transitions.become_prospective

    def bump(node: Node, now_ms: int) -> None:
        become_prospective(node, now_ms)
        node.save_election(ElectionState(leader_epoch=node.epoch + 1))

    patch.setattr(transitions, "become_prospective", bump)


@bug("transitions.become_prospective", "there is no pre-vote", "returning_nodes_disturb_nobody")
def no_pre_vote(patch: Patch) -> None:
    """Whoever misses its leader stands at once."""
    become_prospective = transitions.become_prospective

    def stand(node: Node, now_ms: int) -> None:
        become_prospective(node, now_ms)
        transitions.become_candidate(node, now_ms)

    patch.setattr(transitions, "become_prospective", stand)


@bug("voting.may_grant_pre_vote", "who hears its leader grants a pre-vote", "returning_nodes_disturb_nobody")
def _disloyal(patch: Patch) -> None:
    patch.setattr(voting, "may_grant_pre_vote", lambda hears_leader, up_to_date: up_to_date)


# Replication


@bug(
    "replication.committed_end",
    "the high watermark moves over a record of an older epoch",
    "reads_are_linearizable",
    "committed_batches_are_the_same_everywhere",
    "committed_batches_are_never_cut",
)
def _old_epoch(patch: Patch) -> None:
    patch.setattr(
        replication,
        "committed_end",
        lambda ends, majority, epoch_start_offset: sorted(ends, reverse=True)[majority - 1],
    )


@bug("leading.move_high_watermark", "the leader counts an observer", "a_majority_has_what_is_committed")
def _observers_count(patch: Patch) -> None:
    move = leading.move_high_watermark

    def count(node: Node, leader: Leader) -> None:
        voters = leader.voters
        leader.voters = voters | leader.observers
        move(node, leader)
        leader.voters = voters

    patch.setattr(leading, "move_high_watermark", count)


@bug("leading.on_fetch", "a Fetch acknowledges what its sender does not share", "a_majority_has_what_is_committed")
def _unproven(patch: Patch) -> None:
    on_fetch = leading.on_fetch

    def believe(node: Node, leader: Leader, handle: int, request: FetchRequest, now_ms: int) -> None:
        if request.replica_id in leader.voters:
            end_offset = min(request.fetch_offset, node.log.end_offset)
            leader.voters[request.replica_id].acknowledge(end_offset, node.log.end_offset, now_ms)
            leading.move_high_watermark(node, leader)
        on_fetch(node, leader, handle, request, now_ms)

    patch.setattr(leading, "on_fetch", believe)


@bug(
    "log_index.divergence",
    "the leader does not see that a log has parted from its own",
    "a_majority_has_what_is_committed",
    "committed_batches_are_the_same_everywhere",
)
def _no_divergence(patch: Patch) -> None:
    patch.setattr(log_index.LogIndex, "divergence", lambda self, offset, epoch: None)


@bug("following.cut_back", "a follower does not cut its log", "progress_resumes")
def _not_cut(patch: Patch) -> None:
    patch.setattr(following, "cut_back", lambda node, leader_end: True)


@bug("node.truncate", "a follower cuts below its high watermark", "committed_batches_are_never_cut")
def _cut_too_far(patch: Patch) -> None:
    def cut(self: log_index.LogIndex, leader_end: EpochEnd) -> int:
        return self.start_offset

    def truncate(self: Node, end_offset: int) -> None:
        self.log.truncate(end_offset)
        self._persist.append(Truncate(end_offset))

    patch.setattr(log_index.LogIndex, "truncation_offset", cut)
    patch.setattr(Node, "truncate", truncate)


@bug(
    "log_index.truncation_offset",
    "a follower keeps records of an epoch that the leader does not have",
    "AssertionError",
    "IndexError",
)
def _keeps(patch: Patch) -> None:
    patch.setattr(
        log_index.LogIndex,
        "truncation_offset",
        lambda self, leader_end: min(self.end_offset - 1, leader_end.end_offset + 1),
    )


@bug("node.raise_high_watermark", "the high watermark goes back", "high_watermarks_never_go_back")
def _back(patch: Patch) -> None:
    def take(self: Node, end_offset: int) -> None:
        self._high_watermark_moved = self.high_watermark != end_offset
        self.high_watermark = end_offset

    patch.setattr(Node, "raise_high_watermark", take)


@bug(
    "following.follow_high_watermark",
    "what the leader has committed is taken for committed before it is here",
    "committed_batches_are_the_same_everywhere",
)
def _ahead(patch: Patch) -> None:
    patch.setattr(
        following,
        "follow_high_watermark",
        lambda node, leader_high_watermark: node.raise_high_watermark(leader_high_watermark),
    )


@bug("leading.check_quorum", "a leader that hears nobody leads on", script="check-quorum")
def _no_check(patch: Patch) -> None:
    patch.setattr(leading, "check_quorum", lambda node, leader: 1 << 62)


@bug(
    "transitions.leave", "who waits on a leader that was is left without an answer", "nobody_waits_on_a_leader_that_was"
)
def _left(patch: Patch) -> None:
    patch.setattr(transitions, "leave", lambda node, leader: None)


@bug("elections.on_end_quorum_epoch", "nobody minds that a leader resigns", script="resignation")
def _unminded(patch: Patch) -> None:
    patch.setattr(elections, "_stand_after", lambda node, request, now_ms: None)


@bug("voting.successor_delay_ms", "the first successor waits like any other", script="resignation")
def _waits(patch: Patch) -> None:
    patch.setattr(
        voting, "successor_delay_ms", lambda node_id, successors, election_timeout_ms, jitter: election_timeout_ms
    )


@bug("leading.complete_held", "a Fetch is held though there is news", script="replication")
def _holds_on(patch: Patch) -> None:
    patch.setattr(leading, "complete_held", lambda node, leader: None)


@bug("leading.complete_held", "a Fetch that is answered is held on", "each_request_is_answered_once")
def _answered_twice(patch: Patch) -> None:
    def complete(node: Node, leader: Leader) -> None:
        for held in leader.held.values():
            if leading._has_news(node, leader, held):
                leading._complete(node, leader, held)

    patch.setattr(leading, "complete_held", complete)


@bug("replication.is_news", "a high watermark is no news", script="replication")
def _no_news(patch: Patch) -> None:
    patch.setattr(
        replication,
        "is_news",
        lambda fetch_offset, known_high_watermark, log_end_offset, high_watermark: fetch_offset < log_end_offset,
    )


@bug("leading.propose", "a new leader appends nothing of its own", script="election")
def _says_nothing(patch: Patch) -> None:
    patch.setattr(leading, "begin", lambda node, leader, granted, now_ms: None)


@bug("replication.check_quorum_deadline_ms", "a leader has all the time in the world", script="check-quorum")
def _all_the_time(patch: Patch) -> None:
    patch.setattr(replication, "check_quorum_deadline_ms", lambda contacts_ms, majority, fetch_timeout_ms: 1 << 62)


# Reads


@bug("reads.acknowledge", "an answer to an earlier question proves a read", script="stale-answer")
def _stale_answer(patch: Patch) -> None:
    acknowledge = reads.ReadRounds.acknowledge
    patch.setattr(reads.ReadRounds, "acknowledge", lambda self, voter, number: acknowledge(self, voter, self.number))


@bug(
    "reads.acknowledge",
    "a Fetch that is under way proves a read",
    "reads_are_linearizable",
    seeds=400,
    script="stale-answer",
)
def _fetch_proves(patch: Patch) -> None:
    on_fetch = leading.on_fetch

    def prove(node: Node, leader: Leader, handle: int, request: FetchRequest, now_ms: int) -> None:
        if request.replica_id in leader.voters:
            leader.reads.acknowledge(request.replica_id, leader.reads.number)
        on_fetch(node, leader, handle, request, now_ms)

    patch.setattr(leading, "on_fetch", prove)


@bug("reads.may_begin", "a new leader confirms what it does not know yet", "reads_are_linearizable")
def _too_early(patch: Patch) -> None:
    patch.setattr(reads.ReadRounds, "may_begin", lambda self, knows: bool(self.waiting) and not self.asked)


@bug("reads.acknowledge", "a leader asks nobody, and answers from what it knows", "reads_are_linearizable")
def no_read_index(patch: Patch) -> None:
    """The high watermark of whoever takes itself for the leader."""
    patch.setattr(leading, "read_index", lambda node, leader, handle: node.confirm_read(handle, leader.high_watermark))


@bug(
    "following.answer_begin",
    "a voter that has seen a later epoch says that it follows",
    "reads_are_linearizable",
    seeds=400,
)
def _says_yes(patch: Patch) -> None:
    answer_begin = following.answer_begin

    def agree(node: Node, handle: int, request: BeginQuorumEpochRequest, now_ms: int) -> None:
        if request.leader_epoch >= node.epoch:
            answer_begin(node, handle, request, now_ms)
            return
        node.reply(handle, BeginQuorumEpochResponse(leader_id=request.leader_id, leader_epoch=request.leader_epoch))

    patch.setattr(following, "answer_begin", agree)


@bug("reads.may_begin", "a read is told the end of the log", "reads_see_what_is_committed")
def _end_of_the_log(patch: Patch) -> None:
    confirm_read = Node.confirm_read
    patch.setattr(
        Node, "confirm_read", lambda self, handle, high_watermark: confirm_read(self, handle, self.log.end_offset)
    )


@bug("leading.on_begin_response", "no answer proves a read", "everything_comes_to_rest")
def _never_proven(patch: Patch) -> None:
    patch.setattr(leading, "on_begin_response", lambda node, leader, sent, response: None)


# Snapshots


@bug("snapshots.trim_point", "the log goes as far as the state, beyond the snapshot", "ValueError")
def _trims_too_far(patch: Patch) -> None:
    trim = Node.trim

    def far(self: Node, written: SnapshotId) -> None:
        trim(self, written)
        end = SnapshotId(end_offset=self.high_watermark, epoch=self.epoch)
        self.log.trim(end)
        self._persist.append(DeleteBefore(end))

    patch.setattr(Node, "trim", far)


@bug("snapshots.may_install", "a snapshot is installed that is older than the state", "snapshots_lead_forward")
def _older_snapshot(patch: Patch) -> None:
    on_fetch = leading.on_fetch

    def offer(node: Node, leader: Leader, handle: int, request: FetchRequest, now_ms: int) -> None:
        latest = node.snapshots.latest
        if latest is not None and request.high_watermark is not None and request.high_watermark > latest.end_offset:
            node.reply(handle, leading._response(node, leader, snapshot_id=latest))
        else:
            on_fetch(node, leader, handle, request, now_ms)

    patch.setattr(leading, "on_fetch", offer)
    patch.setattr(snapshots, "may_install", lambda snapshot_id, high_watermark: True)


@bug(
    "snapshots.Download.accept",
    "a piece is taken for the next one, whatever its position",
    "AssertionError",
    "snapshots_are_the_state_at_their_offset",
)
def _any_piece(patch: Patch) -> None:
    def accept(self: snapshots.Download, response: FetchSnapshotResponse) -> bool:
        self.position += 2 * len(response.piece)
        self.position = min(self.position, response.size)
        return True

    patch.setattr(snapshots.Download, "accept", accept)


@bug(
    "log_index.reaches",
    "a follower is promised records that are only in a snapshot",
    "everything_comes_to_rest",
    "progress_resumes",
)
def _out_of_reach(patch: Patch) -> None:
    patch.setattr(log_index.LogIndex, "reaches", lambda self, offset, epoch: True)


# The driver, the state machine, and the disk


@bug("effects duty 1", "the driver sends before it has synced", "a_majority_has_what_is_committed")
def _no_sync(patch: Patch) -> None:
    tell = Process._tell

    def sync(self: Process, effects: Effects) -> None:
        self.world.sync_begins(self.node_id)
        self.world.clock.after(self.world.sync_ms(self.node_id), self.disk.sync)
        tell(self, effects)

    patch.setattr(Process, "_sync", sync)


@bug("effects duty 3", "a snapshot forgets a record", "snapshots_are_the_state_at_their_offset")
def _forgets_a_record(patch: Patch) -> None:
    snapshot = StateMachine.snapshot

    def forget(self: StateMachine) -> tuple[SnapshotId, list[bytes]]:
        content, self.content = self.content, self.content[:-8]
        try:
            return snapshot(self)
        finally:
            self.content = content

    patch.setattr(StateMachine, "snapshot", forget)


@bug("effects duty 3", "a batch is left out when several are applied", "each_offset_is_applied_once")
def _left_out(patch: Patch) -> None:
    read = Disk.read

    def leave_out(self: Disk, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        found = read(self, from_offset, end_offset, max_bytes)
        return found[1:] or found if max_bytes == APPLIED_BYTES_MAX else found

    patch.setattr(Disk, "read", leave_out)


@bug("effects duty 3", "the state machine drops a record", "all_states_are_the_same")
def _dropped(patch: Patch) -> None:
    apply = Process._apply

    def drop(self: Process, high_watermark: int) -> None:
        apply(self, high_watermark)
        if self.node_id == 1:
            del self.machine.content[-8:]

    patch.setattr(Process, "_apply", drop)


@bug(
    "effects duty 3",
    "a write is acknowledged when its offset is committed, in whatever epoch",
    "acknowledged_writes_are_committed",
)
def _any_epoch(patch: Patch) -> None:
    patch.setattr(Process, "_forget_writes", lambda self: None)


@bug("storage sync", "a sync does nothing", "durable_is_durable")
def _no_durability(patch: Patch) -> None:
    patch.setattr(DiskStorage, "sync", lambda self: None)


@bug("storage read", "the log is read from the batch after", "storage_reads_what_was_written")
def _one_later(patch: Patch) -> None:
    read = DiskStorage.read

    def later(self: DiskStorage, from_offset: int, end_offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
        found = read(self, from_offset, end_offset, max_bytes)
        return found[1:] or found

    patch.setattr(DiskStorage, "read", later)
