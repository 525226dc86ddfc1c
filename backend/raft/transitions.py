"""How a replica goes from state to state: what becomes of epoch, vote and time-outs, and of those who wait.

Every change of state is one of these functions, and every one of them is in the table of `backend.raft.states`. They
send nothing: what the new state has to say it says in its own `act`. Rules:

    learn                   a newer epoch is taken over at once, with its leader if that is known
    become_candidate        the one place where a replica makes a new epoch: one up, and its own vote in it
    become_prospective      asks in the present epoch: changes neither epoch nor vote nor leader
    lose_pre_vote           back to the leader that it still knows
    recover                 what a restarted replica is: the leader of an epoch leads it no more
    leave                   nobody who waits on a leader that was is left without an answer

Sources: QuorumState of Kafka, KIP-595, KIP-996.
"""

from backend.raft.calls import Calls
from backend.raft.effects import ElectionState
from backend.raft.messages import NOBODY, FetchResponse
from backend.raft.node import Node
from backend.raft.replication import Progress
from backend.raft.states import (
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
)
from codec.error_codes import ErrorCode


def recover(node: Node, now_ms: int) -> None:
    """Enter the state in which a replica starts.

    A voter that led the epoch has resigned: it cannot know what it had promised but not written. One that had voted, or
    had stood itself, waits. Whoever knew a leader follows it. The only voter has nobody to wait for.
    """
    epoch = max(node.epoch, node.log.last_epoch)
    if epoch > node.epoch:
        node.save_election(ElectionState(leader_epoch=epoch))
    if node.snapshots.latest is not None:
        node.load(node.snapshots.latest)
    leader_id = node.election.leader_id
    if node.settings.voters == (node.settings.node_id,):
        node.state = Unattached(election_deadline_ms=now_ms)
    elif leader_id == node.settings.node_id:
        node.state = _resigned(node, now_ms, ())
    elif leader_id != NOBODY:
        node.state = Follower(leader_id=leader_id, fetch_deadline_ms=now_ms + node.settings.fetch_timeout_ms)
    else:
        node.state = Unattached(election_deadline_ms=now_ms + node.election_timeout_ms())


def learn(node: Node, epoch: int, leader_id: int, now_ms: int) -> None:
    """Take over what somebody says about epoch and leader, if it is news.

    Args:
        node: the replica.
        epoch: an epoch; an older one than the own is no news.
        leader_id: its leader, -1 when that is not known. A voter's id, and not the own: both are ignored otherwise.
        now_ms: the time.
    """
    names_leader = leader_id != node.settings.node_id and leader_id in node.settings.voters
    if epoch > node.epoch:
        if names_leader:
            become_follower(node, epoch, leader_id, now_ms)
        else:
            become_unattached(node, epoch, remaining_ms(node, now_ms))
    elif epoch == node.epoch and names_leader and node.election.leader_id == NOBODY:
        become_follower(node, epoch, leader_id, now_ms)


def remaining_ms(node: Node, now_ms: int) -> int:
    """When a voter stands that has just lost its leader or its epoch: as its old state would have had it."""
    match node.state:
        case Unattached(election_deadline_ms=deadline_ms):
            return deadline_ms
        case Prospective(election_deadline_ms=deadline_ms) | Candidate(election_deadline_ms=deadline_ms):
            return deadline_ms
        case Follower(fetch_deadline_ms=deadline_ms):
            return deadline_ms
        case _:
            return now_ms + node.election_timeout_ms()


def become_unattached(node: Node, epoch: int, election_deadline_ms: int) -> None:
    """No leader is known any more; in the same epoch the vote stays given."""
    voted_id = node.election.voted_id if epoch == node.epoch else NOBODY
    node.save_election(ElectionState(leader_epoch=epoch, voted_id=voted_id))
    _enter(node, Unattached(election_deadline_ms=election_deadline_ms))


def become_voted(node: Node, candidate_id: int, now_ms: int) -> None:
    """Give the vote of this epoch, and wait as long as an election takes for what comes of it."""
    node.save_election(ElectionState(leader_epoch=node.epoch, voted_id=candidate_id))
    _enter(node, Unattached(election_deadline_ms=now_ms + node.election_timeout_ms()))


def become_prospective(node: Node, now_ms: int) -> None:
    """Ask whether a majority would vote for this node; nothing changes by that."""
    _enter(
        node,
        Prospective(
            election_deadline_ms=now_ms + node.election_timeout_ms(),
            calls=Calls(node.settings.other_voters),
            granted={node.settings.node_id},
        ),
    )


def lose_pre_vote(node: Node, now_ms: int) -> None:
    """Follow the leader again that is still known, or wait for the next try."""
    leader_id = node.election.leader_id
    if leader_id not in (NOBODY, node.settings.node_id):
        become_follower(node, node.epoch, leader_id, now_ms)
    else:
        become_unattached(node, node.epoch, now_ms + node.election_timeout_ms())


def become_candidate(node: Node, now_ms: int) -> None:
    """Begin an epoch, and vote for oneself in it."""
    node_id = node.settings.node_id
    assert node.settings.is_voter, "observers do not stand"
    node.save_election(ElectionState(leader_epoch=node.epoch + 1, voted_id=node_id))
    _enter(
        node,
        Candidate(
            election_deadline_ms=now_ms + node.election_timeout_ms(),
            calls=Calls(node.settings.other_voters),
            granted={node_id},
        ),
    )


def become_leader(node: Node, now_ms: int) -> Leader:
    """Lead the epoch in which a majority has voted for this node; its first record is still to be appended."""
    settings = node.settings
    node.save_election(
        ElectionState(leader_epoch=node.epoch, leader_id=settings.node_id, voted_id=node.election.voted_id)
    )
    leader = Leader(
        epoch_start_offset=node.log.end_offset,
        elected_ms=now_ms,
        voters={voter: Progress(voter) for voter in settings.other_voters},
        calls=Calls(settings.other_voters),
    )
    _enter(node, leader)
    return leader


def become_follower(node: Node, epoch: int, leader_id: int, now_ms: int) -> None:
    """Follow a leader; in the same epoch the vote stays given."""
    voted_id = node.election.voted_id if epoch == node.epoch else NOBODY
    node.save_election(ElectionState(leader_epoch=epoch, leader_id=leader_id, voted_id=voted_id))
    _enter(node, Follower(leader_id=leader_id, fetch_deadline_ms=now_ms + node.settings.fetch_timeout_ms))


def become_resigned(node: Node, preferred_successors: tuple[int, ...], now_ms: int) -> None:
    """Lead no more, in an epoch that nobody else will lead."""
    _enter(node, _resigned(node, now_ms, preferred_successors))


def leave(node: Node, leader: Leader) -> None:
    """Answer everybody who waits on a leader that is one no more; epoch and state are the new ones already."""
    for held in leader.held.values():
        node.reply(
            held.handle,
            FetchResponse(
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                leader_id=node.known_leader_id,
                leader_epoch=node.epoch,
            ),
        )
    for handle in leader.reads.unanswered():
        node.refuse_read(handle)


def _resigned(node: Node, now_ms: int, preferred_successors: tuple[int, ...]) -> Resigned:
    return Resigned(
        election_deadline_ms=now_ms + node.election_timeout_ms(),
        calls=Calls(node.settings.other_voters),
        preferred_successors=preferred_successors,
    )


def _enter(node: Node, state: State) -> None:
    old = node.state
    assert type(state) in TRANSITIONS[type(old)], f"from {type(old).__name__} to {type(state).__name__}"
    node.forget_requests()
    node.state = state
    if isinstance(old, Leader):
        leave(node, old)
