"""The admin script over sockets: one connection a request, blocking. The bodies are the codec's, the framing is not."""

import socket
import struct
from typing import Any, Final

from codec import decode_response, encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header, response_body_offset
from tests.support.address import Address
from tests.support.admin_script import Ask

TIMEOUT_S: Final = 30.0
CORRELATION_ID: Final = 7
_SIZE: Final = struct.Struct(">i")


def over(address: Address) -> Ask:
    """Sends each request to that address; None when the peer closes the connection instead of answering."""

    def ask(api_key: int, api_version: int, body: dict[str, Any]) -> dict[str, Any] | None:
        header = RequestHeader(
            api_key=ApiKey(api_key), api_version=api_version, correlation_id=CORRELATION_ID, client_id="admin-script"
        )
        payload = encode_request_header(header) + encode_request(api_key, api_version, body)
        with socket.create_connection(address, TIMEOUT_S) as connection, connection.makefile("rb") as stream:
            connection.sendall(_SIZE.pack(len(payload)) + payload)
            head = stream.read(_SIZE.size)
            if len(head) < _SIZE.size:
                return None
            answer = stream.read(_SIZE.unpack(head)[0])
        assert answer[:4] == _SIZE.pack(CORRELATION_ID)
        return decode_response(api_key, api_version, answer, response_body_offset(answer, api_key, api_version))

    return ask
