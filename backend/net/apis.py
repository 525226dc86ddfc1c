"""From the payload of a request to that of its answer: the proposal's server side, point by point, on one broker.

    1  decode
    2  another cluster's id                    -> INCONSISTENT_CLUSTER_ID
    3  a token above the image                 -> wait, or STALE_METADATA
       no token, but reads are linearizable    -> take a head that is confirmed from now on for the token
    4  build the answer, then read the position, then write it into the header

Point 4 in that order: the position may be newer than the answer, never older, or the token would claim less than the
answer shows. Knows the images, the controller and the quorum as values and interfaces; no socket.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from backend.metadata.client import ANYBODY, Client
from backend.metadata.cluster_access import refused_at_the_door
from backend.metadata.image import Image
from backend.metadata.reads import Reader
from backend.metadata.reads import answer as read_answer
from backend.metadata.records import Record
from backend.metadata.refusals import refuse
from backend.metadata.writes import WriteRequest
from backend.net.active_controller import ActiveController
from backend.net.api_versions import api_versions, unsupported_api_versions
from backend.net.controller_channel import NoController
from backend.net.listener import Unserved
from backend.net.offers import OFFERS, AnsweredBy, api_versions_rows
from backend.net.publication import Publication
from backend.net.quorum_answers import describe_quorum
from backend.net.security import OPEN, Security
from backend.net.state_check import EFFECTIVE_APIS, GATED_APIS, MESSAGES, STALE_METADATA, Verdict, judge
from backend.raft.interfaces import HeadUnconfirmed, Observer
from codec import CodecError, encode_response
from codec.api_keys import ApiKey
from codec.compiled import decoder
from codec.error_codes import ErrorCode
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    encode_response_header,
    peek_request,
    read_request_header,
)
from codec.registry import request_table

NO_OFFSET: Final = -1

Body = Mapping[str, Any]
Read = Callable[[int, int, Body, Reader], dict[str, Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a broker's answers say about itself.

    Attributes:
        node_id: its id.
        cluster_id: its cluster's.
        listener_name: which endpoint of each broker clients of its port are told.
        controllers: where the voters of the quorum are said to listen, by id.
        static_configs: what the broker was started with, in Kafka's keys.
    """

    node_id: int
    cluster_id: str
    listener_name: str
    controllers: Mapping[int, tuple[str, int]]
    static_configs: Mapping[str, str]


@final
class Apis:
    """Answers the requests of one broker.

    Args:
        state_wait_ms: how long a request may wait for its token; 0 answers at once.
        security: who may do what.
        linearizable: whether reads without a token show all that was committed before they came.
        read: makes the answers that come from the image.
    """

    def __init__(
        self,
        identity: Identity,
        publication: Publication,
        observer: Observer[Record, Image],
        controller: ActiveController,
        *,
        state_wait_ms: int,
        security: Security = OPEN,
        linearizable: bool = False,
        read: Read = read_answer,
    ) -> None:
        self._identity = identity
        self._publication = publication
        self._observer = observer
        self._controller = controller
        self._state_wait_ms = state_wait_ms
        self._security = security
        self._linearizable = linearizable
        self._read = read

    def check_version(self, api_key: int, api_version: int) -> None:
        """Do nothing if that version of an API is offered.

        Raises:
            Unserved: It is not.
        """
        offer = OFFERS.get(api_key)
        if offer is None:
            raise Unserved(f"it asks for API key {api_key}, which is not offered")
        if not offer.first <= api_version <= offer.last:
            raise Unserved(
                f"it asks for {ApiKey(api_key).name} v{api_version}; offered are v{offer.first} to v{offer.last}"
            )

    async def answer(self, payload: bytes, client: Client = ANYBODY) -> bytes:
        """The answer to one request of a client.

        Raises:
            Unserved: The API or version is not offered.
            CodecError: The request is malformed.
        """
        api_key, api_version, correlation_id = peek_request(payload)
        if api_key == ApiKey.API_VERSIONS and not 0 <= api_version <= OFFERS[api_key].last:
            return unsupported_api_versions(correlation_id)
        self.check_version(api_key, api_version)
        header, at = read_request_header(payload)
        # As Kafka does, ignore what comes after the body: librdkafka's Metadata request has three bytes too many.
        request, _ = decoder(request_table(api_key), api_version)(payload, at)
        arrival = asyncio.get_running_loop().time()
        covered = NO_OFFSET
        if error := await self._refusal(header, arrival):
            response = refuse(api_key, api_version, request, error, MESSAGES[error])
        else:
            try:
                response, covered = await self._respond(OFFERS[api_key].answered_by, header, request, client)
            except NoController as timeout:
                response = refuse(api_key, api_version, request, ErrorCode.REQUEST_TIMED_OUT, str(timeout))
        body = encoded(api_key, api_version, response)
        # Not before the body is complete: see the module.
        position = ConsistencyState(
            cluster_id=self._identity.cluster_id, consistency_token=max(self._publication.offset, covered)
        )
        answer_header = ResponseHeader(correlation_id=correlation_id, consistency_state=position)
        return encode_response_header(answer_header, api_key, api_version) + body

    async def _refusal(self, header: RequestHeader, arrival: float) -> int:
        """The error that the request's ConsistencyState leads to; 0 if it may be answered."""
        state = header.consistency_state
        publication = self._publication
        if self._linearizable and header.api_key in GATED_APIS and (state is None or state.consistency_token < 0):
            if state is not None and state.cluster_id not in (None, self._identity.cluster_id):
                return ErrorCode.INCONSISTENT_CLUSTER_ID
            return await self._catch_up(header.api_key, arrival + self._state_wait_ms / 1000)
        read = publication.acting if header.api_key in EFFECTIVE_APIS else publication.image
        verdict = judge(state, header.api_key, self._identity.cluster_id, read.highest_offset)
        if verdict is Verdict.GO_ON or state is None:
            return ErrorCode.NONE
        if verdict is Verdict.WRONG_CLUSTER:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if self._state_wait_ms == 0:
            return STALE_METADATA
        token = state.consistency_token
        reach = publication.reach_effect if header.api_key in EFFECTIVE_APIS else publication.reach
        reached = await self._reaches(token, reach(token), arrival + self._state_wait_ms / 1000)
        return ErrorCode.NONE if reached else STALE_METADATA

    async def _catch_up(self, api_key: int, deadline: float) -> int:
        """Wait until the image has all that was committed when this was called (KIP-650); 0 once it has."""
        reach = self._publication.reach_effect if api_key in EFFECTIVE_APIS else self._publication.reach
        try:
            async with asyncio.timeout_at(deadline):
                head = await self._observer.confirmed_head()
                await reach(head.offset)
        except (TimeoutError, HeadUnconfirmed):
            return ErrorCode.REQUEST_TIMED_OUT
        return ErrorCode.NONE

    async def _reaches(self, token: int, reached: asyncio.Future[None], deadline: float) -> bool:
        """Whether the broker gets to `token` in time; False at once when the log does not reach that far."""
        asking = asyncio.ensure_future(self._may_exist(token))
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.wait((reached, asking), return_when=asyncio.FIRST_COMPLETED)
                if not reached.done() and not asking.result():
                    return False
                await reached
                return True
        except TimeoutError:
            return False
        finally:
            reached.cancel()
            asking.cancel()

    async def _may_exist(self, token: int) -> bool:
        """False if a head confirmed from now on lies below `token`; True also when no head can be had."""
        try:
            head = await self._observer.confirmed_head()
        except HeadUnconfirmed:
            return True
        return head.offset >= token

    async def _respond(
        self, answered_by: AnsweredBy, header: RequestHeader, request: Body, client: Client
    ) -> tuple[dict[str, Any], int]:
        """The body of the answer, and the offset that the leader says it covers, if the leader made it."""
        match answered_by:
            case AnsweredBy.IMAGE:
                return self._read(header.api_key, header.api_version, request, self._reader(client)), NO_OFFSET
            case AnsweredBy.CONTROLLER:
                written = await self._controller.write(
                    WriteRequest(
                        api_key=header.api_key,
                        api_version=header.api_version,
                        body=request,
                        client=client,
                        broker_id=self._identity.node_id,
                    )
                )
                return written.response, written.offset
            case AnsweredBy.LEADER:
                access = self._reader(client).access
                refused = refused_at_the_door(header.api_key, header.api_version, request, access)
                if refused is not None:
                    return refused, NO_OFFSET
                state = await self._controller.describe()
                response = describe_quorum(request, state, self._identity.controllers)
                return response, state.high_watermark - 1
            case AnsweredBy.HERE:
                image = self._publication.image
                return api_versions(header.api_version, request, api_versions_rows(), image), NO_OFFSET

    def _reader(self, client: Client) -> Reader:
        return Reader(
            image=self._publication.image,
            acting=self._publication.acting,
            node_id=self._identity.node_id,
            listener_name=self._identity.listener_name,
            client=client,
            authorizer=self._security.authorizer,
            tokens=self._security.tokens,
            static_configs=self._identity.static_configs,
        )


def encoded(api_key: int, api_version: int, response: Body) -> bytes:
    """The bytes of the body.

    Raises:
        Unserved: A text in it is longer than the protocol allows: the request had one that was about as long.
    """
    try:
        return encode_response(api_key, api_version, response)
    except CodecError as error:
        raise Unserved(f"the answer cannot be encoded: {error}") from error
