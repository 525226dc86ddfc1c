"""Logging in with the sidecar's own identity: PLAIN and SCRAM over SaslHandshake v1 (KIP-43, KIP-152, RFC 5802).

Clients' own logins pass through untouched and are never seen here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from scramp import ScramClient, ScramException

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

_HANDSHAKE_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who the sidecar is. The password never appears in ``repr``."""

    mechanism: str
    username: str
    password: str = field(repr=False)


class LoginFailed(Exception):
    """The broker did not accept the credentials, or does not offer the mechanism."""


class Questions(Protocol):
    """What a login needs of a connection."""

    async def call(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a question and waits for the decoded answer."""

    def version(self, api_key: int) -> int | None:
        """The newest version that both sides speak."""


async def login(connection: Questions, credentials: Credentials) -> None:
    """Logs in.

    Raises:
        LoginFailed: with the broker's reason.
    """
    handshake = await connection.call(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, {"mechanism": credentials.mechanism})
    if handshake["error_code"]:
        offered = ", ".join(handshake["mechanisms"]) or "none"
        raise LoginFailed(f"the broker does not offer SASL {credentials.mechanism}; it offers: {offered}")
    version = connection.version(ApiKey.SASL_AUTHENTICATE) or 0

    async def exchange(token: bytes) -> bytes:
        answer = await connection.call(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": token})
        if answer["error_code"]:
            reason = answer["error_message"] or ErrorCode(answer["error_code"]).name
            raise LoginFailed(f"SASL {credentials.mechanism} as {credentials.username!r} failed: {reason}")
        return bytes(answer["auth_bytes"])

    if credentials.mechanism == "PLAIN":
        await exchange(b"\0".join((b"", credentials.username.encode(), credentials.password.encode())))
    else:
        await _scram(credentials, exchange)


class _Exchange(Protocol):
    async def __call__(self, token: bytes) -> bytes: ...


async def _scram(credentials: Credentials, exchange: _Exchange) -> None:
    client = ScramClient([credentials.mechanism], credentials.username, credentials.password)
    try:
        client.set_server_first((await exchange(client.get_client_first().encode())).decode())
        client.set_server_final((await exchange(client.get_client_final().encode())).decode())
    except (ScramException, UnicodeDecodeError) as error:
        raise LoginFailed(f"SASL {credentials.mechanism}: the broker's answer does not verify") from error
