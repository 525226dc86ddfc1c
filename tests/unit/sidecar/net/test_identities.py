"""What is learned from logins as they pass, and what is not: bounds, other mechanisms, answers that refuse."""

import pytest

from codec import encode_request, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import RequestHeader, ResponseHeader, encode_request_header, encode_response_header
from sidecar.core.apis import Kind, Trace
from sidecar.core.connection import ClientConnection
from sidecar.core.events import Event, IdentityChanged, IdentityGone
from sidecar.core.exchange import Request
from sidecar.core.ids import Identity, NodeId
from sidecar.net import identities
from sidecar.net.identities import Identities

pytestmark = pytest.mark.row("5.4")

ALICE = b"\0alice\0alice-secret"


class Talk:
    """One `Identities`, what it told, and what clients and brokers say."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.closed: list[Identity] = []
        self.clock_ms = 0.0
        self.identities = Identities(self)
        self._last = 0

    def handle(self, event: Event) -> None:
        self.told.append(event)
        if isinstance(event, IdentityChanged):
            event.connection.identity = event.identity

    def close_channels(self, identity: Identity) -> None:
        self.closed.append(identity)

    def now_ms(self) -> float:
        return self.clock_ms

    def client(self) -> ClientConnection:
        self._last += 1
        return ClientConnection(self._last, NodeId(1), None)

    def handshakes(self, client: ClientConnection, mechanism: str, version: int = 1, error: int = 0) -> None:
        request = self.asks(client, ApiKey.SASL_HANDSHAKE, version, {"mechanism": mechanism})
        self.answers(client, request, {"error_code": error, "mechanisms": []})

    def authenticates(self, client: ClientConnection, message: bytes, *, answer: bytes = b"", error: int = 0) -> None:
        request = self.asks(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message})
        self.answers(client, request, {"error_code": error, "error_message": None, "auth_bytes": answer})

    def asks(self, client: ClientConnection, key: int, version: int, body: dict[str, object]) -> Request:
        header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="c")
        payload = encode_request_header(header) + encode_request(key, version, body)
        request = Request(api_key=key, api_version=version, kind=Kind.WRITE, trace=Trace.NONE, payload=payload)
        self.identities.asked(client, request)
        return request

    def answers(self, client: ClientConnection, request: Request, body: dict[str, object]) -> None:
        key, version = request.api_key, request.api_version
        header = encode_response_header(ResponseHeader(correlation_id=1), key, version)
        self.identities.answered(client, request, header + encode_response(key, version, body))

    def login(self, client: ClientConnection, message: bytes, mechanism: str = "PLAIN") -> Identity | None:
        self.handshakes(client, mechanism)
        self.authenticates(client, message)
        return client.identity


def test_the_same_login_is_the_same_identity_and_another_one_is_not() -> None:
    talk = Talk()
    first, second, third = talk.client(), talk.client(), talk.client()
    assert talk.login(first, ALICE) == talk.login(second, ALICE) != talk.login(third, ALICE + b"x")
    assert len(talk.identities) == 2
    carried = talk.identities.login(Identity(1))
    assert carried is not None
    assert (carried.mechanism, carried.message) == ("PLAIN", ALICE)
    assert "secret" not in repr(carried) + repr(talk.identities._talks)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "GSSAPI"])
def test_other_mechanisms_are_not_carried(mechanism: str) -> None:
    talk = Talk()
    client = talk.client()
    assert talk.login(client, ALICE, mechanism) is None
    assert talk.told == []


def test_a_mechanism_of_more_than_one_message_is_not_carried_even_if_it_is_called_plain() -> None:
    talk = Talk()
    client = talk.client()
    talk.handshakes(client, "PLAIN")
    talk.authenticates(client, b"first", answer=b"go on")
    talk.authenticates(client, ALICE)
    assert client.identity is None


def test_a_refusal_gives_nobody() -> None:
    talk = Talk()
    client = talk.client()
    talk.handshakes(client, "PLAIN", error=ErrorCode.UNSUPPORTED_SASL_MECHANISM)
    talk.authenticates(client, ALICE)
    talk.handshakes(client, "PLAIN")
    talk.authenticates(client, ALICE, error=ErrorCode.SASL_AUTHENTICATION_FAILED)
    assert client.identity is None
    assert talk.login(client, ALICE) is not None


def test_behind_the_old_handshake_nobody_is_followed() -> None:
    talk = Talk()
    client = talk.client()
    talk.handshakes(client, "PLAIN", version=0)
    assert talk.login(client, ALICE) is None


def test_what_is_pipelined_is_answered_in_order() -> None:
    talk = Talk()
    client = talk.client()
    handshake = talk.asks(client, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    message = talk.asks(client, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": ALICE})
    talk.answers(client, handshake, {"error_code": 0, "mechanisms": []})
    assert client.identity is None
    talk.answers(client, message, {"error_code": 0, "error_message": None, "auth_bytes": b""})
    assert client.identity is None, "while something else was on its way, it is not clear who this is"
    assert talk.login(client, ALICE) is not None


def test_a_new_login_ends_the_former_identity_at_once() -> None:
    talk = Talk()
    client = talk.client()
    identity = talk.login(client, ALICE)
    assert identity is not None
    talk.asks(client, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    assert client.identity is None
    assert talk.closed == [identity]
    assert talk.told[-2:] == [IdentityGone(identity), IdentityChanged(client, None)]


def test_an_identity_ends_with_its_last_client() -> None:
    talk = Talk()
    first, second = talk.client(), talk.client()
    identity = talk.login(first, ALICE)
    talk.login(second, ALICE)
    talk.identities.left(first)
    assert talk.closed == []
    talk.identities.left(second)
    assert talk.closed == [identity]
    assert len(talk.identities) == 0
    talk.identities.left(talk.client())


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "IDENTITIES_MAX", 1)
    talk = Talk()
    first, second, third = talk.client(), talk.client(), talk.client()
    assert talk.login(third, b"x" * (identities.MESSAGE_BYTES_MAX + 1)) is None
    assert talk.login(first, ALICE) is not None
    assert talk.login(second, ALICE + b"x") is None
    talk.identities.left(first)
    assert talk.login(second, ALICE + b"x") is not None
    for _ in range(identities.STEPS_MAX + 5):
        talk.asks(third, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": ALICE})
    assert len(talk.identities._talks[third].steps) == identities.STEPS_MAX
    assert talk.login(third, ALICE) is None


def test_refused_credentials_are_left_alone_for_a_while() -> None:
    talk = Talk()
    first, second = talk.client(), talk.client()
    identity = talk.login(first, ALICE)
    assert identity is not None
    talk.identities.refused(identity, "no")
    assert talk.told[-1] == IdentityGone(identity)
    assert talk.closed == [identity]
    assert talk.login(second, ALICE) is None
    talk.clock_ms = identities.REFUSED_MS + 1
    third = talk.client()
    assert talk.login(third, ALICE) is not None
    talk.identities.refused(identity, "an identity that is gone")
    assert len(talk.identities) == 1
