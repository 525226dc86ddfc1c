"""Logging in with the sidecar's own identity, over SaslHandshake v1 (KIP-43, KIP-152, RFC 5802, RFC 7628).

    handshake    agree on the mechanism, or learn which ones the listener has
    PLAIN        one message: NUL, user name, NUL, password
    SCRAM        client-first, server-first, client-final, server-final; the broker proves that it knows the password
    OAUTHBEARER  one message with the token; a refusal comes as a challenge, whose answer brings the reason

Knows no socket: `sidecar.net.broker_connection` asks the questions. Clients' own logins pass through the sidecar
untouched and are never seen here.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Self

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from config.files import read_secret
from config.sidecar import ClusterSecurity
from sidecar.core.error_names import error_name

ITERATIONS_MAX: Final = 65_536
"""Four times what Kafka lets a credential have; hashing more often would hold the event loop up."""

_HANDSHAKE_VERSION: Final = 1
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""A bearer token (RFC 6750): anything else could end the message that it stands in."""
_BROKER_TEXT_LENGTH_MAX: Final = 300

Exchange = Callable[[bytes], Awaitable[bytes]]
"""Sends one message of a mechanism and returns the broker's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who the sidecar is. Neither password nor token ever appear in ``repr``.

    Attributes:
        mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
        username, password: for PLAIN and SCRAM.
        token: for OAUTHBEARER.
    """

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, security: ClusterSecurity) -> Self | None:
        """The identity that the configuration names; None where the cluster asks for none.

        Raises:
            config.faults.ConfigError: the file with the password or token cannot be read.
        """
        if not security.protocol.startswith("SASL_"):
            return None
        sasl = security.sasl
        assert sasl.mechanism, "the configuration demands it"
        if sasl.mechanism == "OAUTHBEARER":
            assert sasl.token_file, "the configuration demands it"
            return cls(mechanism=sasl.mechanism, token=read_secret(sasl.token_file))
        assert sasl.username, "the configuration demands it"
        assert sasl.password_file, "the configuration demands it"
        return cls(mechanism=sasl.mechanism, username=sasl.username, password=read_secret(sasl.password_file))

    def now(self) -> Self:
        """Themselves: see `Login`."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a client has said in a mechanism of one message, to be said again to another broker; never in ``repr``."""

    mechanism: str
    message: bytes = field(repr=False)

    def now(self) -> Self:
        """Themselves: see `Login`."""
        return self


class Login(Protocol):
    """Where the credentials come from, asked again for every login."""

    def now(self) -> Credentials | Carried:
        """The credentials as they are now."""


class LoginFailed(Exception):
    """The broker did not accept the credentials, or does not offer the mechanism. The message holds no secret."""


class Questions(Protocol):
    """What a login needs of a connection."""

    async def call(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a question and waits for the decoded answer."""

    def version(self, api_key: int) -> int | None:
        """The newest version that both sides speak."""


async def login(connection: Questions, credentials: Credentials | Carried) -> int:
    """Logs in; afterwards the connection takes any question. Done again on the same connection, it renews the login.

    Returns:
        For how many ms the login holds (KIP-368); 0: as long as the connection.

    Raises:
        LoginFailed: with the broker's reason; the caller closes the connection.
    """
    mechanism = credentials.mechanism
    await _agree(connection, mechanism)
    version = connection.version(ApiKey.SASL_AUTHENTICATE) or 0
    lifetime_ms = 0

    async def exchange(message: bytes) -> bytes:
        nonlocal lifetime_ms
        answer = await connection.call(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": message})
        if answer["error_code"]:
            reason = answer["error_message"] or error_name(answer["error_code"])
            who = (
                f" as {credentials.username!r}" if isinstance(credentials, Credentials) and credentials.username else ""
            )
            raise LoginFailed(f"SASL {mechanism} login{who} failed: {_shown(reason)}")
        lifetime_ms = answer.get("session_lifetime_ms", 0)
        return bytes(answer["auth_bytes"])

    if isinstance(credentials, Carried):
        await _say(credentials.message, mechanism, exchange)
        return lifetime_ms
    match mechanism:
        case "PLAIN":
            await _plain(credentials, exchange)
        case "OAUTHBEARER":
            await _bearer(credentials, exchange)
        case _:
            await _scram(credentials, exchange)
    return lifetime_ms


async def _agree(connection: Questions, mechanism: str) -> None:
    answer = await connection.call(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, {"mechanism": mechanism})
    match answer["error_code"]:
        case ErrorCode.NONE:
            return
        case ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = _shown(", ".join(answer["mechanisms"])) or "none"
            raise LoginFailed(f"the broker does not offer SASL {mechanism}; it offers: {offered}")
        case ErrorCode.ILLEGAL_SASL_STATE:
            raise LoginFailed("this listener takes no login: set protocol PLAINTEXT, or use its SASL_PLAINTEXT port")
        case other:
            raise LoginFailed(f"SaslHandshake was answered with {error_name(other)}")


async def _plain(credentials: Credentials, exchange: Exchange) -> None:
    if "\0" in credentials.username + credentials.password:
        raise LoginFailed("SASL PLAIN allows no NUL character in a user name or password")
    await exchange(f"\0{credentials.username}\0{credentials.password}".encode())


async def _bearer(credentials: Credentials, exchange: Exchange) -> None:
    if not _TOKEN.fullmatch(credentials.token):
        raise LoginFailed("SASL OAUTHBEARER: the token file holds no bearer token: letters, digits and -._~+/ only")
    await _say(f"n,,\x01auth=Bearer {credentials.token}\x01\x01".encode(), credentials.mechanism, exchange)


async def _say(message: bytes, mechanism: str, exchange: Exchange) -> None:
    """The one message of a mechanism; OAUTHBEARER is refused by a challenge, whose answer brings the reason."""
    if await exchange(message):
        await exchange(b"\x01")
        raise LoginFailed(f"SASL {mechanism}: the broker refuses the login and does not say why")


async def _scram(credentials: Credentials, exchange: Exchange) -> None:
    # It brings a whole X.509 parser along, 8 MB that sidecars without SCRAM do without.
    from scramp import ScramClient, ScramException

    mechanism = credentials.mechanism
    try:
        client = ScramClient([mechanism], credentials.username, credentials.password)
        client_first: str = client.get_client_first()
    except ScramException as error:
        reason = "the user name or the password has characters that SCRAM does not allow"
        raise LoginFailed(f"SASL {mechanism}: {reason}") from error
    try:
        client.set_server_first((await exchange(client_first.encode())).decode())
        if int(client.iterations) > ITERATIONS_MAX:
            raise LoginFailed(f"SASL {mechanism}: the broker asks for more than {ITERATIONS_MAX} iterations")
        client.set_server_final((await exchange(client.get_client_final().encode())).decode())
    except (ScramException, UnicodeDecodeError) as error:
        raise LoginFailed(f"SASL {mechanism}: the broker's answer does not verify") from error


def _shown(text: str) -> str:
    """The broker's words, cut, with anything escaped that could steer a terminal."""
    cut = text[:_BROKER_TEXT_LENGTH_MAX]
    return cut if cut.isprintable() else ascii(cut)[1:-1]
