"""A client's write on its way from the broker that was asked to the active controller: Envelope (KIP-590). Pure.

    request_data         the client's request, header and body
    request_principal    int16 version 0, then type, name and whether a token was used (DefaultPrincipalData)
    client_host_address  4 or 16 bytes: where the client comes from

The answer comes back whole, too; the offset that the leader committed at is in its header, as the proposal has it. The
broker says which one it is in the client id of the outer header (`client_id_of`).
"""

import ipaddress
import re
import struct
from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.client import ANONYMOUS, Client
from backend.metadata.writes import WriteRequest
from codec import CodecError, decode_request, decode_response, encode_request, encode_response
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    encode_request_header,
    encode_response_header,
    read_request_header,
    read_response_header,
)
from codec.primitives import read_compact_string, write_compact_string

ENVELOPE_VERSION: Final = 0
NO_BROKER: Final = -1
NO_OFFSET: Final = -1
_TYPE: Final = "request_principal.type"
_NAME: Final = "request_principal.name"
_PRINCIPAL_VERSION: Final = struct.Struct(">h")
_BROKER: Final = re.compile(r"broker-(\d{1,10})")


def client_id_of(broker_id: int) -> str:
    """The client id of a broker's requests to controllers."""
    return f"broker-{broker_id}"


def broker_of(client_id: str | None) -> int:
    """The broker that a client id names, `NO_BROKER` for any other."""
    named = _BROKER.fullmatch(client_id or "")
    return int(named[1]) if named else NO_BROKER


def wrap(request: WriteRequest, correlation_id: int) -> dict[str, Any]:
    """The body of an Envelope request."""
    header = RequestHeader(
        api_key=request.api_key, api_version=request.api_version, correlation_id=correlation_id, client_id=None
    )
    return {
        "request_data": encode_request_header(header)
        + encode_request(request.api_key, request.api_version, request.body),
        "request_principal": _principal_bytes(request.client),
        "client_host_address": ipaddress.ip_address(request.client.host).packed,
    }


def unwrap(body: Mapping[str, Any], broker_id: int) -> tuple[WriteRequest, int]:
    """The write in the body of an Envelope request, and the correlation id of its header.

    Raises:
        CodecError: It is malformed.
    """
    data = bytes(body["request_data"])
    header, at = read_request_header(data)
    request = WriteRequest(
        api_key=header.api_key,
        api_version=header.api_version,
        body=decode_request(header.api_key, header.api_version, data, at),
        client=_client(body["request_principal"], body["client_host_address"]),
        broker_id=broker_id,
    )
    return request, header.correlation_id


def wrap_answer(request: WriteRequest, correlation_id: int, response: Mapping[str, Any], offset: int) -> bytes:
    """The `response_data` of an Envelope answer.

    Raises:
        CodecError: The response does not fit in its table.
    """
    header = ResponseHeader(correlation_id=correlation_id, consistency_state=ConsistencyState(consistency_token=offset))
    return encode_response_header(header, request.api_key, request.api_version) + encode_response(
        request.api_key, request.api_version, response
    )


def unwrap_answer(request: WriteRequest, data: bytes) -> tuple[dict[str, Any], int]:
    """The response in the `response_data` of an answer, and the offset that it covers, if it says.

    Raises:
        CodecError: It is malformed.
    """
    header, at = read_response_header(data, request.api_key, request.api_version)
    state = header.consistency_state
    return (
        decode_response(request.api_key, request.api_version, data, at),
        NO_OFFSET if state is None else state.consistency_token,
    )


def _principal_bytes(client: Client) -> bytes:
    kind, _, name = client.principal.partition(":")
    by_token = client.principal != ANONYMOUS and not client.may_ask_for_tokens
    no_tags = b"\0"
    return b"".join(
        (
            _PRINCIPAL_VERSION.pack(0),
            write_compact_string(kind, _TYPE),
            write_compact_string(name, _NAME),
            bytes((by_token,)),
            no_tags,
        )
    )


def _client(principal: bytes | None, address: bytes) -> Client:
    if principal is None or len(principal) < _PRINCIPAL_VERSION.size:
        raise CodecError(0, "request_principal", "none")
    kind, at = read_compact_string(principal, _PRINCIPAL_VERSION.size, _TYPE)
    name, at = read_compact_string(principal, at, _NAME)
    if at >= len(principal):
        raise CodecError(at, "request_principal.token_authenticated", "missing")
    try:
        host = str(ipaddress.ip_address(bytes(address)))
    except ValueError:
        raise CodecError(0, "client_host_address", f"{len(address)} bytes are no address") from None
    who = f"{kind}:{name}"
    return Client(principal=who, host=host, may_ask_for_tokens=who != ANONYMOUS and not principal[at])
