"""Raw tokens of a SASL mechanism: frames without a header, which follow SaslHandshake v0 in both directions (KIP-43).

Nobody says how many there are. From a client they end with the first frame that reads as a request; from a broker with
the first answer to a request that came after them. Until then they pass unseen.
"""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from codec import CodecError
from codec.api_keys import ApiKey
from codec.frames import SIZE_BYTES
from codec.headers import client_id_of, peek_request

_SIZE: Final = struct.Struct(">i")
_API_KEYS: Final = frozenset(map(int, ApiKey))
_VERSION_MAX: Final = 63
"""Far above every version of Kafka 4.4; as a letter of a token it would be one below ``@``."""

Ends = Callable[[bytes, bool], bool | None]
"""Whether a frame is no token, by its payload or what there is of it (False: not all); None: more must come first."""


class Passed(NamedTuple):
    """What became of some bytes.

    Attributes:
        end: how many of them are whole tokens.
        wanted: how many bytes behind these make sense next; 0 when it is not known.
        over: a frame begins there that is no token.
    """

    end: int
    wanted: int
    over: bool


def takes_tokens(api_key: int, api_version: int) -> bool:
    """Whether this request is followed by raw tokens."""
    return api_key == ApiKey.SASL_HANDSHAKE and api_version == 0


def pass_tokens(data: bytes, frame_bytes_max: int, ends: Ends) -> Passed:
    """Finds the tokens that are whole.

    Raises:
        codec.CodecError: a size is negative or above the limit; its offset is that of the frame.
    """
    position, length = 0, len(data)
    while length - position >= SIZE_BYTES:
        (size,) = _SIZE.unpack_from(data, position)
        if not 0 <= size <= frame_bytes_max:
            raise CodecError(position, "frame.size", f"{size} bytes; the limit is {frame_bytes_max}")
        start = position + SIZE_BYTES
        end = start + size
        over = ends(data[start:end], end <= length)
        if over:
            return Passed(position, 0, over=True)
        if end > length or over is None:
            return Passed(position, end - position if over is False else 0, over=False)
        position = end
    return Passed(position, 0, over=False)


def is_request(payload: bytes, whole: bool = True) -> bool | None:
    """Whether a frame from a client is a request again; see `Ends`.

    The first bytes of PLAIN (an authorization id, NUL), SCRAM and OAUTHBEARER (``n,``, ``c=``, 1) and GSSAPI (0x60, or
    5 and 4) read as no API key with a version that exists. A token taken for a request would still reach its broker.
    """
    try:
        api_key, api_version, _ = peek_request(payload)
        if api_key not in _API_KEYS or not 0 <= api_version <= _VERSION_MAX:
            return False
        client_id_of(payload)
    except CodecError:
        return False if whole else None
    return True


def is_answer(correlation_id: int | None) -> Ends:
    """Whether a frame from a broker answers the request with this id, the oldest that is out; None: there is none."""

    def ends(payload: bytes, whole: bool) -> bool | None:
        if correlation_id is None:
            return False
        if len(payload) < _SIZE.size:
            return False if whole else None
        return bool(_SIZE.unpack_from(payload)[0] == correlation_id)

    return ends
