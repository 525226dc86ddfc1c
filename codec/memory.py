"""How much memory decoded values take, so that a decoder can refuse before it allocates.

A reader of bytes from strangers may take `MEMORY_FACTOR` bytes of memory for each byte that it is given, and
`MEMORY_BYTES_FREE` on top. Text, bytes and numbers keep well below that. A dict does not: a struct of three bytes on
the wire becomes 250 in memory. So each struct in an array is charged what it takes beyond the factor, or credited what
it leaves, against a `Budget` that one call of a decoder spends.

Sizes are those of CPython, asked at run time where they vary. Knows no buffer; `codec.decoding` does the spending.
"""

import sys
from functools import cache
from typing import Final, final

from codec.errors import CodecError
from codec.layout import minimum_size
from codec.schema import Array, Field, Scalar, Struct

MEMORY_FACTOR: Final = 64
MEMORY_BYTES_FREE: Final = 1_000_000

_SLOT_BYTES: Final = 18
"""An element's place in a list that grows by appending: 8 bytes, an eighth too many, and the copy while it moves."""

_LIST_BYTES: Final = sys.getsizeof([])
_INT_BYTES: Final = sys.getsizeof(2**62)
_UUID_BYTES: Final = sys.getsizeof(bytes(16))
_RESERVE: Final = 100_000
"""For everything that comes once in a call: frames, the body itself, an error."""

TAG_SECTION_CHARGE: Final = sys.getsizeof({1: b""}) + sys.getsizeof({1}) + 100 - 2 * MEMORY_FACTOR
"""A section with entries: a dict of those that nobody knows, a set of those seen, and room for one more key."""


@final
class Budget:
    """What one call may still allocate beyond `MEMORY_FACTOR` times its input."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MEMORY_BYTES_FREE - _RESERVE

    def spend(self, charge: int, offset: int, field: str) -> None:
        """Take a charge, or a credit when it is negative.

        Raises:
            CodecError: More than is left.
        """
        self.left -= charge
        if self.left < 0:
            raise CodecError(offset, field, "too many small elements: they would need too much memory")


def element_charge(of: Struct, version: int, flexible: bool) -> int:
    """What a struct in an array takes beyond its share of memory; negative when it leaves some."""
    return _SLOT_BYTES + _struct_bytes(of, version) - MEMORY_FACTOR * minimum_size(of, version, flexible)


def _struct_bytes(of: Struct, version: int) -> int:
    fields = [field for field in of.fields if version in field.versions]
    return _dict_bytes(len(fields)) + sum(_field_bytes(field, version) for field in fields)


def _field_bytes(field: Field, version: int) -> int:
    """The least that a field takes, or its default where it is tagged; what it holds pays for itself."""
    match field.type:
        case Array():
            return _LIST_BYTES
        case Struct():
            return _struct_bytes(field.type, version)
        case Scalar.UUID:
            return _UUID_BYTES
        case Scalar.STRING | Scalar.BYTES | Scalar.RECORDS | Scalar.BOOL:
            return 0
        case _:
            return _INT_BYTES if field.tag is None else 0


@cache
def _dict_bytes(keys: int) -> int:
    grown: dict[str, None] = {}
    for key in range(keys):
        grown[f"field_{key}"] = None
    return sys.getsizeof(grown)
