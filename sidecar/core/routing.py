"""Routing: which broker answers a gated read, or what it waits for (consistency.md section 6). One pure function."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidecar.core.bounds import Bound, proven, shown
from sidecar.core.exchange import Request
from sidecar.core.ids import NodeId, Seq
from sidecar.core.view import Broker, Channel, Load, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A read that wants to go.

    Attributes:
        home: the client's own broker connection, None while it is not open.
        channels: other connections that may carry it; empty when the request must stay with the client's own broker.
        openable: brokers that it could be sent to once a channel to them is open.
    """

    api_key: int
    api_version: int
    bound: Bound
    effective: bool
    home: Channel | None
    channels: Sequence[Channel] = ()
    openable: Sequence[NodeId] = ()


@dataclass(frozen=True, slots=True)
class Forward:
    """Send it on ``channel``: all that its bound requires is proven there.

    Attributes:
        open_channel: an idler broker that has caught up too, for the reads to come, once a channel to it is open.
        prevented: the broker that load alone would have chosen is known to be behind the bound.
    """

    channel: Channel
    open_channel: NodeId | None
    prevented: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """No broker is proven; the read waits.

    Attributes:
        open_channel: a broker that has caught up, to which a channel has yet to be opened.
        prevented: as in `Forward`.
        shown: a broker shows all that is required, and only is not known to act upon it yet.
    """

    open_channel: NodeId | None
    prevented: bool
    shown: bool


Decision = Forward | Hold


def decide(question: Question, view: View, loads: Mapping[NodeId, Load], seq: Seq) -> Decision:
    """Chooses among the brokers that satisfy the bound and speak the version: fewest requests in flight, then the
    client's own broker, then the smallest lag, then each in its turn.

    The client's own broker comes second because a promise on it is free: moving a session costs a probe.

    Args:
        loads: requests in flight of every broker.
        seq: of the event that asks; spreads what is equal otherwise.
    """

    return at_home(question, view, loads) or among_all(question, view, loads, seq)


def at_home(question: Question, view: View, loads: Mapping[NodeId, Load]) -> Forward | None:
    """What `among_all` would say where it has no choice to make: the client's own broker is proven, and none is idler.

    Nearly every read of a healthy cluster ends here.
    """
    home = question.home
    if home is None:
        return None
    in_flight = home.load.in_flight
    if in_flight:
        for channel in question.channels:
            if channel.load.in_flight < in_flight:
                return None
        for node_id in question.openable:
            if loads[node_id].in_flight < in_flight:
                return None
    broker = view.brokers.get(home.node_id)
    if broker is None or not broker.speaks(question.api_key, question.api_version):
        return None
    if not proven(question.bound, broker, home, effective=question.effective):
        return None
    return Forward(home, None, False)


def goes_home(
    request: Request, bound: Bound, broker: Broker, home: Channel, loads: Mapping[NodeId, Load], *, effective: bool
) -> bool:
    """Whether the client's own broker is proven, and no other is idler, whether it could be asked or not."""
    in_flight = home.load.in_flight
    if in_flight and any(load.in_flight < in_flight for load in loads.values()):
        return False
    return broker.speaks(request.api_key, request.api_version) and proven(bound, broker, home, effective=effective)


def among_all(question: Question, view: View, loads: Mapping[NodeId, Load], seq: Seq) -> Decision:
    """The choice among all brokers, in full."""

    def rank(item: tuple[Broker, Channel]) -> tuple[int, bool, int, int]:
        broker, channel = item
        return channel.load.in_flight, channel is not question.home, -broker.visible, (seq + channel.channel_id) % 64

    bound, effective = question.bound, question.effective
    usable = sorted(_usable(question, view), key=rank)
    caught_up = [(broker, channel) for broker, channel in usable if proven(bound, broker, channel, effective=effective)]
    prevented = bool(usable) and usable[0] not in caught_up and _behind(bound, usable[0][0])
    if caught_up:
        channel = caught_up[0][1]
        return Forward(channel, _worth_opening(question, view, loads, below=channel.load.in_flight), prevented)
    return Hold(
        _worth_opening(question, view, loads, below=math.inf),
        prevented,
        any(shown(bound, broker, channel) for broker, channel in usable),
    )


def _usable(question: Question, view: View) -> Iterable[tuple[Broker, Channel]]:
    for channel in (question.home, *question.channels) if question.home else question.channels:
        broker = view.brokers.get(channel.node_id)
        if broker is not None and broker.speaks(question.api_key, question.api_version):
            yield broker, channel


def _behind(bound: Bound, broker: Broker) -> bool:
    return not bound.head_promised and broker.positions and max(bound.visible, bound.effective) > broker.visible


def _worth_opening(question: Question, view: View, loads: Mapping[NodeId, Load], below: float) -> NodeId | None:
    """A broker with less than ``below`` requests in flight that meets the bound and lacks only a channel to it."""
    bound = question.bound
    if bound.head_promised:
        return None
    ready = [
        node_id
        for node_id in question.openable
        if loads[node_id].in_flight < below
        and (broker := view.brokers.get(node_id)) is not None
        and broker.up
        and broker.speaks(question.api_key, question.api_version)
        and broker.visible >= max(bound.visible, bound.effective)
        and bound.to_probe <= {node_id}
    ]
    return min(ready, key=lambda node_id: (loads[node_id].in_flight, node_id), default=None)
