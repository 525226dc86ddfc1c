"""Who clients are to the brokers, learned from logins as they pass: reads can then be routed as the same principal.

    SaslHandshake      names the mechanism; PLAIN and OAUTHBEARER say everything in one message that can be said again
    SaslAuthenticate   has that message; once a broker has accepted it, the client has an identity
    another login      begins: the client has none until that is accepted too

Clients with the same mechanism and message share one identity, and so the channels that are opened as it. Messages are
secrets: they stay in memory, only as long as a client that sent them is connected, and are never shown. Whatever else
clients log in with (SCRAM, GSSAPI, raw tokens) cannot be said again, and leaves them with their own broker.
Knows no socket; the core knows identities by number only.
"""

import hashlib
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from codec import CodecError, decode_request, decode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import request_body_offset, response_body_offset
from sidecar.core.connection import ClientConnection
from sidecar.core.events import Event, IdentityChanged, IdentityGone
from sidecar.core.exchange import Request
from sidecar.core.ids import OWN, Identity
from sidecar.net.sasl import Carried

log = logging.getLogger("tidegate.identities")

LOGIN_KEYS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
CARRIED: Final = frozenset({"PLAIN", "OAUTHBEARER"})
"""Mechanisms of one message, which another broker takes as well as the first."""
IDENTITIES_MAX: Final = 1000
"""Clients with other credentials than so many stay with their own brokers."""
MESSAGE_BYTES_MAX: Final = 65_536
STEPS_MAX: Final = 8
"""Requests of one login that may be under way; a client that sends more is not followed any longer."""
REFUSED_MS: Final = 30_000.0
"""How long credentials that a broker has refused are not tried again: some brokers count failures."""

_NEW_HANDSHAKE: Final = 1


class Party(Protocol):
    """What is told to whom."""

    def handle(self, event: Event) -> None:
        """Tells the core."""

    def close_channels(self, identity: Identity) -> None:
        """Ends the channels of an identity, without a word to the core."""

    def now_ms(self) -> float:
        """The clock."""


@dataclass(slots=True)
class _Talk:
    """The logins of one connection.

    Attributes:
        steps: what was sent and not answered yet: a mechanism, or a message; None for what is not followed.
        mechanism: agreed on, and no message of it answered yet.
        followed: False once it is not clear any more who this is.
    """

    steps: deque[str | bytes | None] = field(default_factory=deque, repr=False)
    mechanism: str | None = None
    followed: bool = True


@dataclass(slots=True)
class _Known:
    """One identity in use."""

    identity: Identity
    login: Carried
    connections: set[ClientConnection] = field(default_factory=set)


class Identities:
    """See the module."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._talks: dict[ClientConnection, _Talk] = {}
        self._by_login: dict[Carried, _Known] = {}
        self._by_identity: dict[Identity, _Known] = {}
        self._of: dict[ClientConnection, _Known] = {}
        self._refused_ms: dict[bytes, float] = {}
        self._last = OWN

    def __len__(self) -> int:
        return len(self._by_identity)

    def login(self, identity: Identity) -> Carried | None:
        """How to log in as this identity; None if it is gone."""
        known = self._by_identity.get(identity)
        return None if known is None else known.login

    def asked(self, connection: ClientConnection, request: Request) -> None:
        """A client's SaslHandshake or SaslAuthenticate goes to its broker."""
        talk = self._talks.setdefault(connection, _Talk())
        self._leave(connection)
        if connection.identity is not None:
            self._party.handle(IdentityChanged(connection, None))
        if len(talk.steps) >= STEPS_MAX:
            talk.followed = False
        if talk.followed:
            talk.steps.append(self._step(talk, request))

    def answered(self, connection: ClientConnection, request: Request, payload: bytes) -> None:
        """The broker has answered it; to be told before the client gets the answer."""
        talk = self._talks.get(connection)
        if talk is None or not talk.followed or not talk.steps:
            return
        step = talk.steps.popleft()
        mechanism, talk.mechanism = talk.mechanism, None
        try:
            start = response_body_offset(payload, request.api_key, request.api_version)
            body = decode_response(request.api_key, request.api_version, payload, start)
        except CodecError:
            return
        if body["error_code"] != ErrorCode.NONE or talk.steps:
            return
        if isinstance(step, str):
            talk.mechanism = step
        elif isinstance(step, bytes) and mechanism in CARRIED and not body["auth_bytes"]:
            self._accepted(connection, Carried(mechanism=mechanism, message=step))

    def left(self, connection: ClientConnection) -> None:
        """A client has gone."""
        self._talks.pop(connection, None)
        self._leave(connection)

    def refused(self, identity: Identity, why: str) -> None:
        """A broker does not let us in as this identity: its clients stay with their own brokers."""
        known = self._by_identity.get(identity)
        if known is None:
            return
        log.info("a client's login cannot be repeated at another broker, its reads stay with its own: %s", why)
        now_ms = self._party.now_ms()
        self._refused_ms = {mark: until for mark, until in self._refused_ms.items() if until > now_ms}
        if len(self._refused_ms) < IDENTITIES_MAX:
            self._refused_ms[_mark(known.login)] = now_ms + REFUSED_MS
        for connection in known.connections:
            del self._of[connection]
        known.connections.clear()
        self._forget(known)

    # Steps

    def _step(self, talk: _Talk, request: Request) -> str | bytes | None:
        payload, api_key, version = request.payload, request.api_key, request.api_version
        try:
            body = decode_request(api_key, version, payload, request_body_offset(payload))
        except CodecError:
            return None
        if api_key == ApiKey.SASL_HANDSHAKE:
            if version < _NEW_HANDSHAKE:
                # Raw tokens follow, which pass unseen.
                talk.followed = False
            return str(body["mechanism"])
        message = bytes(body["auth_bytes"])
        return message if len(message) <= MESSAGE_BYTES_MAX else None

    def _accepted(self, connection: ClientConnection, login: Carried) -> None:
        known = self._by_login.get(login)
        if known is None:
            if len(self) >= IDENTITIES_MAX or self._refused_ms.get(_mark(login), 0.0) > self._party.now_ms():
                return
            self._last = Identity(self._last + 1)
            known = self._by_login[login] = self._by_identity[self._last] = _Known(self._last, login)
        known.connections.add(connection)
        self._of[connection] = known
        self._party.handle(IdentityChanged(connection, known.identity))

    def _leave(self, connection: ClientConnection) -> None:
        known = self._of.pop(connection, None)
        if known is not None:
            known.connections.discard(connection)
            if not known.connections:
                self._forget(known)

    def _forget(self, known: _Known) -> None:
        del self._by_login[known.login]
        del self._by_identity[known.identity]
        self._party.close_channels(known.identity)
        self._party.handle(IdentityGone(known.identity))


def _mark(login: Carried) -> bytes:
    """What is remembered of credentials that are refused: enough to know them again, not to use them."""
    return hashlib.sha256(login.mechanism.encode() + b"\0" + login.message).digest()
