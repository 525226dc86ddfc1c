"""Other NodeEndpoints in a tail that keeps its length: for answers whose size went out before their tail came.

The size of a frame comes first. Whoever sends a large answer on while it still comes has promised its length long
before the addresses at its end are known. Shorter addresses leave room, which an unknown tagged field fills: readers
must skip those (KIP-482). Longer ones need room: first the racks go, which Metadata answers repeat, then endpoints
from the end. A client that misses one asks for metadata, as it does without KIP-951; the partition's error says so too.

Uses `codec.walk`, and like it knows no port.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from codec.errors import CodecError
from codec.tags import read_tag_section, with_tag
from codec.walk import Walk, replace_node_endpoints, tags_start

FILLING_TAG: Final = 16383
"""The highest number in two bytes. Kafka counts tags from 0; if this one is there, the next lower is taken."""
_ENTRY_BYTES_MAX: Final = 8
"""What an entry with a two-byte number costs above its content, and one more entry in the count."""


def fit_node_endpoints(tail: bytes, walk: Walk, endpoints: Iterable[Mapping[str, Any]]) -> bytes:
    """The tail with as many of these NodeEndpoints as it has room for, in exactly as many bytes.

    Args:
        tail: What `codec.chunked_walk` left of the answer.
        walk: What `ChunkedWalk.finish` found in it: at least one endpoint.
        endpoints: Mappings with `node_id host port rack`.

    Raises:
        CodecError: An endpoint does not fit into its fields, or this version has no place for any.
    """
    for wanted in _ever_less(list(endpoints)):
        replaced = replace_node_endpoints(tail, walk, wanted)
        if len(replaced) == len(tail):
            return replaced
        if len(replaced) < len(tail) and (filled := _filled(replaced, walk, len(tail))) is not None:
            return filled
    raise CodecError(walk.tail_start, "node_endpoints", "the tail cannot keep its length")


def _ever_less(endpoints: list[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    yield endpoints
    bare: list[Mapping[str, Any]] = [{**endpoint, "rack": None} for endpoint in endpoints]
    yield bare
    while bare:
        del bare[len(bare) - max(1, len(bare) // 8) :]
        yield bare


def _filled(tail: bytes, walk: Walk, length: int) -> bytes | None:
    """The tail with an unknown tagged field, or two, that make it this long; None where one or two bytes lack."""
    for first in (None, b"", b"\0"):
        begun = tail if first is None else _with_unknown(tail, walk, first)
        room = length - len(begun)
        if room == 0:
            return begun
        for content_bytes in range(room - 3, max(0, room - _ENTRY_BYTES_MAX) - 1, -1):
            filled = _with_unknown(begun, walk, bytes(content_bytes))
            if len(filled) == length:
                return filled
    return None


def _with_unknown(tail: bytes, walk: Walk, content: bytes) -> bytes:
    section = read_tag_section(tail, tags_start(tail, walk), "node_endpoints")
    tag = FILLING_TAG
    while section.find(tag) is not None:
        tag -= 1
    return with_tag(tail, section, tag, content)
