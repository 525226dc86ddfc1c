"""What the codec raises: `CodecError`, and nothing else, whatever the bytes.

The module knows no message and no transport. Who is to blame (client, broker or us) is decided by the caller, who knows
where the bytes came from; a payload never appears in an error.
"""

from typing import final


class CodecError(Exception):
    """Bytes that are not what they should be, or a value that cannot be encoded.

    Attributes:
        offset: Byte offset in the buffer given, near which reading stopped; for encoding, 0.
        field: Dotted path of the field in Kafka's words, for example `topics.partitions.leader_id`.
        reason: One clause that says what is wrong.
    """

    def __init__(self, offset: int, field: str, reason: str) -> None:
        super().__init__(offset, field, reason)
        self.offset = offset
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field} at byte {self.offset}: {self.reason}"


@final
class Truncated(CodecError):
    """The buffer ends before the value does. Given a prefix of a frame, the caller may retry with more bytes."""
