"""CRC32C (Castagnoli), the checksum of Kafka's record batches, computed by a native library."""

import google_crc32c


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """The checksum as an unsigned 32-bit number; RFC 3720, section B.4 has examples."""
    return int(google_crc32c.value(bytes(data)))
