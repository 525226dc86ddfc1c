"""From the payload of a request to that of its answer, on a controller's listener: the quorum, brokers, Kafka's tools.

    Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot    the replica
    DescribeQuorum                                                  the replica, if a majority confirms that it leads
    BrokerRegistration, BrokerHeartbeat, Envelope, the writes       the controller, if it is active
    DescribeCluster, DescribeConfigs, DescribeAcls, ApiVersions     every controller

That is what Kafka's tools ask with `--bootstrap-controller` (KIP-919). Who asks a controller itself is anonymous, and
brokers are believed about their clients. Knows the replica and the controller; no socket.
"""

from collections.abc import Mapping
from typing import Any, Final, final

from backend.metadata.client import LOOPBACK, Client
from backend.metadata.reader import Reader
from backend.metadata.reads import answer as read_answer
from backend.metadata.refusals import refuse
from backend.metadata.writes import WriteRequest
from backend.net.active_controller import NotRegistered, StaleBrokerEpoch
from backend.net.api_versions import FIRST, LAST, api_versions, unsupported_api_versions
from backend.net.apis import Identity, encoded
from backend.net.controller import Controller
from backend.net.driver import Driver, ReplicaStopped
from backend.net.envelope import broker_of, unwrap, wrap_answer
from backend.net.listener import Peer, Unserved
from backend.net.offers import OFFERS, AnsweredBy
from backend.net.quorum_answers import describe_quorum
from backend.net.quorum_wire import ACCEPTED, Refused, read_request, response_body
from backend.net.registration_wire import read_registration
from backend.net.security import OPEN, Security
from backend.net.session import FRAME_BYTES_MAX
from backend.raft.interfaces import NotLeader
from codec.api_keys import ApiKey
from codec.compiled import decoder
from codec.error_codes import ErrorCode
from codec.headers import RequestHeader, ResponseHeader, encode_response_header, peek_request, read_request_header
from codec.registry import request_table

Body = Mapping[str, Any]

WRITES: Final = frozenset(key for key, offer in OFFERS.items() if offer.answered_by is AnsweredBy.CONTROLLER)
READS: Final = frozenset({ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_ACLS})
VERSIONS: Final[Mapping[int, tuple[int, int]]] = {
    **ACCEPTED,
    **{key: (OFFERS[key].first, OFFERS[key].last) for key in (*WRITES, *READS)},
    ApiKey.API_VERSIONS: (FIRST, LAST),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.BROKER_REGISTRATION: (0, 4),
    ApiKey.BROKER_HEARTBEAT: (0, 2),
    ApiKey.ENVELOPE: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
}
"""First and last version of each API that a controller answers."""

BROKERS: Final = 1
CONTROLLERS: Final = 2
NOT_ASKED: Final = -(2**31)
_NOT_CONTROLLER: Final = "This controller is not the active one."
_NOT_LEADER: Final = "This controller does not lead the quorum, or no majority confirms that it does."


@final
class ControllerConversation:
    """What answers one connection of a controller's listener."""

    frame_bytes_max = FRAME_BYTES_MAX

    def __init__(self, apis: "ControllerApis", peer: Peer) -> None:
        self._apis = apis
        self._host = peer.host

    async def answer(self, payload: bytes) -> bytes:
        """See `Conversation`."""
        return await self._apis.answer(payload, self._host)


@final
class ControllerApis:
    """Answers the requests of one controller's listener."""

    def __init__(self, identity: Identity, driver: Driver, controller: Controller, security: Security = OPEN) -> None:
        self._identity = identity
        self._driver = driver
        self._controller = controller
        self._security = security

    async def answer(self, payload: bytes, host: str = LOOPBACK) -> bytes:
        """The answer to one request.

        Args:
            payload: the request.
            host: where it comes from, as access rules name it.

        Raises:
            Unserved: The API or version is not offered, or the node is about to end.
            CodecError: The request is malformed.
        """
        api_key, api_version, correlation_id = peek_request(payload)
        if api_key not in VERSIONS:
            raise Unserved(f"it asks for API key {api_key}, which a controller does not offer")
        first, last = VERSIONS[api_key]
        if not first <= api_version <= last:
            if api_key == ApiKey.API_VERSIONS:
                return unsupported_api_versions(correlation_id)
            raise Unserved(f"it asks for {ApiKey(api_key).name} v{api_version}; offered are v{first} to v{last}")
        header, at = read_request_header(payload)
        request, _ = decoder(request_table(api_key), api_version)(payload, at)
        body = encoded(api_key, api_version, await self._respond(header, request, Client(host=host)))
        return encode_response_header(ResponseHeader(correlation_id=correlation_id), api_key, api_version) + body

    async def _respond(self, header: RequestHeader, request: Body, client: Client) -> Body:
        api_key, api_version = header.api_key, header.api_version
        if api_key in ACCEPTED:
            return await self._ask_replica(api_key, api_version, request)
        if api_key in WRITES:
            return await self._write(header, request, client)
        if api_key in READS:
            return read_answer(api_key, api_version, request, self._reader(client))
        match api_key:
            case ApiKey.DESCRIBE_QUORUM:
                return await self._describe_quorum(api_version, request)
            case ApiKey.BROKER_REGISTRATION:
                return await self._register(request)
            case ApiKey.BROKER_HEARTBEAT:
                return await self._heartbeat(request)
            case ApiKey.ENVELOPE:
                return await self._forwarded(header, request)
            case ApiKey.DESCRIBE_CLUSTER:
                return self._describe_cluster(request)
            case _:
                return api_versions(api_version, request, _ROWS, self._controller.image)

    async def _ask_replica(self, api_key: int, api_version: int, request: Body) -> Body:
        try:
            asked = read_request(api_key, request, self._identity.cluster_id, self._identity.node_id)
        except Refused as refused:
            return refused.body
        try:
            return response_body(await self._driver.receive(asked), api_version)
        except ReplicaStopped as error:
            raise Unserved("the replica has no answer") from error

    async def _describe_quorum(self, api_version: int, request: Body) -> Body:
        try:
            state = await self._controller.describe()
        except NotLeader:
            return refuse(ApiKey.DESCRIBE_QUORUM, api_version, request, ErrorCode.NOT_LEADER_OR_FOLLOWER, _NOT_LEADER)
        return describe_quorum(request, state, self._identity.controllers)

    async def _write(self, header: RequestHeader, request: Body, client: Client) -> Body:
        write = WriteRequest(
            api_key=header.api_key,
            api_version=header.api_version,
            body=request,
            client=client,
            broker_id=self._identity.node_id,
        )
        try:
            return (await self._controller.write(write)).response
        except NotLeader:
            return refuse(header.api_key, header.api_version, request, ErrorCode.NOT_CONTROLLER, _NOT_CONTROLLER)

    async def _forwarded(self, header: RequestHeader, request: Body) -> Body:
        write, correlation_id = unwrap(request, broker_of(header.client_id))
        if write.api_key not in WRITES:
            return {"response_data": None, "error_code": ErrorCode.INVALID_REQUEST}
        try:
            written = await self._controller.write(write)
        except NotLeader:
            return {"response_data": None, "error_code": ErrorCode.NOT_CONTROLLER}
        data = wrap_answer(write, correlation_id, written.response, written.offset)
        return {"response_data": data, "error_code": ErrorCode.NONE}

    async def _register(self, request: Body) -> Body:
        if request["cluster_id"] != self._identity.cluster_id:
            return {"throttle_time_ms": 0, "error_code": ErrorCode.INCONSISTENT_CLUSTER_ID}
        try:
            epoch = await self._controller.register(read_registration(request))
        except NotLeader:
            return {"throttle_time_ms": 0, "error_code": ErrorCode.NOT_CONTROLLER}
        return {"throttle_time_ms": 0, "error_code": ErrorCode.NONE, "broker_epoch": epoch}

    async def _heartbeat(self, request: Body) -> Body:
        code = ErrorCode.NONE
        is_fenced = True
        leaving = request["want_shut_down"]
        epoch, offset = request["broker_epoch"], request["current_metadata_offset"]
        try:
            is_fenced = await self._controller.heartbeat(
                request["broker_id"],
                epoch,
                # A broker that wants to stay fenced is not unfenced, however far it is.
                -1 if request["want_fence"] else offset,
                leaving=leaving,
            )
        except NotLeader:
            code = ErrorCode.NOT_CONTROLLER
        except NotRegistered:
            code = ErrorCode.BROKER_ID_NOT_REGISTERED
        except StaleBrokerEpoch:
            code = ErrorCode.STALE_BROKER_EPOCH
        return {
            "throttle_time_ms": 0,
            "error_code": code,
            "is_caught_up": code == ErrorCode.NONE and offset >= epoch,
            "is_fenced": is_fenced,
            "should_shut_down": code == ErrorCode.NONE and leaving,
        }

    def _describe_cluster(self, request: Body) -> Body:
        """DescribeCluster: the controllers, which is what who connects to one wants to know (KIP-919)."""
        code, message = ErrorCode.NONE, None
        asked = request.get("endpoint_type", BROKERS)
        if asked == BROKERS:
            code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            message = "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
        elif asked != CONTROLLERS:
            code, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {asked}"
        listed = self._identity.controllers.items() if code == ErrorCode.NONE else ()
        return {
            "throttle_time_ms": 0,
            "error_code": code,
            "error_message": message,
            "endpoint_type": CONTROLLERS,
            "cluster_id": self._identity.cluster_id,
            "controller_id": self._driver.leader.leader_id,
            "brokers": [
                {"broker_id": node_id, "host": host, "port": port, "rack": None, "is_fenced": False}
                for node_id, (host, port) in sorted(listed)
            ],
            "cluster_authorized_operations": NOT_ASKED,
        }

    def _reader(self, client: Client) -> Reader:
        image = self._controller.image
        return Reader(
            image=image,
            acting=image,
            node_id=self._identity.node_id,
            listener_name=self._identity.listener_name,
            client=client,
            authorizer=self._security.authorizer,
            tokens=self._security.tokens,
            static_configs=self._identity.static_configs,
        )


_ROWS: Final = [
    {"api_key": int(api_key), "min_version": first, "max_version": last}
    for api_key, (first, last) in sorted(VERSIONS.items())
]
