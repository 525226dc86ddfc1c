"""One client's connection to a broker, request by request: who it is first, then what it asks.

    bytes -> Login, until it is over -> Apis, with the client it has turned out to be

Without SASL a client is who its certificate says, or anonymous. Sits between `listener` and `apis`; knows no socket.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final, final

from backend.metadata.client import ANONYMOUS, Client
from backend.metadata.refusals import refuse
from backend.net.apis import Apis
from backend.net.listener import Farewell, Peer, Unserved
from backend.net.login import Login, NotNow
from backend.net.publication import Publication
from backend.net.sasl_server import Users
from backend.net.security import Security
from codec import encode_response
from codec.api_keys import ApiKey
from codec.compiled import decoder
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header, peek_request, read_request_header
from codec.registry import request_table

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""Requests that change or read metadata are far smaller; Kafka's own limit (100 MiB) is made for records."""
LOGIN_BYTES_MAX: Final = 512 * 1024
"""Kafka's `sasl.server.max.receive.size`: how much is read from a client that nobody knows yet."""
FAILED_LOGIN_DELAY_S: Final = 0.1
"""Kafka's `connection.failed.authentication.delay.ms`: guessing passwords takes time."""
_LOGIN_APIS: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


@final
class Session:
    """One connection of a client.

    Args:
        peer: where it comes from, and the subject of its certificate.
    """

    def __init__(self, apis: Apis, security: Security, publication: Publication, peer: Peer) -> None:
        self._apis = apis
        self._host = peer.host
        self._login: Login | None = None
        if security.is_sasl:
            users = Users(
                passwords=security.passwords,
                acting=lambda: publication.acting,
                tokens=security.tokens,
                now_ms=lambda: time.time_ns() // 1_000_000,
                random=secrets.token_bytes,
            )
            self._login = Login(users, security.session_lifetime_ms)
        self._client = Client(
            principal=ANONYMOUS if peer.subject is None else f"User:{peer.subject}",
            host=peer.host,
            may_ask_for_tokens=peer.subject is not None,
        )

    @property
    def frame_bytes_max(self) -> int:
        """How large the next request may be."""
        return FRAME_BYTES_MAX if self._login is None or self._login.who is not None else LOGIN_BYTES_MAX

    async def answer(self, payload: bytes) -> bytes:
        """The answer to one request, or token.

        Raises:
            Farewell: The login has failed; the answer is the last one.
            Unserved: The request closes the connection.
            CodecError: It is malformed.
        """
        login = self._login
        try:
            if login is not None and login.takes_bare_tokens:
                return login.answer_bare(payload)
            api_key, api_version, correlation_id = peek_request(payload)
            if login is not None and login.check_api(api_key):
                return await self._log_in(login, payload)
        except NotNow as error:
            raise self._farewell(payload, error) from None
        if api_key in _LOGIN_APIS:
            # There is none to make, or it is over. The same error in all versions of both, as Kafka's brokers give it.
            self._apis.check_version(api_key, api_version)
            return _encoded(api_key, api_version, correlation_id, _NO_LOGIN)
        return await self._apis.answer(payload, self._client)

    def _farewell(self, payload: bytes, error: NotNow) -> Farewell | Unserved:
        """How a connection ends on which something came that has no place there."""
        if error.told is None:
            return Unserved(str(error))
        api_key, api_version, correlation_id = peek_request(payload)
        self._apis.check_version(api_key, api_version)
        body = refuse(api_key, api_version, _decoded(payload), ErrorCode.ILLEGAL_SASL_STATE, error.told)
        return Farewell(_encoded(api_key, api_version, correlation_id, body), str(error))

    async def _log_in(self, login: Login, payload: bytes) -> bytes:
        api_key, api_version, correlation_id = peek_request(payload)
        self._apis.check_version(api_key, api_version)
        answer = login.answer(api_key, api_version, _decoded(payload))
        encoded = _encoded(api_key, api_version, correlation_id, answer.body)
        if answer.farewell is not None:
            await asyncio.sleep(FAILED_LOGIN_DELAY_S)
            raise Farewell(encoded, answer.farewell)
        if login.who is not None:
            principal, by_token = login.who.principal, login.who.by_token
            self._client = Client(principal=principal, host=self._host, may_ask_for_tokens=not by_token)
        return encoded


_NO_LOGIN: Final[Mapping[str, Any]] = {
    "error_code": ErrorCode.ILLEGAL_SASL_STATE.value,
    "error_message": "SaslAuthenticate request received after successful authentication",
    "mechanisms": [],
    "auth_bytes": b"",
    "session_lifetime_ms": 0,
}


def _decoded(payload: bytes) -> dict[str, Any]:
    header, at = read_request_header(payload)
    request, _ = decoder(request_table(header.api_key), header.api_version)(payload, at)
    return request


def _encoded(api_key: int, api_version: int, correlation_id: int, body: Mapping[str, Any]) -> bytes:
    header = ResponseHeader(correlation_id=correlation_id)
    return encode_response_header(header, api_key, api_version) + encode_response(api_key, api_version, body)
