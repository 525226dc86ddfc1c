"""A log segment, or a snapshot of the metadata log: one section a batch, with the place of each in the file.

Knows nothing of indexes and of the file's name. What stands behind the last batch is a fault, unless it is zeros, which
a broker that preallocates its segments leaves there.
"""

from collections.abc import Iterator

from codec.errors import CodecError
from codec.inspect.batches import batch_entries, find_batch
from codec.inspect.model import Entry, Fault, Section

_MAGIC_AT = 16
_PIECE_BYTES = 1 << 20


def looks_like_segment(start: bytes) -> bool:
    """Whether these first bytes of a file may be those of a batch: base offset, length, epoch and magic make sense."""
    return len(start) > _MAGIC_AT and start[0] == 0 and start[8] < 0x80 and start[_MAGIC_AT] <= 2


def segment_sections(buffer: bytes, *, is_metadata: bool = False) -> Iterator[Section]:
    """The batches of a segment, in its order.

    Args:
        buffer: The file, for instance mapped; each batch is copied once.
        is_metadata: Whether the values are metadata records.
    """
    start, size = 0, len(buffer)
    while start < size:
        if buffer[start] == 0 and _only_zeros(buffer, start):
            yield Section(title=f"{size - start} zero bytes, preallocated", base=start)
            return
        try:
            span = find_batch(buffer, start, size)
        except CodecError as error:
            yield _broken(buffer, start, error)
            return
        if span is None:
            yield _broken(
                buffer, start, CodecError(start, "batch", f"the last {size - start} bytes are no whole batch")
            )
            return
        batch = bytes(buffer[start : span.end])
        here = span._replace(start=0, end=len(batch))
        base_offset = int.from_bytes(batch[:8], "big", signed=True)
        items = _guarded(batch_entries(batch, here, 0, is_metadata=is_metadata))
        yield Section(title=f"batch at offset {base_offset}, byte {start}", buffer=batch, items=items, base=start)
        start = span.end


def _guarded(entries: Iterator[Entry]) -> Iterator[Entry | Fault]:
    try:
        yield from entries
    except CodecError as error:
        yield Fault(error.offset, error.field, error.reason)


def _broken(buffer: bytes, start: int, error: CodecError) -> Section:
    fault = Fault(error.offset - start, error.field, error.reason)
    return Section(
        title=f"no batch, byte {start}", buffer=bytes(buffer[start : start + 64]), items=iter([fault]), base=start
    )


def _only_zeros(buffer: bytes, start: int) -> bool:
    return all(not any(buffer[at : at + _PIECE_BYTES]) for at in range(start, len(buffer), _PIECE_BYTES))
