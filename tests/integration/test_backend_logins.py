"""What a SASL listener says to logins good and bad: real Kafka and the backend, conversation by conversation."""

import hashlib
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
import scramp

from backend.app import embedded
from backend.net.security import Security
from codec import decode_response, encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header, response_body_offset
from tests.support.address import Address
from tests.support.admin_wire import over
from tests.support.backend import BackendThread
from tests.support.kafka import KafkaCluster
from tests.support.kafka.properties import PLAIN_USERS

pytestmark = pytest.mark.kafka

TIMEOUT_S: Final = 30.0
SALT: Final = b"salt of 16 bytes"
CLOSED: Final = "closed"
_SIZE: Final = struct.Struct(">i")

Step = tuple[ApiKey, int, dict[str, Any]] | bytes
"""A request, or the bytes of a frame."""


def hello(mechanism: str, version: int = 1) -> Step:
    return ApiKey.SASL_HANDSHAKE, version, {"mechanism": mechanism}


def token(message: bytes, version: int = 1) -> Step:
    return ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": message}


def plain(user: str = "bob", guess: str = "-secret", as_whom: str = "", version: int = 1) -> Step:
    return token(f"{as_whom}\0{user}\0{user}{guess}".encode(), version)


VERSIONS: Final = (ApiKey.API_VERSIONS, 3, {"client_software_name": "t", "client_software_version": "1"})
READ: Final[Step] = (ApiKey.METADATA, 12, {"topics": [], "allow_auto_topic_creation": False})
CONVERSATIONS: Final[dict[str, Sequence[Step]]] = {
    "in by PLAIN": (hello("PLAIN"), plain(), READ),
    "in by PLAIN, asking for versions first": (VERSIONS, hello("PLAIN"), plain(), READ),
    "in by PLAIN, v0": (hello("PLAIN"), plain(version=0), READ),
    "in by PLAIN, v2": (hello("PLAIN"), plain(version=2), READ),
    "in by PLAIN as oneself": (hello("PLAIN"), plain(as_whom="bob"), READ),
    "in by a bare token": (hello("PLAIN", 0), b"\0bob\0bob-secret", READ),
    "a wrong bare token": (hello("PLAIN", 0), b"\0bob\0guess", READ),
    "an unknown mechanism": (hello("GSSAPI"), READ),
    "an unknown mechanism, v0": (hello("nope", 0), READ),
    "a read before the login": (READ,),
    "a read between handshake and token": (hello("PLAIN"), READ),
    "a token before the handshake": (plain(),),
    "a second handshake": (hello("PLAIN"), hello("PLAIN")),
    "versions after the handshake": (hello("PLAIN"), VERSIONS),
    "a wrong password": (hello("PLAIN"), plain(guess="-guess"), READ),
    "a wrong password, v0": (hello("PLAIN"), plain(guess="-guess", version=0)),
    "an unknown user": (hello("PLAIN"), plain("nobody")),
    "as somebody else": (hello("PLAIN"), plain(as_whom="alice")),
    "no password": (hello("PLAIN"), token(b"\0bob\0")),
    "no user": (hello("PLAIN"), token(b"\0\0bob-secret")),
    "two parts": (hello("PLAIN"), token(b"bob\0bob-secret")),
    "four parts": (hello("PLAIN"), token(b"\0bob\0bob-secret\0")),
    "nothing": (hello("PLAIN"), token(b"")),
    "SCRAM, unknown user": (hello("SCRAM-SHA-256"), token(b"n,,n=nobody,r=abc")),
    "SCRAM, credential of the other kind": (hello("SCRAM-SHA-256"), token(b"n,,n=sam,r=abc")),
    "SCRAM, no such token": (hello("SCRAM-SHA-256"), token(b"n,,n=sam,r=abc,tokenauth=true")),
    "SCRAM, malformed": (hello("SCRAM-SHA-512"), token(b"p=tls-unique,,n=sam,r=abc")),
    "SCRAM, as somebody else": (hello("SCRAM-SHA-512"), token(b"n,a=alice,n=sam,r=abc")),
    "SCRAM, malformed in the end": (hello("SCRAM-SHA-512"), token(b"n,,n=sam,r=abc"), token(b"c=biws")),
    "SCRAM, wrong nonce": (hello("SCRAM-SHA-512"), token(b"n,,n=sam,r=abc"), token(b"c=biws,r=other,p=AAAA")),
    "a handshake after the login": (hello("PLAIN"), plain(), hello("PLAIN"), READ),
    "a handshake after the login, v0": (hello("PLAIN"), plain(), hello("PLAIN", 0), READ),
    "the login again": (hello("PLAIN"), plain(), hello("PLAIN"), plain(), READ),
    "the login again and again": (hello("PLAIN"), plain(), hello("PLAIN"), plain(), hello("PLAIN"), READ),
    "the login again, wrong": (hello("PLAIN"), plain(), hello("PLAIN"), plain(guess="-guess"), READ),
    "the login again, malformed": (hello("PLAIN"), plain(), hello("PLAIN"), token(b"bob"), READ),
    "the login again as somebody else": (hello("PLAIN"), plain(), hello("PLAIN"), plain("alice"), READ),
    "the login again by other means": (hello("PLAIN"), plain(), hello("SCRAM-SHA-512"), token(b"n,,n=sam,r=a")),
    "the login again by unknown means": (hello("PLAIN"), plain(), hello("nope"), READ),
    "versions during the login again": (hello("PLAIN"), plain(), hello("PLAIN"), VERSIONS),
    "a token after the login": (hello("PLAIN"), plain(), plain(), READ),
}


@pytest.fixture(scope="module")
def backend() -> Iterator[Address]:
    """The same users as real Kafka's."""
    passwords = {user: f"{user}-secret" for user in PLAIN_USERS}
    with BackendThread(embedded(security=Security(protocol="SASL_PLAINTEXT", passwords=passwords))) as cluster:
        add_sam(cluster.nodes[1], "alice")
        cluster.settle()
        yield cluster.nodes[1]


@pytest.fixture(scope="module")
def real(kafka: KafkaCluster) -> Address:
    """Where real Kafka listens for logins."""
    add_sam(kafka.brokers[1], None)
    kafka.wait_caught_up(effective=True)
    return kafka.sasl_brokers[1]


def add_sam(address: Address, user: str | None) -> None:
    """A SCRAM-SHA-512 credential."""
    salted = hashlib.pbkdf2_hmac("sha512", b"sam-secret", SALT, 4096)
    upsertion = {"name": "sam", "mechanism": 2, "iterations": 4096, "salt": SALT, "salted_password": salted}
    body = {"deletions": [], "upsertions": [upsertion]}
    answer = over(address, user)(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, body)
    assert answer is not None
    assert answer["results"][0]["error_code"] == 0


class Connection:
    """One client; what it receives is made comparable."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, TIMEOUT_S)
        self._stream = self._socket.makefile("rb")

    def say(self, step: Step) -> Any:
        """The answer, or that there is none any more."""
        if isinstance(step, bytes):
            answer = self._exchange(step)
            return CLOSED if answer is None else answer
        api_key, version, body = step
        header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="t")
        answer = self._exchange(encode_request_header(header) + encode_request(api_key, version, body))
        if answer is None:
            return CLOSED
        seen = decode_response(api_key, version, answer, response_body_offset(answer, api_key, version))
        if api_key == ApiKey.METADATA:
            return len(seen["brokers"])
        if api_key == ApiKey.API_VERSIONS:
            return seen["error_code"]
        return seen | {"mechanisms": sorted(seen.get("mechanisms", []))}

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _exchange(self, payload: bytes) -> bytes | None:
        try:
            self._socket.sendall(_SIZE.pack(len(payload)) + payload)
            head = self._stream.read(_SIZE.size)
            return self._stream.read(*_SIZE.unpack(head)) if len(head) == _SIZE.size else None
        except ConnectionError:
            return None


def talk(address: Address, steps: Sequence[Step]) -> list[Any]:
    connection = Connection(address)
    try:
        said = [connection.say(step) for step in steps]
    finally:
        connection.close()
    # The server's first message of SCRAM has a nonce in it.
    return [
        {**answer, "auth_bytes": "server first"}
        if isinstance(answer, dict) and answer.get("auth_bytes", b"").startswith(b"r=")
        else answer
        for answer in said
    ]


def test_every_conversation_goes_as_with_real_kafka(backend: Address, real: Address) -> None:
    ours = {name: talk(backend, steps) for name, steps in CONVERSATIONS.items()}
    theirs = {name: talk(real, steps) for name, steps in CONVERSATIONS.items()}
    assert {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]} == {}


def test_scram_is_proven_on_both_sides(backend: Address, real: Address) -> None:
    for address in (backend, real):
        connection = Connection(address)
        client = scramp.ScramClient(["SCRAM-SHA-512"], "sam", "sam-secret")
        connection.say(hello("SCRAM-SHA-512"))
        first = connection.say(token(client.get_client_first().encode()))
        client.set_server_first(first["auth_bytes"].decode())
        last = connection.say(token(client.get_client_final().encode()))
        client.set_server_final(last["auth_bytes"].decode())
        assert connection.say(READ) == 3
        connection.close()
