"""Kafka's bytes as annotated trees for people: frames as text, captures of TCP traffic, segments of a log.

Pure like the rest of the codec, and never on a hot path. The tree of a message comes from the same table as its
decoder; `render.line` writes it. What holds credentials is not shown (`secrets`).

    text        text_input ------------------.
    capture     pcap > streams > conversation > frame > body > model > render
    segment     segment > batches > records ---------'
"""

from collections.abc import Iterator

from codec.inspect.conversation import pcap_sections
from codec.inspect.frame import Api, request_section, response_section
from codec.inspect.model import Entry, Fault, Section, UnreadableInput
from codec.inspect.pcap import is_pcap
from codec.inspect.segment import looks_like_segment, segment_sections
from codec.inspect.text_input import text_sections

__all__ = [
    "Api",
    "Entry",
    "Fault",
    "Section",
    "UnreadableInput",
    "pcap_sections",
    "request_section",
    "response_section",
    "sections",
    "segment_sections",
    "text_sections",
]

_START_BYTES = 32


def sections(buffer: bytes, *, ports: frozenset[int] = frozenset(), is_metadata: bool = False) -> Iterator[Section]:
    """The trees of whatever the bytes are: a capture, a segment or text.

    Args:
        buffer: The whole input; anything that can be sliced like bytes, such as a mapped file.
        ports: For a capture: the brokers' ports, empty for every TCP connection.
        is_metadata: For a segment: whether its values are metadata records.

    Raises:
        UnreadableInput: It is none of the three; also while iterating, at what cannot be read further.
    """
    start = bytes(buffer[:_START_BYTES])
    if not start:
        raise UnreadableInput("no bytes; a text with frames, a pcap or a log segment is expected")
    if is_pcap(start):
        return pcap_sections(buffer, ports)
    if looks_like_segment(start):
        return segment_sections(buffer, is_metadata=is_metadata)
    try:
        text = bytes(buffer).decode("ascii")
    except UnicodeDecodeError as error:
        raise UnreadableInput(
            f"neither text with frames, nor a pcap, nor a log segment: byte {error.start} is no ASCII character"
        ) from None
    return text_sections(text.splitlines())
