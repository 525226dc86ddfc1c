"""The active controller of another process, asked over the wire in the requests that Kafka's brokers send to it.

    write       Envelope (58)
    register    BrokerRegistration (62)
    heartbeat   BrokerHeartbeat (63)
    describe    DescribeQuorum (55)

Every failure that may pass is `NotLeader`: whoever asks looks for the leader and asks again.
"""

from collections.abc import Mapping
from typing import Any, Final, final

from backend.metadata.writes import WriteRequest
from backend.net.active_controller import NotRegistered, Registration, StaleBrokerEpoch, Written
from backend.net.envelope import ENVELOPE_VERSION, unwrap_answer, wrap
from backend.net.quorum_answers import ask_for_metadata, read_quorum
from backend.net.registration_wire import heartbeat_request, registration_request
from backend.net.remote import Remote, Unreachable
from backend.raft.interfaces import NotLeader, QuorumState
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

REQUEST_TIMEOUT_S: Final = 5.0
"""A leader that cannot commit resigns within 1.5 times the fetch timeout."""
BROKER_REGISTRATION_VERSION: Final = 4
BROKER_HEARTBEAT_VERSION: Final = 1
DESCRIBE_QUORUM_VERSION: Final = 2


@final
class RemoteController:
    """One controller, which may lead or not: an `ActiveController`."""

    def __init__(self, remote: Remote, cluster_id: str) -> None:
        self._remote = remote
        self._cluster_id = cluster_id

    async def write(self, request: WriteRequest) -> Written:
        """See `ActiveController`."""
        body = await self._ask(ApiKey.ENVELOPE, ENVELOPE_VERSION, wrap(request, correlation_id=0))
        if body["error_code"] != ErrorCode.NONE or body["response_data"] is None:
            raise NotLeader
        response, offset = unwrap_answer(request, body["response_data"])
        return Written(response=response, offset=offset)

    async def register(self, registration: Registration) -> int:
        """See `ActiveController`."""
        body = await self._ask(
            ApiKey.BROKER_REGISTRATION,
            BROKER_REGISTRATION_VERSION,
            registration_request(registration, self._cluster_id),
        )
        if body["error_code"] != ErrorCode.NONE:
            raise NotLeader
        epoch: int = body["broker_epoch"]
        return epoch

    async def heartbeat(self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> bool:
        """See `ActiveController`."""
        body = await self._ask(
            ApiKey.BROKER_HEARTBEAT,
            BROKER_HEARTBEAT_VERSION,
            heartbeat_request(broker_id, broker_epoch, image_offset, leaving=leaving),
        )
        match body["error_code"]:
            case ErrorCode.NONE:
                is_fenced: bool = body["is_fenced"]
                return is_fenced
            case ErrorCode.BROKER_ID_NOT_REGISTERED:
                raise NotRegistered
            case ErrorCode.STALE_BROKER_EPOCH:
                raise StaleBrokerEpoch
            case _:
                raise NotLeader

    async def describe(self) -> QuorumState:
        """See `ActiveController`."""
        return read_quorum(await self._ask(ApiKey.DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION, ask_for_metadata()))

    async def _ask(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            _, answer = await self._remote.ask(api_key, api_version, body, REQUEST_TIMEOUT_S)
        except Unreachable as error:
            raise NotLeader from error
        return answer
