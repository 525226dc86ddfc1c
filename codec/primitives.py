"""The variable-length numbers and strings of Kafka's protocol, read with bounds and written.

Every reader takes the buffer and an offset, returns the value and the offset after it, and raises `Truncated` before it
touches a byte that is not there. Nothing is allocated on the word of a length: lengths are compared with what is left.
"""

from typing import Final

from codec.errors import CodecError, Truncated

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka limits every string to an int16 length, the compact ones too."""

_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def read_unsigned_varint(buffer: bytes, offset: int, field: str) -> tuple[int, int]:
    """Read a number of 0 to 2**32 - 1 in at most five bytes, seven bits each, low bits first."""
    try:
        byte = buffer[offset]
        if byte < 0x80:
            return byte, offset + 1
        value = byte & 0x7F
        for at, shift in ((offset + 1, 7), (offset + 2, 14), (offset + 3, 21)):
            byte = buffer[at]
            if byte < 0x80:
                return value | byte << shift, at + 1
            value |= (byte & 0x7F) << shift
        byte = buffer[offset + 4]
    except IndexError:
        raise Truncated(len(buffer), field, "the bytes end within a varint") from None
    if byte > 0x0F:
        raise CodecError(offset, field, "a varint of more than 32 bits")
    return value | byte << 28, offset + 5


def write_unsigned_varint(value: int) -> bytes:
    """Encode a number of 0 to 2**32 - 1 in as few bytes as it needs.

    Raises:
        CodecError: The number is out of range.
    """
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if not 0 <= value <= 0xFFFFFFFF:
        raise CodecError(0, "varint", f"{value} does not fit in 32 bits")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def slice_end(buffer: bytes, offset: int, length: int, field: str) -> int:
    """The end of `length` bytes from `offset`, once they are known to be there."""
    end = offset + length
    if end > len(buffer):
        raise Truncated(offset, field, f"{length} bytes announced, {len(buffer) - offset} left")
    return end


def decode_utf8(buffer: bytes, start: int, end: int, field: str) -> str:
    """The text between two offsets, which must be valid UTF-8 of at most `STRING_BYTES_MAX` bytes."""
    if end - start > STRING_BYTES_MAX:
        raise CodecError(start, field, f"a string of {end - start} bytes; Kafka allows {STRING_BYTES_MAX}")
    try:
        return buffer[start:end].decode()
    except UnicodeDecodeError as error:
        raise CodecError(start + error.start, field, "not UTF-8") from None


def encode_utf8(text: str, field: str) -> bytes:
    """The bytes of a string, at most `STRING_BYTES_MAX`."""
    try:
        encoded = text.encode()
    except (UnicodeEncodeError, AttributeError):
        raise CodecError(0, field, "not a string that UTF-8 can carry") from None
    if len(encoded) > STRING_BYTES_MAX:
        raise CodecError(0, field, f"a string of {len(encoded)} bytes; Kafka allows {STRING_BYTES_MAX}")
    return encoded


def read_compact_string(buffer: bytes, offset: int, field: str) -> tuple[str | None, int]:
    """Read a compact nullable string: a varint of the length plus one, 0 for null."""
    length, offset = read_unsigned_varint(buffer, offset, field)
    if length == 0:
        return None, offset
    end = slice_end(buffer, offset, length - 1, field)
    return decode_utf8(buffer, offset, end, field), end


def write_compact_string(text: str | None, field: str) -> bytes:
    """Encode a compact nullable string."""
    if text is None:
        return b"\0"
    encoded = encode_utf8(text, field)
    return write_unsigned_varint(len(encoded) + 1) + encoded
