"""A broker of a few lines for tests on loopback: asyncio, our codec, and a handler for each API.

    cluster = FakeCluster(broker_count=2)
    async with cluster:
        cluster.brokers[1].handlers[ApiKey.METADATA] = my_handler
        ... connect to cluster.brokers[1].address ...

Answers ApiVersions with a position, Metadata with the brokers of the cluster, and DescribeQuorum with a head whose
lease holds. A handler gets the `Ask` and returns the body of the answer, None for no answer at all, or raises `HangUp`.
What was asked is kept in `asked`. Not an oracle: `tests.support.raw_client` is one.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from codec import CodecError, decode_request, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.frames import FrameReader, frame
from codec.headers import ConsistencyState, ResponseHeader, encode_response_header, read_request_header
from codec.registry import known_versions
from tests.support.address import Address
from tests.support.fake_login import FakeSasl, FakeSession

FRAME_BYTES_MAX = 1 << 20
READ_BYTES = 65536
NOW_MS = 1_000_000


class HangUp(Exception):
    """A handler raises it to close the connection in place of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request.

    Attributes:
        body: decoded; None for an API or version that our codec has no table for.
        state: what its header asks for.
        send: sends bytes of an answer as they are, and returns once there is room for more; for handlers that return
            None after they have answered themselves.
        connection: the broker's count of connections when this one was accepted.
        principal: who has logged in on it; None for nobody.
    """

    api_key: int
    api_version: int
    client_id: str | None
    body: dict[str, Any] | None
    payload: bytes
    state: ConsistencyState | None = None
    send: Callable[[bytes], Awaitable[None]]
    connection: int = 0
    principal: str | None = None


Handler = Callable[[Ask], Awaitable[Mapping[str, Any] | None] | Mapping[str, Any] | None]


class FakeBroker:
    """One broker.

    Attributes:
        address: where it listens, once started; the same after a restart.
        handlers: by API key; may be replaced at any time.
        asked: every request, in the order in which they came.
        position: offset of its metadata image; None: it reports none.
        versions: what it offers, API key to (lowest, highest).
        accepted: connections it has accepted since it was made.
        carries_state: it implements the proposal: its flexible answers carry cluster id and position.
    """

    def __init__(self, cluster: "FakeCluster", node_id: int) -> None:
        self.node_id = node_id
        self.address = Address("127.0.0.1", 0)
        self.handlers: dict[int, Handler] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: lambda ask: cluster.metadata(),
            ApiKey.DESCRIBE_QUORUM: lambda ask: cluster.quorum(),
        }
        self.asked: list[Ask] = []
        self.position: int | None = cluster.offset
        self.versions = {int(key): (found[0], found[-1]) for key in ApiKey if (found := known_versions(key))}
        self.accepted = 0
        self.carries_state = False
        self._cluster = cluster
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._writers: dict[int, asyncio.StreamWriter] = {}

    async def start(self) -> None:
        """Listens, on the port of the last time if there was one."""
        self._server = await asyncio.start_server(
            self._serve, self.address.host, self.address.port, ssl=self._cluster.tls
        )
        self.address = Address(*self._server.sockets[0].getsockname())

    async def stop(self) -> None:
        """Closes everything, as a process that dies."""
        if self._server is not None:
            self._server.close()
        for task, writer in list(self._connections.items()):
            writer.close()
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    def hang_up(self, connection: int) -> None:
        """Closes one connection (`Ask.connection`), as brokers do to those that are idle."""
        self._writers[connection].close()

    def asked_for(self, api_key: int) -> list[Ask]:
        """The requests for one API."""
        return [ask for ask in self.asked if ask.api_key == api_key]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None, "start_server runs this in a task"
        self._connections[task] = writer
        frames = FrameReader(FRAME_BYTES_MAX)
        number = self.accepted
        self._writers[number] = writer
        session = FakeSession(self._cluster.sasl) if self._cluster.sasl else None
        try:
            while data := await reader.read(READ_BYTES):
                for payload in frames.feed(data):
                    if session is not None and session.takes_raw_tokens:
                        if (said := session.take_raw_token(payload)) is not None:
                            writer.write(frame(said))
                    elif (answer := await self._answer(payload, writer, number, session)) is not None:
                        writer.write(frame(answer))
        except (OSError, CodecError, HangUp, asyncio.CancelledError):
            pass
        finally:
            del self._connections[task], self._writers[number]
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(
        self, payload: bytes, writer: asyncio.StreamWriter, number: int, session: FakeSession | None
    ) -> bytes | None:
        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        header, start = read_request_header(payload)
        key, version = header.api_key, header.api_version
        described = version in (known_versions(key) or ())
        ask = Ask(
            api_key=key,
            api_version=version,
            client_id=header.client_id,
            body=decode_request(key, version, payload, start) if described else None,
            payload=payload,
            state=header.consistency_state,
            send=send,
            connection=number,
            principal=None if session is None else session.principal,
        )
        self.asked.append(ask)
        handler = self.handlers.get(key)
        if session is not None and key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
            answer = session.handshake if key == ApiKey.SASL_HANDSHAKE else session.authenticate
            handler = handler or (lambda ask: answer(ask.body or {}))
            session.takes_raw_tokens = key == ApiKey.SASL_HANDSHAKE and version == 0
        elif session is not None and session.principal is None and key != ApiKey.API_VERSIONS:
            raise HangUp
        if handler is None:
            raise HangUp
        body = handler(ask)
        if isinstance(body, Awaitable):
            body = await body
        if body is None:
            return None
        state = None
        if self.carries_state and self.position is not None:
            state = ConsistencyState(cluster_id=self._cluster.cluster_id, consistency_token=self.position)
        answer_header = ResponseHeader(correlation_id=header.correlation_id, consistency_state=state)
        return encode_response_header(answer_header, key, version) + encode_response(key, version, body)

    def _api_versions(self, ask: Ask) -> dict[str, Any]:
        position = {} if self.position is None else {"finalized_features_epoch": self.position}
        offered = [
            {"api_key": key, "min_version": low, "max_version": high}
            for key, (low, high) in sorted(self.versions.items())
        ]
        return {"error_code": ErrorCode.NONE, "api_keys": offered, **position}


class FakeCluster:
    """Brokers 1 to ``broker_count``, one controller that is no broker, and a metadata log.

    Attributes:
        offset: the last committed one; `commit` moves it and the brokers' positions.
        refuses_quorum: DescribeQuorum is answered with CLUSTER_AUTHORIZATION_FAILED.
        host: the name under which the brokers are told.
        tls: what brokers that start from now on speak; None: no TLS.
        sasl: who may log in; None: nobody must.
    """

    def __init__(
        self,
        broker_count: int = 1,
        *,
        cluster_id: str = "fake",
        offset: int = 100,
        tls: ssl.SSLContext | None = None,
        sasl: FakeSasl | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.offset = offset
        self.leader_epoch = 1
        self.refuses_quorum = False
        self.host = "127.0.0.1"
        self.tls = tls
        self.sasl = sasl
        self.brokers = {node_id: FakeBroker(self, node_id) for node_id in range(1, broker_count + 1)}

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            await broker.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for broker in self.brokers.values():
            await broker.stop()

    def commit(self, *, seen_by: tuple[int, ...] | None = None) -> int:
        """Appends a record that these brokers (None: all) have at once; returns its offset."""
        self.offset += 1
        for node_id in self.brokers if seen_by is None else seen_by:
            self.brokers[node_id].position = self.offset
        return self.offset

    def metadata(self) -> dict[str, Any]:
        """A Metadata answer without topics."""
        brokers = [
            {"node_id": node_id, "host": self.host, "port": broker.address.port}
            for node_id, broker in self.brokers.items()
        ]
        return {"brokers": brokers, "cluster_id": self.cluster_id, "controller_id": 1, "topics": []}

    def quorum(self) -> dict[str, Any]:
        """A DescribeQuorum answer."""
        if self.refuses_quorum:
            return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "topics": []}
        voter = {
            "replica_id": 9,
            "log_end_offset": self.offset + 1,
            "last_fetch_timestamp": NOW_MS,
            "last_caught_up_timestamp": NOW_MS,
        }
        partition = {
            "partition_index": 0,
            "error_code": ErrorCode.NONE,
            "leader_id": 9,
            "leader_epoch": self.leader_epoch,
            "high_watermark": self.offset + 1,
            "current_voters": [voter],
            "observers": [],
        }
        topics = [{"topic_name": "__cluster_metadata", "partitions": [partition]}]
        return {"error_code": ErrorCode.NONE, "topics": topics, "nodes": []}
