"""A large answer to a plain request, while it still comes: what may go to the client of each chunk (proxying.md 1).

    LongAnswer(request, size)
    feed(chunk) -> bytes to send: the frame's size first, then the payload as it came
    left == 0: named() for the shell to make ports, then last(ports) -> the bytes that remain

Two things must be kept back. A ConsistencyState in the header, which a client that cannot expect it does not get: the
header is collected before the size goes out. And the tail of a Produce, Fetch, ShareFetch or ShareAcknowledge answer,
where brokers are named when a partition has moved: it keeps its length, since the size has gone out by then
(`codec.fixed_length`). Both are bounded, so that an answer of any size costs a few kilobytes.

Knows no socket; `sidecar.net.home` feeds it.
"""

import struct
from typing import Any, Final

from codec import CodecError, Truncated
from codec.chunked_walk import ChunkedWalk
from codec.fixed_length import fit_node_endpoints
from codec.headers import ConsistencyState, strip_response
from codec.walk import WALKED, Walk
from sidecar.core.addresses import NodePorts, rewrite_endpoints
from sidecar.core.events import Address
from sidecar.core.exchange import Request
from sidecar.core.ids import NodeId
from sidecar.core.states import state_in

HEADER_BYTES_MAX: Final = 65_536
"""Most that a header may have in which a ConsistencyState is looked for."""
TAIL_BYTES_MAX: Final = 262_144
"""Most that may come after the partitions: some thousand brokers, each named once."""

_SIZE: Final = struct.Struct(">i")


class LongAnswer:
    """See the module.

    Attributes:
        left: bytes of the payload that have yet to come; never feed more.
        takes_state: a ConsistencyState in the header is taken out.
        state: what its header carried and the client did not get; None while the header is not whole.
    """

    __slots__ = ("_header", "_request", "_size", "_tail", "_walk", "_walked", "left", "state", "takes_state")

    def __init__(self, request: Request, size: int, *, takes_state: bool) -> None:
        """Begins with the first byte after the frame's size.

        Args:
            size: of the payload, as the frame says.
            takes_state: see the class.

        Raises:
            codec.CodecError: an API that is walked, in a version that is unknown.
        """
        self.left = size
        self.takes_state = takes_state
        self.state: ConsistencyState | None = None
        self._request = request
        self._size = size
        self._header: bytes | None = b"" if takes_state else None
        self._walk = ChunkedWalk(request.api_key, request.api_version) if request.api_key in WALKED else None
        self._walked: Walk | None = None
        self._tail = b""

    def begin(self) -> bytes:
        """What goes out before anything was fed: the frame's size, unless the header may change it."""
        return _SIZE.pack(self._size) if self._header is None else b""

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept here now."""
        return len(self._tail) + len(self._header or b"") + (0 if self._walk is None else self._walk.held_bytes)

    def feed(self, chunk: bytes) -> bytes:
        """Takes the next bytes of the payload; returns those to be sent, in order after all before.

        Raises:
            codec.CodecError: these are no bytes of such an answer, or what must be kept back is too large.
        """
        self.left -= len(chunk)
        size = b""
        if self._header is not None:
            begun = self._strip(self._header + chunk)
            if begun is None:
                return b""
            size, chunk = begun
        if self._walk is None:
            return size + chunk if size else chunk
        passed = self._walk.feed(chunk)
        if passed < len(chunk):
            self._tail += chunk[passed:]
            if len(self._tail) > TAIL_BYTES_MAX:
                raise CodecError(
                    self._walk.tail_start, "tail", f"more than {TAIL_BYTES_MAX} bytes behind the partitions"
                )
            chunk = chunk[:passed]
        return size + chunk if size else chunk

    def named(self) -> tuple[Address, ...]:
        """The brokers that it names, at their own addresses; to be asked once, when nothing is left.

        Raises:
            codec.CodecError: it ended too early, or its tail is malformed.
        """
        if self._header is not None:
            raise Truncated(len(self._header), "response_header", "the answer ends within it")
        if self._walk is None:
            return ()
        self._walked = self._walk.finish(self._tail)
        return tuple(
            Address(NodeId(e["node_id"]), e["host"], e["port"], e["rack"])
            for e in self._walked.endpoints
            if e["node_id"] >= 0 and e["port"] > 0
        )

    @property
    def leader_changed(self) -> bool:
        """Whether a partition has moved; known after `named`."""
        return self._walked is not None and self._walked.leader_changed

    def last(self, ports: NodePorts) -> bytes:
        """The bytes that remain, every address in them one of ours; after `named`.

        Raises:
            codec.CodecError: an address of ours does not fit.
        """
        walked = self._walked
        if walked is None or not walked.endpoints:
            return self._tail
        endpoints: list[dict[str, Any]] = [dict(endpoint) for endpoint in walked.endpoints]
        return fit_node_endpoints(self._tail, walked, rewrite_endpoints(endpoints, ports))

    def _strip(self, begun: bytes) -> tuple[bytes, bytes] | None:
        """The frame's size and what there is of the payload, without a state; None while the header is not whole."""
        request = self._request
        try:
            stripped = strip_response(begun, request.api_key, request.api_version)
        except Truncated:
            if len(begun) > HEADER_BYTES_MAX:
                raise
            self._header = begun
            return None
        self._header = None
        self.state = state_in(begun, request.api_key, request.api_version)
        if self.state is None:
            stripped = begun
        return _SIZE.pack(self._size - len(begun) + len(stripped)), stripped
