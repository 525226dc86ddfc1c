"""Bytes in any chunks to whole frames, and back. A frame is an int32 size and so many bytes of payload.

Knows nothing of what is inside a payload. A reader never holds more than one frame at its limit and the chunk it was
just given, and never allocates what a size claims. When a size makes no sense, `explain_prefix` often knows who is at
the other end: TLS on a plain port, a TLS alert, a browser.
"""

import struct
from collections.abc import Iterator
from typing import Final, Literal, final

from codec.errors import CodecError

SIZE_BYTES: Final = 4
_SIZE: Final = struct.Struct(">i")
_PREFIX_BYTES: Final = 16

PrefixCause = Literal["tls_hello", "tls_alert", "http"]

_HTTP_WORDS: Final = (
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PRI * HTTP/2",
    b"HTTP/1.",
)


def frame(payload: bytes) -> bytes:
    """The payload with its size in front.

    Raises:
        CodecError: It has more than 2**31 - 1 bytes.
    """
    return _size_of(payload) + payload


def frame_buffer(payload: bytes) -> bytearray:
    """The payload with its size in front, to be changed in place before it is sent; the payload is copied once.

    Raises:
        CodecError: It has more than 2**31 - 1 bytes.
    """
    buffer = bytearray(_size_of(payload))
    buffer += payload
    return buffer


def explain_prefix(first_bytes: bytes) -> PrefixCause | None:
    """Who sends bytes that begin like this, when it is not a Kafka peer; None when they may be anything.

    Four bytes are enough for a TLS record, which begins with its type (22 handshake, 21 alert), 3 and the minor
    version, and for the first letters of an HTTP request or answer.
    """
    if len(first_bytes) >= 3 and first_bytes[1] == 3 and first_bytes[2] <= 4:
        if first_bytes[0] == 0x16:
            return "tls_hello"
        if first_bytes[0] == 0x15:
            return "tls_alert"
    if len(first_bytes) >= 4 and any(_agree(first_bytes, word) for word in _HTTP_WORDS):
        return "http"
    return None


def _size_of(payload: bytes) -> bytes:
    try:
        return _SIZE.pack(len(payload))
    except struct.error:
        raise CodecError(0, "frame.size", f"a payload of {len(payload)} bytes does not fit in a frame") from None


def _agree(first_bytes: bytes, word: bytes) -> bool:
    """Whether both say the same as far as both go."""
    return first_bytes[: len(word)] == word[: len(first_bytes)]


@final
class FrameReader:
    """Collects bytes until a frame is whole.

    A size that is negative or above the limit is an error for good: there is no way to find the next frame.
    """

    __slots__ = ("_buffer", "_failed", "_frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        """Accept payloads of 0 to `frame_bytes_max` bytes, their size not counted."""
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._failed: CodecError | None = None

    @property
    def buffered_bytes(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return len(self._buffer)

    @property
    def first_bytes(self) -> bytes:
        """Up to 16 bytes that have not become a frame: what `explain_prefix` wants after an error."""
        return bytes(self._buffer[:_PREFIX_BYTES])

    def accept_up_to(self, frame_bytes_max: int) -> None:
        """From the next payload on, which may have begun already, another limit holds."""
        self._frame_bytes_max = frame_bytes_max

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes in; iterate over the payloads that are whole now.

        The bytes are kept even when nobody iterates; the next call goes on where this one stopped. Frames before a bad
        size are delivered first.

        Raises:
            CodecError: While iterating: a size is negative or above the limit, now or in an earlier call. The caller
                closes the connection.
        """
        if self._failed is None:
            self._buffer += data
        return self._frames()

    def _frames(self) -> Iterator[bytes]:
        while True:
            if self._failed is not None:
                raise self._failed
            buffer = self._buffer
            if len(buffer) < SIZE_BYTES:
                return
            (size,) = _SIZE.unpack_from(buffer)
            if not 0 <= size <= self._frame_bytes_max:
                self._failed = CodecError(0, "frame.size", f"{size} bytes; the limit is {self._frame_bytes_max}")
                raise self._failed
            end = SIZE_BYTES + size
            if len(buffer) < end:
                return
            payload = bytes(memoryview(buffer)[SIZE_BYTES:end])
            del buffer[:end]
            yield payload
