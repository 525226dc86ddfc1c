"""Kafka's wire format, pure: frames, headers, message tables, and the functions made from them.

Knows no socket, clock, loop or configuration, and no decision of the proxy. The functions below read and write whole
bodies by API key and version; `codec.headers`, `codec.walk` and `codec.splice` do the hot work without decoding.
"""

from collections.abc import Callable, Mapping
from typing import Any

from codec.compiled import decoder, encoder
from codec.errors import CodecError, Truncated
from codec.registry import known_versions, request_table, response_table
from codec.schema import Message

__all__ = ["CodecError", "Truncated", "decode_request", "decode_response", "encode_request", "encode_response"]


def decode_request(api_key: int, api_version: int, body: bytes, offset: int = 0) -> dict[str, Any]:
    """Decode a request body that starts at `offset` and ends with the buffer; see `codec.compiled.decoder`.

    Raises:
        CodecError: The bytes are no such body, bytes are left over, or there is no table for this API and version.
    """
    return _decode_whole(_table(api_key, request_table), api_version, body, offset)


def decode_response(api_key: int, api_version: int, body: bytes, offset: int = 0) -> dict[str, Any]:
    """Decode a response body that starts at `offset` and ends with the buffer; see `codec.compiled.decoder`.

    Raises:
        CodecError: The bytes are no such body, bytes are left over, or there is no table for this API and version.
    """
    return _decode_whole(_table(api_key, response_table), api_version, body, offset)


def encode_request(api_key: int, api_version: int, value: Mapping[str, Any]) -> bytes:
    """Encode a request body; see `codec.compiled.encoder`.

    Raises:
        CodecError: The value does not fit, or there is no table for this API and version.
    """
    return encoder(_table(api_key, request_table), api_version)(value)


def encode_response(api_key: int, api_version: int, value: Mapping[str, Any]) -> bytes:
    """Encode a response body; see `codec.compiled.encoder`.

    Raises:
        CodecError: The value does not fit, or there is no table for this API and version.
    """
    return encoder(_table(api_key, response_table), api_version)(value)


def _table(api_key: int, tables: Callable[[int], Message]) -> Message:
    if known_versions(api_key) is None:
        raise CodecError(0, "api_key", f"no table for API key {api_key}")
    return tables(api_key)


def _decode_whole(table: Message, api_version: int, body: bytes, offset: int) -> dict[str, Any]:
    value, end = decoder(table, api_version)(body, offset)
    if end != len(body):
        raise CodecError(end, table.title, f"{len(body) - end} bytes left over")
    return value
