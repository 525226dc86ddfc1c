"""SCRAM's server side: the examples of the standards, another implementation's client, and messages gone wrong."""

import base64
import hashlib

import pytest
import scramp
from hypothesis import given
from hypothesis import strategies as st

from backend.net.scram_server import BadMessage, ScramServer, credential_of, read_client_first

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FIRST = b"n,,n=user,r=abc"


def test_the_example_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    first = read_client_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    server = ScramServer("sha256", first, credential_of("sha256", "pencil", salt), nonce)
    whole = f"rOprNGfwEbeRWgbNEkqO{nonce}"
    assert server.server_first == f"r={whole},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = f"c=biws,r={whole},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert server.finish(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(("user", "password"), [("ann", "secret"), ("a,b=c", "p,w=")])
@pytest.mark.parametrize("guess", ["", "wrong"])
def test_the_client_of_another_implementation(mechanism: str, user: str, password: str, guess: str) -> None:
    client = scramp.ScramClient([mechanism], user, password + guess)
    first = read_client_first(client.get_client_first().encode())
    assert (first.username, first.authorization_id, first.is_token) == (user, "", False)
    server = ScramServer(
        HASHES[mechanism], first, credential_of(HASHES[mechanism], password, b"salt of 16 bytes"), "ours"
    )
    client.set_server_first(server.server_first.decode())
    final = client.get_client_final().encode()
    if guess:
        with pytest.raises(BadMessage, match="the proof is wrong"):
            server.finish(final)
    else:
        client.set_server_final(server.finish(final).decode())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,n=t,r=x,tokenauth=true", ("t", "", True)),
        (b"n,,n=t,r=x,tokenauth=false", ("t", "", False)),
        (b"n,a=boss,n=t,r=x", ("t", "boss", False)),
        (b"n,,n=a=2Cb=3Dc,r=x", ("a,b=c", "", False)),
        (b"n,,m=later,n=t,r=x,other=thing", ("t", "", False)),
    ],
)
def test_what_a_first_message_says(message: bytes, expected: tuple[str, str, bool]) -> None:
    first = read_client_first(message)
    assert (first.username, first.authorization_id, first.is_token) == expected


@pytest.mark.parametrize(
    "message",
    [b"", b"y,,n=u,r=x", b"p=tls-unique,,n=u,r=x", b"n,,n=,r=x", b"n,,n=u", b"n,,n=u=4,r=x", b"n,,n=u,r=\xc3\xa9"],
)
def test_what_is_no_first_message(message: bytes) -> None:
    with pytest.raises(BadMessage):
        read_client_first(message)


def final(nonce: str = "abcours", binding: str = "biws", proof: bytes = b"x" * 32) -> bytes:
    return f"c={binding},r={nonce},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"c=biws,r=abcours", "malformed"),
        (final(nonce="abcothers"), "does not go with its first one"),
        (final(binding=base64.b64encode(b"y,,").decode()), "does not go with its first one"),
        (final(binding="b"), "not base64"),
        (final(proof=b"x" * 31), "the proof is wrong"),
        (final(), "the proof is wrong"),
    ],
)
def test_a_final_message_that_does_not_prove_it(message: bytes, reason: str) -> None:
    server = ScramServer("sha256", read_client_first(FIRST), credential_of("sha256", "pw", b"salt of 16 bytes"), "ours")
    with pytest.raises(BadMessage, match=reason):
        server.finish(message)


@given(st.binary(max_size=80))
def test_no_bytes_do_more_than_fail(message: bytes) -> None:
    server = ScramServer("sha256", read_client_first(FIRST), CREDENTIAL, "ours")
    for read in (read_client_first, server.finish):
        try:
            read(message)
        except BadMessage:
            continue


CREDENTIAL = credential_of("sha256", "pw", hashlib.sha256(b"salt of 16 bytes").digest())
