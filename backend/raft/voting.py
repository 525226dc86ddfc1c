"""Whom a voter supports: the rules of elections, as functions of what is on disk and of what was heard.

    is_up_to_date        nobody is elected whose log lacks a committed record: the last record's epoch decides, then
                         the end
    may_grant_vote       one vote an epoch, also over a restart; none once the epoch has a leader
    may_grant_pre_vote   who hears from a leader refuses; nothing is remembered, so it may be given to many
    successor_delay_ms   the first successor of a leader that resigned stands at once, the others one after another

Each is a mutation's target. Pure: knows no state, no clock. Sources: Raft 5.4.1, KIP-595, KIP-996.
"""

from collections.abc import Sequence

from backend.raft.effects import ElectionState
from backend.raft.messages import NOBODY, VoteRequest


def is_up_to_date(request: VoteRequest, last_epoch: int, log_end_offset: int) -> bool:
    """Whether the candidate's log has all that the own log has committed: it ends in a later epoch, or further on."""
    return (request.last_offset_epoch, request.last_offset) >= (last_epoch, log_end_offset)


def may_grant_vote(election: ElectionState, request: VoteRequest, up_to_date: bool) -> bool:
    """Whether the candidate gets the vote of its epoch, which is the one of `election`.

    A vote that was given is given again: the candidate may not have heard.
    """
    if election.leader_id != NOBODY:
        return False
    if election.voted_id != NOBODY:
        return election.voted_id == request.replica_id
    return up_to_date


def may_grant_pre_vote(hears_leader: bool, up_to_date: bool) -> bool:
    """Whether the candidate would get a vote: not from whom a leader has answered since it began to follow, or leads.

    A follower whose leader falls silent is no follower after the fetch timeout, so that what it has heard is recent.
    """
    return up_to_date and not hears_leader


def successor_delay_ms(node_id: int, successors: Sequence[int], election_timeout_ms: int, jitter: float) -> int:
    """How long a voter waits before it stands when its leader resigns.

    Not at all when it comes first; then later and later, so that one is done before the next begins. Who is not named
    waits as for any election.

    Args:
        node_id: this voter.
        successors: whom the leader would like, best first.
        election_timeout_ms: the least time of an election.
        jitter: in [0, 1).
    """
    if node_id not in successors:
        return election_timeout_ms + int(jitter * election_timeout_ms)
    place = successors.index(node_id)
    return min(place, 2) * election_timeout_ms // 2 + (int(jitter * election_timeout_ms / 2) if place else 0)
