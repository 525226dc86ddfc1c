"""How far a connection has come with its login (KIP-12, KIP-43, KIP-152, KIP-368). Pure.

    state       request           answer                              then
    OUTSIDE     ApiVersions       by the caller                       OUTSIDE
    OUTSIDE     SaslHandshake     mechanisms, or an error and the end CHOSEN
    CHOSEN      SaslAuthenticate  a token, or an error and the end    CHOSEN, INSIDE
    CHOSEN      bare token (v0)   a bare token, or the end            CHOSEN, INSIDE
    CHOSEN      any other         ILLEGAL_SASL_STATE and the end
    INSIDE      SaslHandshake     only where sessions have a lifetime CHOSEN, again as the same principal
    INSIDE      any other         by the caller, while the session lasts

Whatever else comes closes the connection. Times are milliseconds since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, final

from backend.net.sasl_server import Exchange, LoggedIn, LoginFailed, Users, exchange
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

Body = dict[str, Any]
REAUTHENTICATION_INTERVAL_MS: Final = 1000
"""A client that wants to log in again sooner than that after it last did is told that it cannot."""


class Stage(Enum):
    """See the module."""

    OUTSIDE = "outside"
    CHOSEN = "chosen"
    INSIDE = "inside"


class NotNow(Exception):
    """A request that has no place at this stage; the text is the reason for the log.

    Attributes:
        told: What the client is told with ILLEGAL_SASL_STATE; None where it is told nothing.
    """

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back; a `farewell`, with its reason for the log, is the last answer of the connection."""

    body: Body
    farewell: str | None = None


@final
class Login:
    """The login of one connection.

    Attributes:
        stage: See the module.
        who: Who has logged in, also while it does so again.
        takes_bare_tokens: Whether what comes next is no request but a token (SaslHandshake v0).
    """

    def __init__(self, users: Users, session_lifetime_ms: int) -> None:
        self.stage = Stage.OUTSIDE
        self.who: LoggedIn | None = None
        self.takes_bare_tokens = False
        self._users = users
        self._session_lifetime_ms = session_lifetime_ms
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._since_ms = 0
        self._again_at_ms: int | None = None
        self._until_ms: int | None = None

    def check_api(self, api_key: int) -> bool:
        """Whether the login answers the request itself; if not, it may be answered as ever.

        Raises:
            NotNow: It may not.
        """
        match self.stage:
            case Stage.OUTSIDE if api_key == ApiKey.API_VERSIONS:
                return False
            case Stage.OUTSIDE if api_key == ApiKey.SASL_HANDSHAKE:
                return True
            case Stage.CHOSEN if api_key == ApiKey.SASL_AUTHENTICATE:
                return True
            case Stage.INSIDE if self._until_ms is not None:
                return self._check_session(api_key, self._until_ms)
            case Stage.INSIDE:
                return False
            case Stage.CHOSEN:
                told = f"Unexpected Kafka request of type {_name(api_key)} during SASL authentication."
                raise NotNow(f"it asks for {_name(api_key)} before it has logged in", told)
        raise NotNow(f"it asks for {_name(api_key)} before it has logged in")

    def answer(self, api_key: int, api_version: int, request: Mapping[str, Any]) -> Answer:
        """The answer to a request that `check_api` has let through.

        Raises:
            NotNow: The connection ends without one.
        """
        if api_key == ApiKey.SASL_HANDSHAKE:
            return self._shake_hands(api_version, request["mechanism"])
        again = " again" if self.who is not None else ""
        try:
            token = self._step(bytes(request["auth_bytes"]))
        except LoginFailed as error:
            what = "re-authentication" if self.who is not None else "authentication"
            told = error.told or (
                f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"
            )
            body = {
                "error_code": ErrorCode.SASL_AUTHENTICATION_FAILED.value,
                "error_message": told,
                "auth_bytes": b"",
                "session_lifetime_ms": 0,
            }
            return Answer(body=body, farewell=f"it cannot log in{again} by {self._mechanism}: {error}")
        lifetime_ms = 0 if self.stage is not Stage.INSIDE or self._until_ms is None else self._until_ms - self._since_ms
        body = {"error_code": 0, "error_message": "", "auth_bytes": token, "session_lifetime_ms": lifetime_ms}
        return Answer(body=body)

    def answer_bare(self, token: bytes) -> bytes:
        """The token that answers a bare one.

        Raises:
            NotNow: The login has failed.
        """
        try:
            return self._step(token)
        except LoginFailed as error:
            raise NotNow(f"it cannot log in by {self._mechanism}: {error}") from None

    def _check_session(self, api_key: int, until_ms: int) -> bool:
        now_ms = self._users.now_ms()
        if api_key == ApiKey.SASL_HANDSHAKE:
            if self._again_at_ms is not None and now_ms - self._again_at_ms < REAUTHENTICATION_INTERVAL_MS:
                return False
            self._again_at_ms = now_ms
            return True
        if now_ms > until_ms:
            raise NotNow("its session has expired, and it has not logged in again")
        return False

    def _shake_hands(self, api_version: int, mechanism: str) -> Answer:
        offered = self._users.mechanisms
        if mechanism not in offered:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM.value
            reason = f"it wants to log in by {_shown(mechanism)}; offered are {', '.join(offered)}"
            if self.who is not None:
                raise NotNow(reason)
            return Answer(body={"error_code": code, "mechanisms": offered}, farewell=reason)
        if self.who is None:
            self._mechanism = mechanism
        # Another mechanism than before: what comes next closes the connection, as in Kafka.
        self._exchange = exchange(mechanism, self._users) if mechanism == self._mechanism else None
        self.stage = Stage.CHOSEN
        self.takes_bare_tokens = api_version == 0
        return Answer(body={"error_code": ErrorCode.NONE.value, "mechanisms": offered})

    def _step(self, token: bytes) -> bytes:
        if self._exchange is None:
            raise NotNow(f"it logs in again by another mechanism than {self._mechanism}")
        answer, who = self._exchange.step(token)
        if who is not None:
            self._enter(who)
        return answer

    def _enter(self, who: LoggedIn) -> None:
        if self.who is not None and who.principal != self.who.principal:
            before, after = (principal.replace(":", ".", 1) for principal in (self.who.principal, who.principal))
            told = f"Cannot change principals during re-authentication from {before}: {after}"
            raise LoginFailed("it comes back as somebody else", told)
        now_ms = self._users.now_ms()
        ends = [who.expires_at_ms] if who.expires_at_ms is not None else []
        if self._session_lifetime_ms:
            ends.append(now_ms + self._session_lifetime_ms)
        self.who = who
        self.stage = Stage.INSIDE
        self.takes_bare_tokens = False
        self._exchange = None
        self._since_ms = now_ms
        self._until_ms = max(now_ms, min(ends)) if ends else None


def _shown(mechanism: str) -> str:
    """A client's word for the log, cut, without anything that could steer a terminal."""
    return ascii(mechanism[:50])[1:-1]


def _name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"API key {api_key}"
