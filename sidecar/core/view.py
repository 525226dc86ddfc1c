"""What the sidecar knows of the cluster, as values: brokers, their positions, the head of the metadata log.

A `View` never changes; `sidecar.core.positions` and `sidecar.core.head` replace it when a probe is answered. A decision
is taken on one view from beginning to end, so no list can change between the check and the use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sidecar.core.ids import NEVER, OWN, UNKNOWN_OFFSET, Identity, NodeId, Offset, Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One broker, as last seen.

    Attributes:
        incarnation: counts what may have been different processes behind this node id; a position is valid for one.
        up: the probe connection is open.
        visible: offset of the image that the broker shows; -1 when unknown.
        effective: the broker has acted upon everything up to here: the position before the last one that was seen.
        proven: when the last answered probe of this incarnation was *sent*; positions hold from then on.
        learned: when ``visible`` became known; a probe that was sent later cannot find less.
        carries_state: it implements the proposal: its answers carry a ConsistencyState.
        versions: what the broker offers, API key to (lowest, highest); empty until known.
        positions: False for a broker that reports none (ZooKeeper mode): nothing can be promised about it.
    """

    node_id: NodeId
    incarnation: int = 0
    up: bool = False
    visible: Offset = UNKNOWN_OFFSET
    effective: Offset = UNKNOWN_OFFSET
    proven: Seq = NEVER
    learned: Seq = NEVER
    carries_state: bool = False
    versions: Mapping[int, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))
    positions: bool = True

    def speaks(self, api_key: int, api_version: int) -> bool:
        """Whether the broker offers this version; only known versions exclude: unknown ones are the client's risk."""
        if not self.versions:
            return True
        lowest, highest = self.versions.get(api_key, (0, -1))
        return lowest <= api_version <= highest


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of the committed metadata log.

    Attributes:
        offset: the last committed offset, inclusive (DescribeQuorum's high watermark minus one).
        leader_epoch: of the leader that answered; -1 where the source knows none.
        asked: when the probe that learned it was *sent*.
    """

    offset: Offset
    leader_epoch: int
    asked: Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Brokers by node id, and the head; None until one was confirmed."""

    brokers: Mapping[NodeId, Broker] = field(default_factory=lambda: MappingProxyType({}))
    head: Head | None = None


class Load:
    """Requests of this sidecar that one broker has not answered yet; counted on the hot path, hence mutable."""

    __slots__ = ("in_flight",)

    def __init__(self) -> None:
        self.in_flight = 0


@dataclass(eq=False, slots=True, kw_only=True)
class Channel:
    """One open connection to a broker on which requests can be sent.

    Attributes:
        channel_id: names it to the shell.
        established: when it was open; a position proves something about it only if the probe was sent later (a process
            that answers after this moment is the one that accepted the connection).
        incarnation: of the broker at that moment; -1 when its probe connection was not open: nothing links the two.
        shown: the position that this very connection reported (ApiVersions, ConsistencyState); a lower bound as long as
            it lives.
        load: of the broker, shared by all its channels.
        identity: who is logged in on it: it carries routed reads of this one and nobody else. Means nothing for the
            client's own broker connection, on which only the client knows who it is.
        muted_until_ms: until then the broker reads nothing from it, on the clock: it has answered with a throttle time.
    """

    channel_id: int
    node_id: NodeId
    established: Seq
    incarnation: int = -1
    shown: Offset
    load: Load
    identity: Identity = OWN
    muted_until_ms: float = 0.0
