"""A table and a version to one function that reads and one that writes, made once and kept.

This is the form that faces sockets. Its twin `codec.reference` says the same with construct; properties hold the two
equal on values and on arbitrary bytes.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from codec.decoding import struct_decoder
from codec.encoding import struct_encoder
from codec.errors import CodecError
from codec.schema import Table


@cache
def decoder(table: Table, version: int) -> Callable[[bytes, int], tuple[dict[str, Any], int]]:
    """A function from a buffer and an offset to the body's fields and the offset after them.

    The dict has snake_case names and exactly the fields of this version. A uuid is 16 bytes. Tagged fields that are
    absent have their defaults; tagged fields that the table does not know are under `unknown_tags`, as `{tag: bytes}`,
    when there are any. The function raises `CodecError` and nothing else.

    Raises:
        CodecError: The table does not describe this version.
    """
    check_version(table, version)
    return struct_decoder(table.body, version, table.is_flexible(version), "")


@cache
def encoder(table: Table, version: int) -> Callable[[Mapping[str, Any]], bytes]:
    """A function from a mapping of fields to the bytes of the body.

    A missing key takes the field's default, keys that the version does not have are ignored, tagged fields equal to
    their default are left out. The function raises `CodecError` for a value that does not fit its field.

    Raises:
        CodecError: The table does not describe this version.
    """
    check_version(table, version)
    encode_body = struct_encoder(table.body, version, table.is_flexible(version), "")

    def encode(value: Mapping[str, Any]) -> bytes:
        out = bytearray()
        try:
            encode_body(value, out)
        except (TypeError, AttributeError) as error:
            raise CodecError(0, table.title, f"a value of another shape: {error}") from error
        return bytes(out)

    return encode


def check_version(table: Table, version: int) -> None:
    """Refuse a version that the table does not describe.

    Raises:
        CodecError: Names the versions that it does.
    """
    if version not in table.versions:
        covered = f"{table.versions.first} to {table.versions.last}"
        raise CodecError(0, table.title, f"no version {version}; the table has {covered}")
