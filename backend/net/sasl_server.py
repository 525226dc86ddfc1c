"""One SASL exchange on a broker's port: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Pure; knows no request and no socket.

`step` takes the client's token and gives ours; when it is over, `principal` says who the client is. What a client whose
login fails is told does not say what is known here, as in Kafka.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, final

from backend.metadata.image import Image
from backend.metadata.scram import HASHES, ScramMechanism
from backend.metadata.tokens import TokenSettings, is_expired
from backend.net.scram_server import BadMessage, ScramServer, credential_of, read_client_first

PLAIN: Final = "PLAIN"
SCRAM: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_PLAIN_PARTS: Final = 3
_OTHER_ID: Final = "Authentication failed: Client requested an authorization id that is different from username"


class LoginFailed(Exception):
    """The client is not let in.

    Attributes:
        told: What it is told; None for the sentence that says nothing.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Against what logins are checked.

    Attributes:
        passwords: User to password, for PLAIN; empty where PLAIN is not offered.
        acting: What the broker acts upon: SCRAM credentials and delegation tokens.
        tokens: How passwords of tokens are made; None if there are no tokens.
        now_ms: The wall clock, milliseconds since 1970.
        random: That many random bytes.
    """

    passwords: Mapping[str, str] = field(repr=False)
    acting: Callable[[], Image]
    tokens: TokenSettings | None
    now_ms: Callable[[], int]
    random: Callable[[int], bytes]

    @property
    def mechanisms(self) -> list[str]:
        """What is offered."""
        return [*([PLAIN] if self.passwords else []), *SCRAM]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """Who has logged in; a token says until when."""

    principal: str
    by_token: bool = False
    expires_at_ms: int | None = None


class Exchange(Protocol):
    """A login under way."""

    def step(self, token: bytes) -> tuple[bytes, LoggedIn | None]:
        """Our answer to a token of the client's, and who the client is once that is known.

        Raises:
            LoginFailed: The client is not let in.
        """
        ...


def exchange(mechanism: str, users: Users) -> Exchange:
    """A new login; the mechanism is one of those that are offered."""
    return _Plain(users) if mechanism == PLAIN else _Scram(SCRAM[mechanism], users)


@final
class _Plain:
    """RFC 4616: one message with the password in it."""

    def __init__(self, users: Users) -> None:
        self._passwords = users.passwords

    def step(self, token: bytes) -> tuple[bytes, LoggedIn | None]:
        parts = token.split(b"\0", _PLAIN_PARTS)
        if len(parts) != _PLAIN_PARTS:
            told = f"Invalid SASL/PLAIN response: expected {_PLAIN_PARTS} tokens, got {len(parts)}"
            raise LoginFailed("the message is malformed", told)
        authorization_id, name, password = parts
        for part, word in ((name, "username"), (password, "password")):
            if not part:
                raise LoginFailed(f"it says no {word}", f"Authentication failed: {word} not specified")
        known = self._passwords.get(name.decode(errors="replace"))
        if known is None or not hmac.compare_digest(known.encode(), password):
            raise LoginFailed("user or password is wrong", "Authentication failed: Invalid username or password")
        if authorization_id not in (b"", name):
            raise LoginFailed("it wants to be somebody else", _OTHER_ID)
        return b"", LoggedIn(principal=f"User:{name.decode()}")


@final
class _Scram:
    """See `scram_server`."""

    def __init__(self, mechanism: ScramMechanism, users: Users) -> None:
        self._mechanism = mechanism
        self._users = users
        self._server: ScramServer | None = None
        self._who: LoggedIn | None = None

    def step(self, token: bytes) -> tuple[bytes, LoggedIn | None]:
        try:
            return self._begin(token) if self._server is None else (self._server.finish(token), self._who)
        except BadMessage as error:
            raise LoginFailed(str(error)) from None

    def _begin(self, message: bytes) -> tuple[bytes, None]:
        first = read_client_first(message)
        users = self._users
        image = users.acting()
        hash_name = HASHES[self._mechanism]
        if first.is_token:
            token = image.tokens.by_id.get(first.username)
            if token is None or users.tokens is None or is_expired(token, users.now_ms()):
                raise LoginFailed("there is no such token")
            credential = credential_of(hash_name, users.tokens.password(token.token_id), users.random(16))
            self._who = LoggedIn(principal=token.owner, by_token=True, expires_at_ms=token.expiration_timestamp)
        else:
            found = image.scram.credential(first.username, self._mechanism)
            if found is None:
                raise LoginFailed("there is no such credential")
            credential = found
            self._who = LoggedIn(principal=f"User:{first.username}")
        if first.authorization_id not in ("", first.username):
            raise LoginFailed("it wants to be somebody else", _OTHER_ID)
        self._server = ScramServer(hash_name, first, credential, users.random(16).hex())
        return self._server.server_first, None
