"""The signed varints of record batches: zigzag, so that small negative numbers are short too.

The protocol's own lengths are unsigned (`codec.primitives`). Source: ByteUtils of Kafka, which took it from protobuf.
"""

from codec.errors import CodecError, Truncated


def read_varint(buffer: bytes, offset: int, field: str) -> tuple[int, int]:
    """Read a number of -2**31 to 2**31 - 1; returns it and the offset after it."""
    return _read(buffer, offset, 32, field)


def read_varlong(buffer: bytes, offset: int, field: str) -> tuple[int, int]:
    """Read a number of -2**63 to 2**63 - 1; returns it and the offset after it."""
    return _read(buffer, offset, 64, field)


def write_varint(value: int, field: str) -> bytes:
    """Encode a number of -2**31 to 2**31 - 1.

    Raises:
        CodecError: The number is out of range.
    """
    return _write(value, 32, field)


def write_varlong(value: int, field: str) -> bytes:
    """Encode a number of -2**63 to 2**63 - 1.

    Raises:
        CodecError: The number is out of range.
    """
    return _write(value, 64, field)


def _read(buffer: bytes, offset: int, bits: int, field: str) -> tuple[int, int]:
    at, value = offset, 0
    try:
        for shift in range(0, bits, 7):
            byte = buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise CodecError(offset, field, f"a varint of more than {bits} bits")
    except IndexError:
        raise Truncated(len(buffer), field, "the bytes end within a varint") from None
    if value >> bits:
        raise CodecError(offset, field, f"a varint of more than {bits} bits")
    return value >> 1 ^ -(value & 1), at


def _write(value: int, bits: int, field: str) -> bytes:
    if not -1 << bits - 1 <= value < 1 << bits - 1:
        raise CodecError(0, field, f"{value} does not fit in {bits} bits")
    left = value << 1 if value >= 0 else ~(value << 1)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
