"""The server's side of one SCRAM login (RFC 5802), for SCRAM-SHA-256 and SCRAM-SHA-512 as Kafka speaks them. Pure.

    client-first   n,,n=user,r=nonce[,tokenauth=true]     -> r=nonce+ours,s=salt,i=iterations
    client-final   c=biws,r=nonce+ours,p=proof            -> v=signature

With `tokenauth=true` the user is the id of a delegation token. There is no channel binding. Who calls asks for the
credential between the two messages, and sends what comes back.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final, final

from backend.metadata.scram import ScramCredential

_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>(?:,[A-Za-z]+={_VALUE})*))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>{_NONCE})(?:,[A-Za-z]+={_VALUE})*),p=(?P<proof>[A-Za-z0-9/+=]+)"
)
ITERATIONS_MIN: Final = 4096


class BadMessage(Exception):
    """The client's message is malformed, or its proof is wrong; the client is told neither."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFirst:
    """The first message, understood.

    Attributes:
        username: Who wants in; the id of a token if `is_token`.
        authorization_id: As whom, empty for as the same.
        nonce: The client's.
        gs2_header, bare: The parts of the message that proofs are made from.
    """

    username: str
    authorization_id: str
    is_token: bool
    nonce: str
    gs2_header: str
    bare: str


def read_client_first(message: bytes) -> ClientFirst:
    """The first message of a login.

    Raises:
        BadMessage: It is none, or asks for channel binding.
    """
    found = _CLIENT_FIRST.fullmatch(_text(message))
    if found is None:
        raise BadMessage("the client's first message is malformed")
    extensions = dict(part.split("=", 1) for part in found["extensions"].split(",") if part)
    return ClientFirst(
        username=_name(found["name"]),
        authorization_id=_name(found["authzid"] or ""),
        is_token=extensions.get("tokenauth", "").lower() == "true",
        nonce=found["nonce"],
        gs2_header=found["gs2"],
        bare=found["bare"],
    )


@final
class ScramServer:
    """A login whose first message is understood and whose credential is known.

    Args:
        hash_name: What `hashlib` calls the hash.
        server_nonce: Ours: random, printable, without commas.
    """

    def __init__(self, hash_name: str, first: ClientFirst, credential: ScramCredential, server_nonce: str) -> None:
        self._hash_name = hash_name
        self._first = first
        self._credential = credential
        self._nonce = first.nonce + server_nonce
        salt = base64.b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"

    @property
    def server_first(self) -> bytes:
        """The answer to the first message."""
        return self._server_first.encode()

    def finish(self, message: bytes) -> bytes:
        """The answer to the final message; the client is who it says it is.

        Raises:
            BadMessage: It is not, or the message is malformed.
        """
        found = _CLIENT_FINAL.fullmatch(_text(message))
        if found is None:
            raise BadMessage("the client's final message is malformed")
        if found["nonce"] != self._nonce or _decoded(found["binding"]) != self._first.gs2_header.encode():
            raise BadMessage("the client's final message does not go with its first one")
        signed = f"{self._first.bare},{self._server_first},{found['bare']}".encode()
        signature = hmac.digest(self._credential.stored_key, signed, self._hash_name)
        proof = _decoded(found["proof"])
        if len(proof) != len(signature):
            raise BadMessage("the proof is wrong")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, self._credential.stored_key):
            raise BadMessage("the proof is wrong")
        return b"v=" + base64.b64encode(hmac.digest(self._credential.server_key, signed, self._hash_name))


def credential_of(hash_name: str, password: str, salt: bytes, iterations: int = ITERATIONS_MIN) -> ScramCredential:
    """The credential with which a password, printable ASCII, can be checked."""
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", hash_name),
        iterations=iterations,
    )


def _text(message: bytes) -> str:
    try:
        return message.decode("ascii")
    except UnicodeDecodeError:
        # Not from the handler: the error would carry the message along.
        pass
    raise BadMessage("the message is not ASCII")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise BadMessage("a part of the message is not base64") from None


def _name(sasl_name: str) -> str:
    return sasl_name.replace("=2C", ",").replace("=3D", "=")
