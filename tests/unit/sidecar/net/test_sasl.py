"""Logins against a scripted broker: every mechanism, every refusal, and no secret in any text."""

import hashlib
import traceback
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scramp import ScramException, ScramMechanism

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from config.load import load_security
from sidecar.net.sasl import ITERATIONS_MAX, Credentials, LoginFailed, login

PASSWORD = "pässword of alice"
SALT = b"0123456789abcdef"


class ScriptedBroker:
    """Answers SaslHandshake, and each SaslAuthenticate with what ``step`` makes of its message."""

    def __init__(
        self,
        step: Callable[[bytes], bytes],
        *,
        handshake: Mapping[str, Any] | None = None,
        authenticate_version: int | None = 2,
    ) -> None:
        self.asked: list[tuple[int, int, Mapping[str, Any]]] = []
        self._step = step
        self._handshake = handshake or {"error_code": ErrorCode.NONE, "mechanisms": []}
        self._version = authenticate_version

    async def call(self, api_key: int, api_version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((api_key, api_version, body))
        if api_key == ApiKey.SASL_HANDSHAKE:
            return dict(self._handshake)
        assert api_key == ApiKey.SASL_AUTHENTICATE
        try:
            return {"error_code": ErrorCode.NONE, "error_message": None, "auth_bytes": self._step(body["auth_bytes"])}
        except Refusal as refusal:
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            return {"error_code": code, "error_message": refusal.words, "auth_bytes": b""}

    def version(self, api_key: int) -> int | None:
        assert api_key == ApiKey.SASL_AUTHENTICATE
        return self._version


class Refusal(Exception):
    def __init__(self, words: str | None) -> None:
        super().__init__(words)
        self.words = words


def scram_server(
    mechanism: str, password: str, *, iterations: int = 4096, users: tuple[str, ...] = ("alice",)
) -> Callable[[bytes], bytes]:
    """The broker's side of SCRAM, by scramp's server."""
    known = ScramMechanism(mechanism)
    salt, stored_key, server_key, count = known.make_auth_info(password, iteration_count=iterations, salt=SALT)

    def look_up(username: str) -> tuple[bytes, bytes, bytes, int]:
        assert username in users
        return salt, stored_key, server_key, count

    server = known.make_server(look_up)
    messages = iter((True, False))

    def step(message: bytes) -> bytes:
        if next(messages):
            server.set_client_first(message.decode())
            return str(server.get_server_first()).encode()
        try:
            server.set_client_final(message.decode())
        except ScramException:
            raise Refusal("Authentication failed due to invalid credentials") from None
        return str(server.get_server_final()).encode()

    return step


def credentials(mechanism: str, *, username: str = "alice", password: str = PASSWORD) -> Credentials:
    return Credentials(mechanism=mechanism, username=username, password=password)


async def failure(broker: ScriptedBroker, who: Credentials) -> str:
    """Why the login fails; neither the text nor the traceback holds the password."""
    with pytest.raises(LoginFailed) as caught:
        await login(broker, who)
    shown = "".join(traceback.format_exception(caught.value))
    assert who.password not in shown
    return str(caught.value)


@pytest.mark.parametrize(("offered", "spoken"), [(2, 2), (1, 1), (0, 0), (None, 0)])
async def test_plain_sends_user_and_password(offered: int | None, spoken: int) -> None:
    broker = ScriptedBroker(lambda message: b"", authenticate_version=offered)
    await login(broker, credentials("PLAIN"))
    assert broker.asked == [
        (ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}),
        (ApiKey.SASL_AUTHENTICATE, spoken, {"auth_bytes": b"\0alice\0" + PASSWORD.encode()}),
    ]


async def test_plain_with_a_wrong_password() -> None:
    def step(message: bytes) -> bytes:
        raise Refusal("Authentication failed: Invalid username or password")

    reason = await failure(ScriptedBroker(step), credentials("PLAIN"))
    assert reason == "SASL PLAIN login as 'alice' failed: Authentication failed: Invalid username or password"


async def test_a_refusal_without_words_is_told_by_its_code() -> None:
    def step(message: bytes) -> bytes:
        raise Refusal(None)

    reason = await failure(ScriptedBroker(step), credentials("PLAIN"))
    assert reason == "SASL PLAIN login as 'alice' failed: SASL_AUTHENTICATION_FAILED"


async def test_the_brokers_words_are_cut_and_cannot_steer_a_terminal() -> None:
    def step(message: bytes) -> bytes:
        raise Refusal("\x1b[2Jcleared" + "x" * 10_000)

    reason = await failure(ScriptedBroker(step), credentials("PLAIN"))
    assert "\\x1b[2Jcleared" in reason
    assert reason.isprintable()
    assert len(reason) < 400


@pytest.mark.parametrize(("username", "password"), [("a\0b", "secret words"), ("alice", "secret\0words")])
async def test_plain_refuses_nul_before_it_asks(username: str, password: str) -> None:
    broker = ScriptedBroker(lambda message: b"")
    assert "NUL" in await failure(broker, credentials("PLAIN", username=username, password=password))
    assert [api_key for api_key, _, _ in broker.asked] == [ApiKey.SASL_HANDSHAKE]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram(mechanism: str) -> None:
    broker = ScriptedBroker(scram_server(mechanism, PASSWORD))
    await login(broker, credentials(mechanism))
    assert broker.asked[0] == (ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})
    assert len(broker.asked) == 3
    assert not any(PASSWORD.encode() in body.get("auth_bytes", b"") for _, _, body in broker.asked)


async def test_scram_escapes_user_names() -> None:
    username = "a,b=c"
    broker = ScriptedBroker(scram_server("SCRAM-SHA-256", PASSWORD, users=(username,)))
    await login(broker, credentials("SCRAM-SHA-256", username=username))
    assert b"n=a=2Cb=3Dc," in broker.asked[1][2]["auth_bytes"]


async def test_scram_with_a_wrong_password() -> None:
    broker = ScriptedBroker(scram_server("SCRAM-SHA-512", "another password"))
    reason = await failure(broker, credentials("SCRAM-SHA-512"))
    assert reason == "SASL SCRAM-SHA-512 login as 'alice' failed: Authentication failed due to invalid credentials"


async def test_scram_demands_the_brokers_own_proof() -> None:
    honest = scram_server("SCRAM-SHA-256", PASSWORD)
    forged = b"v=" + b64encode(hashlib.sha256(b"no proof").digest())

    def step(message: bytes) -> bytes:
        answer = honest(message)
        return forged if answer.startswith(b"v=") else answer

    broker = ScriptedBroker(step)
    assert "does not verify" in await failure(broker, credentials("SCRAM-SHA-256"))
    assert len(broker.asked) == 3


@pytest.mark.parametrize(
    "server_first", [b"", b"\xff\xfe", b"e=other-error", b"r=x,s=x,i=4096", b"r=abc,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=x"]
)
async def test_scram_with_nonsense_from_the_broker(server_first: bytes) -> None:
    assert "does not verify" in await failure(
        ScriptedBroker(lambda message: server_first), credentials("SCRAM-SHA-256")
    )


@pytest.mark.parametrize(("iterations", "accepted"), [(ITERATIONS_MAX, True), (ITERATIONS_MAX + 1, False)])
async def test_scram_bounds_the_work_that_a_broker_can_ask_for(iterations: int, accepted: bool) -> None:
    broker = ScriptedBroker(scram_server("SCRAM-SHA-256", PASSWORD, iterations=iterations))
    if accepted:
        await login(broker, credentials("SCRAM-SHA-256"))
    else:
        assert "more than 65536 iterations" in await failure(broker, credentials("SCRAM-SHA-256"))
        assert len(broker.asked) == 2


async def test_scram_refuses_characters_that_it_cannot_carry() -> None:
    broker = ScriptedBroker(lambda message: b"")
    reason = await failure(broker, credentials("SCRAM-SHA-256", password="bell \x07 rings"))
    assert "characters that SCRAM does not allow" in reason
    assert len(broker.asked) == 1


@pytest.mark.parametrize(
    ("handshake", "expected"),
    [
        (
            {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": ["GSSAPI", "OAUTHBEARER"]},
            "the broker does not offer SASL PLAIN; it offers: GSSAPI, OAUTHBEARER",
        ),
        (
            {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": []},
            "the broker does not offer SASL PLAIN; it offers: none",
        ),
        (
            {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []},
            "this listener takes no login: set protocol PLAINTEXT, or use its SASL_PLAINTEXT port",
        ),
        ({"error_code": 999, "mechanisms": []}, "SaslHandshake was answered with error 999"),
    ],
    ids=["others", "none", "no SASL listener", "unknown error"],
)
async def test_a_refused_handshake_says_what_to_do(handshake: dict[str, Any], expected: str) -> None:
    broker = ScriptedBroker(lambda message: b"", handshake=handshake)
    assert await failure(broker, credentials("PLAIN")) == expected
    assert len(broker.asked) == 1


@pytest.mark.row("5.8")
def test_credentials_show_no_password() -> None:
    who = credentials("PLAIN")
    assert PASSWORD not in f"{who} {who!r} {[who]}"
    assert "alice" in repr(who)
    assert TOKEN not in repr(Credentials(mechanism="OAUTHBEARER", token=TOKEN))


TOKEN = "eyJhbGciOi.JIUzI1.NiJ9-_~+/=="


@pytest.mark.row("5.4")
async def test_a_bearer_token_is_one_message() -> None:
    broker = ScriptedBroker(lambda message: b"")
    assert await login(broker, Credentials(mechanism="OAUTHBEARER", token=TOKEN)) == 0
    assert broker.asked == [
        (ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "OAUTHBEARER"}),
        (ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()}),
    ]


async def bearer_failure(broker: ScriptedBroker, token: str) -> str:
    with pytest.raises(LoginFailed) as caught:
        await login(broker, Credentials(mechanism="OAUTHBEARER", token=token))
    assert token not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.row("5.4")
async def test_a_refused_token_is_a_challenge_whose_answer_brings_the_reason() -> None:
    def step(message: bytes) -> bytes:
        if message == b"\x01":
            raise Refusal('{"status":"invalid_token"}')
        return b'{"status":"invalid_token"}'

    broker = ScriptedBroker(step)
    assert await bearer_failure(broker, TOKEN) == ('SASL OAUTHBEARER login failed: {"status":"invalid_token"}')
    mute = ScriptedBroker(lambda message: b"no")
    assert (await bearer_failure(mute, TOKEN)).endswith("the broker refuses the login and does not say why")


@pytest.mark.parametrize("token", ["two words", "a\x01b", "tökén", "a=b"])
async def test_what_is_no_bearer_token_is_not_sent(token: str) -> None:
    broker = ScriptedBroker(lambda message: b"")
    assert "the token file holds no bearer token" in await bearer_failure(broker, token)
    assert [asked[0] for asked in broker.asked] == [ApiKey.SASL_HANDSHAKE]


SASL = "protocol: SASL_PLAINTEXT\nsasl: {{mechanism: SCRAM-SHA-512, username: alice, password_file: {}}}\n"


def test_credentials_come_from_the_configuration(tmp_path: Path) -> None:
    secret, config = tmp_path / "secret", tmp_path / "command.yaml"
    secret.write_text(f"{PASSWORD}\n")
    config.write_text(SASL.format(secret))
    assert Credentials.of(load_security(config)) == credentials("SCRAM-SHA-512")


def test_without_sasl_there_are_no_credentials(tmp_path: Path) -> None:
    config = tmp_path / "command.yaml"
    config.write_text("protocol: PLAINTEXT\n")
    assert Credentials.of(load_security(config)) is None
