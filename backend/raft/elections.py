"""Elections: votes are asked for, given and counted.

A voter whose leader is silent asks first whether it would be elected (`Prospective`), and only with a majority behind
it begins a new epoch and asks for votes (`Candidate`). So a voter that was cut off comes back with the epoch that it
left with, and disturbs nobody.

    answer_vote          a request of an older epoch is refused; a newer epoch is taken over, though not for a pre-vote
    count                a majority elects; once it cannot be reached any more, the election is lost
    on_silence           when an election has taken too long
    on_end_quorum_epoch  a leader that resigns says who stands when

Knows nothing of logs but their ends. Whom to support is in `backend.raft.voting`. Sources: KIP-595, KIP-996.
"""

from backend.raft import leading, transitions, voting
from backend.raft.calls import Calls
from backend.raft.messages import (
    NOBODY,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from backend.raft.node import InFlight, Node
from backend.raft.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from codec.error_codes import ErrorCode


def answer_vote(node: Node, handle: int, request: VoteRequest, now_ms: int) -> None:
    """Answer somebody who asks for a vote or a pre-vote."""
    error_code, granted = ErrorCode.NONE, False
    if request.replica_id not in node.settings.voters or not node.settings.is_voter:
        error_code = ErrorCode.INCONSISTENT_VOTER_SET
    elif request.replica_epoch < node.epoch:
        error_code = ErrorCode.FENCED_LEADER_EPOCH
    elif request.pre_vote:
        granted = voting.may_grant_pre_vote(hears_leader(node), _is_up_to_date(node, request))
    else:
        transitions.learn(node, request.replica_epoch, NOBODY, now_ms)
        granted = voting.may_grant_vote(node.election, request, _is_up_to_date(node, request))
        if granted:
            transitions.become_voted(node, request.replica_id, now_ms)
    node.reply(
        handle,
        VoteResponse(
            error_code=error_code, leader_id=node.known_leader_id, leader_epoch=node.epoch, vote_granted=granted
        ),
    )


def hears_leader(node: Node) -> bool:
    """Whether this node leads, or follows a leader that has answered it."""
    state = node.state
    return isinstance(state, Leader) or (isinstance(state, Follower) and state.hears_leader)


def act(node: Node, state: Unattached | Prospective | Candidate, now_ms: int) -> None:
    """What a voter without a leader does when its time has come; and whom it asks meanwhile."""
    if state.election_deadline_ms <= now_ms:
        on_silence(node, state, now_ms)
    elif not isinstance(state, Unattached) and not count(node, state, now_ms):
        _ask(node, state.calls, isinstance(state, Prospective), now_ms)


def on_silence(node: Node, state: Unattached | Prospective | Candidate, now_ms: int) -> None:
    """The time for an election, or until the next one, is over."""
    match state:
        case Unattached() if len(node.settings.voters) == 1:
            transitions.become_candidate(node, now_ms)
        case Unattached() | Candidate():
            transitions.become_prospective(node, now_ms)
        case Prospective():
            transitions.lose_pre_vote(node, now_ms)


def count(node: Node, state: Prospective | Candidate, now_ms: int) -> bool:
    """Whether the election is decided; then what follows from it has happened.

    After a lost pre-vote the node is where it was. After a lost vote it pauses for a random time, so that two who have
    split the votes do not do so again.
    """
    majority, voters = node.settings.majority, len(node.settings.voters)
    is_lost = voters - len(state.refused) < majority
    if isinstance(state, Prospective):
        if len(state.granted) >= majority:
            transitions.become_candidate(node, now_ms)
            return True
        if is_lost:
            transitions.lose_pre_vote(node, now_ms)
        return is_lost
    if len(state.granted) >= majority:
        leader = transitions.become_leader(node, now_ms)
        leading.begin(node, leader, sorted(state.granted), now_ms)
        return True
    if is_lost and not state.is_backing_off:
        state.is_backing_off = True
        state.election_deadline_ms = now_ms + int(node.jitter() * node.settings.election_timeout_ms)
    return state.is_backing_off


def on_vote_response(state: Prospective | Candidate, sent: InFlight, response: VoteResponse) -> None:
    """Note an answer of the present election; `count` decides."""
    if response.vote_granted and response.error_code == ErrorCode.NONE:
        state.granted.add(sent.to)
    else:
        state.refused.add(sent.to)
    state.calls.done(sent.to)


def on_end_quorum_epoch(node: Node, handle: int, request: EndQuorumEpochRequest, now_ms: int) -> None:
    """A leader resigned: stand at once if it named this node first, later otherwise."""
    settings = node.settings
    error_code = ErrorCode.NONE
    if request.leader_id not in settings.voters:
        error_code = ErrorCode.INCONSISTENT_VOTER_SET
    elif request.leader_epoch < node.epoch:
        error_code = ErrorCode.FENCED_LEADER_EPOCH
    elif request.leader_id == settings.node_id:
        error_code = ErrorCode.INVALID_REQUEST
    elif request.leader_epoch > node.epoch or node.election.leader_id in (request.leader_id, NOBODY):
        _stand_after(node, request, now_ms)
    node.reply(
        handle,
        EndQuorumEpochResponse(error_code=error_code, leader_id=node.known_leader_id, leader_epoch=node.epoch),
    )


def act_resigned(node: Node, state: Resigned, now_ms: int) -> None:
    """Tell the voters, until each has answered or an election is due."""
    if state.election_deadline_ms <= now_ms:
        transitions.become_unattached(node, node.epoch, now_ms + node.election_timeout_ms())
        return
    for voter in state.calls.due(now_ms):
        request = EndQuorumEpochRequest(
            leader_id=node.settings.node_id,
            leader_epoch=node.epoch,
            preferred_successors=state.preferred_successors,
        )
        node.send(voter, request, now_ms)
        state.calls.put_off(voter, now_ms + node.settings.request_timeout_ms)


def _stand_after(node: Node, request: EndQuorumEpochRequest, now_ms: int) -> None:
    settings = node.settings
    if isinstance(node.state, Candidate) and request.leader_epoch == node.epoch:
        return
    delay_ms = voting.successor_delay_ms(
        settings.node_id, request.preferred_successors, settings.election_timeout_ms, node.jitter()
    )
    transitions.become_unattached(node, request.leader_epoch, now_ms + delay_ms)
    if delay_ms == 0 and settings.is_voter:
        transitions.become_candidate(node, now_ms)


def _ask(node: Node, calls: Calls, pre_vote: bool, now_ms: int) -> None:
    for voter in calls.due(now_ms):
        request = VoteRequest(
            replica_epoch=node.epoch,
            replica_id=node.settings.node_id,
            last_offset_epoch=node.log.last_epoch,
            last_offset=node.log.end_offset,
            pre_vote=pre_vote,
        )
        node.send(voter, request, now_ms)
        calls.put_off(voter, now_ms + node.settings.request_timeout_ms)


def _is_up_to_date(node: Node, request: VoteRequest) -> bool:
    return voting.is_up_to_date(request, node.log.last_epoch, node.log.end_offset)
