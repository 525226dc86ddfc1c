"""SASL of the fake broker: PLAIN and OAUTHBEARER over SaslHandshake v1, one principal a connection.

Until somebody has logged in, a connection takes ApiVersions and nothing else, as on a SASL listener of Kafka.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codec.error_codes import ErrorCode

_BEARER = re.compile(rb"n,,\x01auth=Bearer ([^\x01]+)\x01\x01")


@dataclass(slots=True)
class FakeSasl:
    """Who may log in.

    Attributes:
        passwords: of PLAIN, by user name.
        tokens: of OAUTHBEARER, token to principal.
        lifetime_ms: how long a login holds; 0: as long as the connection.
        raw_answers: what is said to the raw tokens after SaslHandshake v0, one after the other; None: nothing.
    """

    passwords: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    lifetime_ms: int = 0
    raw_answers: tuple[bytes | None, ...] = (b"",)

    def principal(self, mechanism: str, message: bytes) -> str | None:
        """Who says this; None for nobody we know."""
        if mechanism == "PLAIN":
            _, username, password = message.decode().split("\0")
            return username if self.passwords.get(username) == password else None
        found = _BEARER.fullmatch(message)
        return self.tokens.get(found[1].decode()) if found else None


@dataclass(slots=True)
class FakeSession:
    """The login of one connection.

    Attributes:
        principal: None until somebody has logged in.
        logins: how often that was.
        raw_tokens: those that came after SaslHandshake v0.
        takes_raw_tokens: whether the next frame is one.
    """

    sasl: FakeSasl
    principal: str | None = None
    logins: int = 0
    mechanism: str = ""
    raw_tokens: list[bytes] = field(default_factory=list)
    takes_raw_tokens: bool = False

    def take_raw_token(self, token: bytes) -> bytes | None:
        """The answer to a raw token; the last one logs in whoever it is."""
        answers = self.sasl.raw_answers
        self.raw_tokens.append(token)
        if len(self.raw_tokens) == len(answers):
            self.takes_raw_tokens = False
            self.principal = "raw"
        return answers[len(self.raw_tokens) - 1]

    def handshake(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to SaslHandshake."""
        offered = ["PLAIN", "OAUTHBEARER"]
        self.mechanism = body["mechanism"]
        known = self.mechanism in offered
        error_code = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return {"error_code": error_code, "mechanisms": offered}

    def authenticate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to SaslAuthenticate."""
        message = bytes(body["auth_bytes"])
        found = self.sasl.principal(self.mechanism, message)
        if found is None and self.mechanism == "OAUTHBEARER" and message != b"\x01":
            return {"error_code": ErrorCode.NONE, "error_message": None, "auth_bytes": b'{"status":"invalid_token"}'}
        if found is None or self.principal not in (None, found):
            words = "Authentication failed"
            return {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": words, "auth_bytes": b""}
        self.principal = found
        self.logins += 1
        return {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "auth_bytes": b"",
            "session_lifetime_ms": self.sasl.lifetime_ms,
        }
