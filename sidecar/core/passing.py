"""How a request passes, judged by its first bytes: what most requests cost the sidecar.

The key of a request is enough for all but a few APIs (`LOOKED_AT`); of Produce, ``acks`` is read too, because a request
without an answer must not be waited for.
"""

from enum import Enum
from typing import Final

from codec import Truncated
from codec.api_keys import ApiKey
from codec.headers import acks_of, request_body_offset
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
