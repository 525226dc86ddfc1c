"""The story of a run: what happened last, in words, for whoever has to explain a failing seed."""

from collections import deque
from typing import Any

from sidecar.core.actions import CloseClient, Decided, Deliver, Noted, Probe, ProbeHead, Refuse, Released, Send
from sidecar.core.connection import ClientConnection
from sidecar.core.events import (
    AnswerMade,
    AnswerReceived,
    ClusterDescribed,
    HeadAnswered,
    HeadFailed,
    ProbeAnswered,
    RequestReceived,
)
from sidecar.core.exchange import Exchange
from tests.simulation.requests import NotedRequest

LINES_MAX = 400


class Violation(AssertionError):
    """An invariant does not hold.

    Attributes:
        name: of the invariant: that of its function.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Story:
    """The last events and actions; put into words only when somebody asks."""

    def __init__(self) -> None:
        self._lines: deque[tuple[float, int, str, Any]] = deque(maxlen=LINES_MAX)

    def tell(self, now_ms: float, seq: int, kind: str, what: Any) -> None:
        """Notes an event, an action, or something that happened in the cluster."""
        self._lines.append((now_ms, seq, kind, what))

    def __str__(self) -> str:
        return "\n".join(f"{now_ms:10.2f} {seq:5} {kind:7} {_words(what)}" for now_ms, seq, kind, what in self._lines)


def _words(what: Any) -> str:
    name = type(what).__name__
    match what:
        case str():
            return what
        case Send(exchange, channel, pure):
            where = "home" if channel is exchange.connection.home else f"channel {channel.channel_id}"
            return f"{name} {_request(exchange)} to broker {channel.node_id} ({where}){' as pure read' if pure else ''}"
        case Decided(exchange, decision):
            return f"{name} {_request(exchange)}: {decision}"
        case Released(exchange, why, outcome, held_ms):
            return f"{name} {_request(exchange)}: {outcome} after {held_ms:.1f} ms ({why})"
        case Refuse(exchange, reason):
            return f"{name} {_request(exchange)}: {reason}"
        case AnswerReceived(exchange, _, creates, leader_changed):
            reply = exchange.request.note.reply if isinstance(exchange.request, NotedRequest) else None
            shown = f"broker {reply.process.node_id} at {reply.visible}/{reply.effective}" if reply else "?"
            marks = " creates" * creates + " moved" * leader_changed
            offset = f", committed {reply.offset}" if reply and reply.offset >= 0 else ""
            return f"{name} {_request(exchange)} from {shown}{offset}{marks}"
        case AnswerMade(exchange):
            return f"{name} {_request(exchange)}"
        case RequestReceived(connection, request):
            note = request.note if isinstance(request, NotedRequest) else "?"
            return f"{name} {note} of {request.session_name} on {_connection(connection)}"
        case ProbeAnswered(node_id, asked, offset):
            return f"{name} broker {node_id} at {offset} (asked {asked})"
        case Probe(node_id, asked) | ProbeHead(node_id, asked):
            return f"{name} broker {node_id} (asked {asked})"
        case HeadAnswered(via, asked, answer):
            voters = ", ".join(f"{v.replica_id}:{v.last_fetch_ms}/{v.last_caught_up_ms}" for v in answer.voters)
            return (
                f"{name} via {via} (asked {asked}): leader {answer.leader_id} epoch {answer.leader_epoch} "
                f"high watermark {answer.high_watermark}, voters {voters}"
            )
        case HeadFailed(via, asked, refused):
            return f"{name} via {via} (asked {asked}){' refused' if refused else ''}"
        case CloseClient(connection, cause):
            return f"{name} {_connection(connection)}: {cause}"
        case Deliver(connection):
            return f"{name} {_connection(connection)}"
        case Noted(_, message):
            return f"{name}: {message}"
        case ClusterDescribed(cluster_id, _, brokers):
            return f"{name} {cluster_id}: {[f'{a.node_id}@{a.port}' for a in brokers]}"
        case _:
            if hasattr(what, "connection"):
                return f"{name} {_connection(what.connection)}"
            return f"{name} {getattr(what, 'node_id', None) or getattr(what, 'address', '')}"


def _request(exchange: Exchange) -> str:
    request = exchange.request
    return str(request.note) if isinstance(request, NotedRequest) else f"API {request.api_key}"


def _connection(connection: ClientConnection) -> str:
    return f"connection {connection.connection_id} (broker {connection.node_id})"
