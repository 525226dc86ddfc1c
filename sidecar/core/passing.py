"""How a request passes, judged by its first bytes: what most requests cost the sidecar.

The key of a request is enough for all but a few APIs (`LOOKED_AT`); of Produce, ``acks`` is read too, because a request
without an answer must not be waited for. Behind SaslHandshake v0 come frames that are no requests: see `is_request`.
"""

from enum import Enum
from typing import Final

from codec import CodecError, Truncated
from codec.api_keys import ApiKey
from codec.headers import acks_of, client_id_of, peek_request, request_body_offset
from sidecar.core.apis import TIED, TRAITS
from sidecar.core.versions import REWRITTEN, is_unreadable, is_unreadable_offer


class Passing(Enum):
    """What becomes of a request."""

    PLAIN = "plain"
    """Goes on as it comes."""
    TIED = "tied"
    """The same, and from now on the client cannot be given another connection to its broker."""
    SILENT = "silent"
    """Goes on as it comes and gets no answer (Produce with acks = 0)."""
    GATED = "gated"
    """Goes to the core, whole."""
    LOCAL = "local"
    """Is answered here: an ApiVersions request newer than ours."""
    LATER = "later"
    """More of it must be read first."""


class UnsupportedVersion(Exception):
    """A version whose answer would carry addresses that we cannot rewrite; our ApiVersions answers hide it."""


LOOKED_AT: Final = frozenset({*TRAITS, *REWRITTEN, ApiKey.API_VERSIONS})
"""APIs of which `look` must be asked; all others are `Passing.PLAIN`."""

_PRODUCE: Final = int(ApiKey.PRODUCE)
_ACKS_WITHIN_BYTES: Final = 512
"""Where ``acks`` is found unless the client id or the transactional id is very long."""


def look(data: bytes, start: int, end: int, api_key: int, api_version: int) -> Passing:
    """Judges a request of an API in `LOOKED_AT`.

    Args:
        data: what has been read, perhaps less than the whole request.
        start, end: where its payload lies, or will lie, in ``data``.

    Raises:
        codec.CodecError: the bytes are no such request.
        UnsupportedVersion: see there.
    """
    if api_key in TRAITS:
        return Passing.GATED
    if is_unreadable_offer(api_key, api_version):
        return Passing.LOCAL
    if is_unreadable(api_key, api_version):
        raise UnsupportedVersion
    if api_key != _PRODUCE:
        return Passing.TIED if api_key in TIED else Passing.PLAIN
    try:
        return Passing.SILENT if _acks(data, start, end) == 0 else Passing.PLAIN
    except Truncated:
        if end <= len(data):
            raise
        return Passing.LATER


def _acks(data: bytes, start: int, end: int) -> int:
    """``acks`` from as little of the request as possible: it may be large."""
    try:
        payload = data[start : min(end, start + _ACKS_WITHIN_BYTES)]
        return acks_of(payload, request_body_offset(payload))
    except Truncated:
        payload = data[start:end]
        return acks_of(payload, request_body_offset(payload))


_API_KEYS: Final = frozenset(map(int, ApiKey))
_VERSION_MAX: Final = 63
"""Far above every version of Kafka 4.4; as a letter of a token it would be one below ``@``."""


def takes_tokens(api_key: int, api_version: int) -> bool:
    """Whether this request is followed by raw tokens of a SASL mechanism: frames without a header (KIP-43)."""
    return api_key == ApiKey.SASL_HANDSHAKE and api_version == 0


def is_request(payload: bytes) -> bool:
    """Whether a frame behind SaslHandshake v0 is a request again: the tokens before it have no header.

    The first bytes of PLAIN (an authorization id, NUL), SCRAM and OAUTHBEARER (``n,``, ``c=``, 1) and GSSAPI (0x60, or
    5 and 4) read as no API key with a version that exists. A token taken for a request would still reach its broker.
    """
    try:
        api_key, api_version, _ = peek_request(payload)
        client_id_of(payload)
    except CodecError:
        return False
    return api_key in _API_KEYS and 0 <= api_version <= _VERSION_MAX
