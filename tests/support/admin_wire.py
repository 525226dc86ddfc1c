"""The admin script over sockets: one connection a request, blocking. The bodies are the codec's, the framing is not."""

import socket
import struct
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from codec import decode_response, encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header, response_body_offset
from tests.support.address import Address
from tests.support.admin_script import Ask

TIMEOUT_S: Final = 30.0
CORRELATION_ID: Final = 7
_SIZE: Final = struct.Struct(">i")


def over(address: Address, user: str | None = None) -> Ask:
    """Sends each request to that address; None when the peer closes the connection instead of answering.

    Args:
        address: of a PLAINTEXT listener, or of a SASL_PLAINTEXT one.
        user: logs in first, by PLAIN with its name and `-secret` for a password.
    """

    def ask(api_key: int, api_version: int, body: dict[str, Any]) -> dict[str, Any] | None:
        with socket.create_connection(address, TIMEOUT_S) as connection, connection.makefile("rb") as stream:
            if user is not None:
                _log_in(connection.sendall, stream, user)
            return _exchange(connection.sendall, stream, api_key, api_version, body)

    return ask


def _log_in(send: Callable[[bytes], None], stream: BinaryIO, user: str) -> None:
    password = f"\0{user}\0{user}-secret".encode()
    for api_key, body in (
        (ApiKey.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
        (ApiKey.SASL_AUTHENTICATE, {"auth_bytes": password}),
    ):
        answer = _exchange(send, stream, api_key, 1, body)
        assert answer is not None, f"{user} cannot log in"
        assert answer["error_code"] == 0, answer


def _exchange(
    send: Callable[[bytes], None], stream: BinaryIO, api_key: int, api_version: int, body: dict[str, Any]
) -> dict[str, Any] | None:
    header = RequestHeader(
        api_key=ApiKey(api_key), api_version=api_version, correlation_id=CORRELATION_ID, client_id="admin-script"
    )
    payload = encode_request_header(header) + encode_request(api_key, api_version, body)
    send(_SIZE.pack(len(payload)) + payload)
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    answer = stream.read(_SIZE.unpack(head)[0])
    assert answer[:4] == _SIZE.pack(CORRELATION_ID)
    return decode_response(api_key, api_version, answer, response_body_offset(answer, api_key, api_version))
