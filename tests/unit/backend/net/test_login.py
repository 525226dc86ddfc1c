"""Logins as a client lives through them, with a clock that the test turns. No socket, no bytes of requests."""

from typing import Any

import pytest
import scramp

from backend.metadata.image import Image
from backend.metadata.records import Batch, DelegationTokenRecord, Record, UserScramCredentialRecord
from backend.metadata.tokens import TokenSettings
from backend.net.login import Answer, Login, NotNow, Stage
from backend.net.sasl_server import LoggedIn, Users
from backend.net.scram_server import credential_of
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode

ANN = ("ann", "ann-pw")
TOKENS = TokenSettings(secret="SECRET")
TOKEN = DelegationTokenRecord(
    owner="User:owner",
    requester="User:owner",
    renewers=(),
    issue_timestamp=0,
    max_timestamp=9_000_000,
    expiration_timestamp=1_060_000,
    token_id="t0k3n",
)
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


def credential(user: str, password: str) -> UserScramCredentialRecord:
    made = credential_of("sha512", password, b"salt of 16 bytes", 5000)
    return UserScramCredentialRecord(
        name=user,
        mechanism=2,
        salt=made.salt,
        stored_key=made.stored_key,
        server_key=made.server_key,
        iterations=made.iterations,
    )


class Client:
    """One connection to a broker that knows ann by PLAIN, sue by SCRAM-SHA-512, and a token of owner's."""

    def __init__(self, *, lifetime_ms: int = 0) -> None:
        self.now_ms = 1_000_000
        records: tuple[Record, ...] = (credential("sue", "sue-pw"), TOKEN)
        self.image = Image.empty("c").apply(Batch(base_offset=0, leader_epoch=1, records=records))
        users = Users(
            passwords={"ann": "ann-pw", "zoë": "pw"},
            acting=lambda: self.image,
            tokens=TOKENS,
            now_ms=lambda: self.now_ms,
            random=bytes,
        )
        self.login = Login(users, lifetime_ms)

    def ask(self, api_key: ApiKey, version: int = 1, **request: Any) -> Answer:
        assert self.login.check_api(api_key)
        return self.login.answer(api_key, version, request)

    def choose(self, mechanism: str, version: int = 1) -> Answer:
        return self.ask(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)

    def say(self, token: bytes) -> Answer:
        return self.ask(ApiKey.SASL_AUTHENTICATE, auth_bytes=token)

    def plain(self, name: str, password: str, *, as_whom: str = "") -> Answer:
        self.choose("PLAIN")
        return self.say(f"{as_whom}\0{name}\0{password}".encode())

    def scram(self, user: str, password: str, extension: str = "", mechanism: str = "SCRAM-SHA-512") -> Answer:
        self.choose(mechanism)
        client = scramp.ScramClient([mechanism], user, password)
        first = client.get_client_first() + extension
        client.client_first_bare += extension
        answer = self.say(first.encode())
        if answer.farewell is not None:
            return answer
        client.set_server_first(answer.body["auth_bytes"].decode())
        answer = self.say(client.get_client_final().encode())
        if answer.farewell is None:
            client.set_server_final(answer.body["auth_bytes"].decode())
        return answer


def error(answer: Answer) -> tuple[int, str]:
    assert answer.farewell is not None
    return answer.body["error_code"], answer.body["error_message"]


def test_before_the_login_a_client_may_ask_for_versions_and_mechanisms_and_nothing_else() -> None:
    client = Client()
    assert client.login.check_api(ApiKey.API_VERSIONS) is False
    for api_key in (ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE, 12_345):
        with pytest.raises(NotNow, match="before it has logged in"):
            client.login.check_api(api_key)
    assert client.choose("PLAIN") == Answer(body={"error_code": 0, "mechanisms": MECHANISMS})
    for api_key in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE):
        with pytest.raises(NotNow, match="before it has logged in") as caught:
            client.login.check_api(api_key)
        assert caught.value.told == f"Unexpected Kafka request of type {api_key.name} during SASL authentication."


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are() -> None:
    answer = Client().choose("GSSAPI")
    assert answer.body == {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": MECHANISMS}
    assert answer.farewell == "it wants to log in by GSSAPI; offered are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"


@pytest.mark.parametrize(("name", "password"), [("ann", "ann-pw"), ("zoë", "pw")])
def test_plain(name: str, password: str) -> None:
    client = Client()
    answer = client.plain(name, password, as_whom=name)
    assert answer.body == {"error_code": 0, "error_message": "", "auth_bytes": b"", "session_lifetime_ms": 0}
    assert client.login.who == LoggedIn(principal=f"User:{name}")
    assert client.login.check_api(ApiKey.METADATA) is False
    assert client.login.check_api(ApiKey.SASL_HANDSHAKE) is False


GENERIC = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\0ann\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0eve\0ann-pw", "Authentication failed: Invalid username or password"),
        (
            b"eve\0ann\0ann-pw",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"\0ann\0", "Authentication failed: password not specified"),
        (b"\0\0pw", "Authentication failed: username not specified"),
        (b"ann-pw", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0ann\0ann-pw\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\xff\0pw", "Authentication failed: Invalid username or password"),
    ],
)
def test_plain_gone_wrong(message: bytes, told: str) -> None:
    client = Client()
    client.choose("PLAIN")
    answer = client.say(message)
    assert error(answer) == (FAILED, told)
    assert "pw" not in str(answer.farewell)
    assert client.login.who is None


def test_scram_against_what_is_in_effect() -> None:
    client = Client()
    assert client.scram("sue", "sue-pw").farewell is None
    assert client.login.who == LoggedIn(principal="User:sue")
    other = Client()
    other.image = Image.empty("c")
    assert error(other.scram("sue", "sue-pw")) == (FAILED, f"{GENERIC}SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [("sue", "wrong", "SCRAM-SHA-512"), ("ann", "ann-pw", "SCRAM-SHA-512"), ("sue", "sue-pw", "SCRAM-SHA-256")],
)
def test_scram_gone_wrong(user: str, password: str, mechanism: str) -> None:
    client = Client()
    assert error(client.scram(user, password, mechanism=mechanism)) == (FAILED, f"{GENERIC}{mechanism}")
    assert client.login.who is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_its_owner_in_until_it_expires(mechanism: str) -> None:
    client = Client()
    answer = client.scram("t0k3n", TOKENS.password("t0k3n"), ",tokenauth=true", mechanism)
    assert answer.body["session_lifetime_ms"] == 60_000
    assert client.login.who == LoggedIn(principal="User:owner", by_token=True, expires_at_ms=1_060_000)
    assert client.login.check_api(ApiKey.METADATA) is False
    client.now_ms += 60_001
    with pytest.raises(NotNow, match="its session has expired"):
        client.login.check_api(ApiKey.METADATA)


@pytest.mark.parametrize(("token_id", "waits_ms"), [("t0k3n", 60_001), ("other", 0), ("sue", 0)])
def test_tokens_that_are_unknown_or_have_expired(token_id: str, waits_ms: int) -> None:
    client = Client()
    client.now_ms += waits_ms
    password = TOKENS.password(token_id)
    assert error(client.scram(token_id, password, ",tokenauth=true")) == (FAILED, f"{GENERIC}SCRAM-SHA-512")


def test_a_session_with_a_lifetime_ends_unless_the_client_logs_in_again() -> None:
    client = Client(lifetime_ms=5_000)
    assert client.plain(*ANN).body["session_lifetime_ms"] == 5_000
    client.now_ms += 4_000
    assert client.plain(*ANN).body["session_lifetime_ms"] == 5_000
    client.now_ms += 5_000
    assert client.login.check_api(ApiKey.METADATA) is False
    client.now_ms += 1
    with pytest.raises(NotNow, match="its session has expired"):
        client.login.check_api(ApiKey.METADATA)
    assert client.plain(*ANN).farewell is None
    assert client.login.check_api(ApiKey.METADATA) is False


def test_nobody_comes_back_as_somebody_else_or_by_other_means_or_all_the_time() -> None:
    client = Client(lifetime_ms=5_000)
    client.plain(*ANN)
    assert client.plain(*ANN).farewell is None
    client.now_ms += 999
    assert client.login.check_api(ApiKey.SASL_HANDSHAKE) is False
    client.now_ms += 1
    assert client.choose("SCRAM-SHA-512") == Answer(body={"error_code": 0, "mechanisms": MECHANISMS})
    with pytest.raises(NotNow, match="it logs in again by another mechanism than PLAIN"):
        client.say(b"n,,n=sue,r=abc")
    client = Client(lifetime_ms=5_000)
    client.plain(*ANN)
    with pytest.raises(NotNow, match="it wants to log in by GSSAPI"):
        client.choose("GSSAPI")
    client = Client(lifetime_ms=5_000)
    client.plain(*ANN)
    assert error(client.plain("zoë", "pw")) == (
        FAILED,
        "Cannot change principals during re-authentication from User.ann: User.zoë",
    )
    assert client.login.stage is Stage.CHOSEN


def test_a_wrong_password_the_second_time_is_told_as_such() -> None:
    client = Client(lifetime_ms=5_000)
    client.scram("sue", "sue-pw")
    client.now_ms += 1_000
    _, told = error(client.scram("sue", "wrong"))
    assert told == GENERIC.replace("during authentication", "during re-authentication") + "SCRAM-SHA-512"


def test_bare_tokens_after_the_handshake_of_old() -> None:
    client = Client()
    client.choose("PLAIN", version=0)
    asked = [client.login.takes_bare_tokens]
    assert client.login.answer_bare(b"\0ann\0ann-pw") == b""
    asked.append(client.login.takes_bare_tokens)
    assert asked == [True, False]
    assert client.login.who == LoggedIn(principal="User:ann")
    other = Client()
    other.choose("PLAIN", version=0)
    with pytest.raises(NotNow, match="it cannot log in by PLAIN: user or password is wrong"):
        other.login.answer_bare(b"\0ann\0wrong")
