"""A client that speaks the proposal: it puts a ConsistencyState into request headers and reads it from answers.

Headers are made and taken apart here, byte by byte, so that they are not what our codec believes them to be; bodies are
the codec's, which other tests compare with kio and with Kafka's own definitions.
"""

import asyncio
import contextlib
import itertools
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from codec import decode_response, encode_request
from codec.registry import first_flexible_version

API_VERSIONS: Final = 18
TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A ConsistencyState as it travels."""

    cluster_id: str | None = None
    token: int = -1

    def encode(self) -> bytes:
        """Compact nullable string, int64, no tagged fields."""
        name = b"\0" if self.cluster_id is None else bytes((len(self.cluster_id) + 1,)) + self.cluster_id.encode()
        return name + struct.pack(">q", self.token) + b"\0"

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """The same backwards; every byte must be used."""
        length = content[0]
        assert 0 < length < 0x80, "our brokers name their cluster, in few letters"
        assert len(content) == length + 9
        assert content[-1] == 0
        return cls(cluster_id=content[1:length].decode(), token=struct.unpack_from(">q", content, length)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes:
        state: what the header carried; None where it carried none.
        tagged: whether the header had room for one.
    """

    body: dict[str, Any]
    state: State | None
    tagged: bool

    def errors(self) -> set[int]:
        """Every error code in the body, wherever it stands."""
        return set(_codes(self.body))

    def tags(self) -> State:
        """The state, which must be there."""
        assert self.state is not None
        return self.state


def _codes(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [code for name, code in value.items() if name == "error_code"]
        return own + [code for entry in value.values() for code in _codes(entry)]
    return [code for entry in value for code in _codes(entry)] if isinstance(value, list) else []


class StateClient:
    """One connection; answers come in the order of the requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_ids = itertools.count(1)
        self._unanswered: list[tuple[int, int, int]] = []

    @classmethod
    async def open(cls, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> Self:
        """Connect, over TLS if a context is given."""
        return cls(*await asyncio.open_connection(*address, ssl=tls))

    async def ask(
        self, api_key: int, api_version: int, body: Mapping[str, Any] | None = None, state: State | None = None
    ) -> Answer:
        """Send a request and wait for its answer."""
        await self.send(api_key, api_version, body, state)
        return await self.receive()

    async def send(
        self, api_key: int, api_version: int, body: Mapping[str, Any] | None = None, state: State | None = None
    ) -> None:
        """Send a request."""
        flexible = api_version >= first_flexible_version(api_key)
        assert flexible or state is None, "only flexible versions can carry a state"
        correlation_id = next(self._correlation_ids)
        header = struct.pack(">hhih", api_key, api_version, correlation_id, 2) + b"me"
        if flexible and state is not None:
            content = state.encode()
            header += bytes((1, 0, len(content))) + content
        elif flexible:
            header += b"\0"
        payload = header + encode_request(api_key, api_version, body or {})
        self._unanswered.append((api_key, api_version, correlation_id))
        self._writer.write(struct.pack(">i", len(payload)) + payload)
        await self._writer.drain()

    async def receive(self) -> Answer:
        """The answer to the oldest request without one.

        Raises:
            asyncio.IncompleteReadError: The broker closed the connection.
            TimeoutError: None came in time.
        """
        async with asyncio.timeout(TIMEOUT_S):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            payload = await self._reader.readexactly(size)
        api_key, api_version, correlation_id = self._unanswered.pop(0)
        assert struct.unpack_from(">i", payload) == (correlation_id,)
        tagged = api_key != API_VERSIONS and api_version >= first_flexible_version(api_key)
        at, state = 4, None
        if tagged and payload[4] == 0:
            at = 5
        elif tagged:
            assert payload[4:6] == b"\1\0", "one tagged field, the state's"
            at = 7 + payload[6]
            state = State.decode(payload[7:at])
        return Answer(body=decode_response(api_key, api_version, payload, at), state=state, tagged=tagged)

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
