"""What the codec allocates, and how long it works, is bounded by its input, whatever the input says."""

import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest

from codec.api_keys import ApiKey
from codec.batches import encode_batch, read_batch
from codec.compiled import decoder, encoder
from codec.errors import CodecError
from codec.headers import read_request_header
from codec.primitives import write_unsigned_varint
from codec.records import LogRecord
from codec.schema import Array, Struct, Table
from codec.walk import node_endpoints
from tests.support.message_values import every_record, every_table

FACTOR: Final = 64
FREE_BYTES: Final = 1 << 20
HOSTILE_BYTES: Final = 100_000
"""Of a body: values without a bound would take many times `FREE_BYTES` beyond the factor."""

EXTRAS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"unknown_tags": {100: b""}},
    {"unknown_tags": {100: b"", 101: b""}},
)


def array_paths(of: Struct, version: int) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays of structs, at every depth."""
    for field in of.fields:
        if version in field.versions and isinstance(field.type, Array) and isinstance(field.type.element, Struct):
            yield (field.name,)
            yield from ((field.name, *path) for path in array_paths(field.type.element, version))


def nested(path: tuple[str, ...], outer: int, inner: int, extra: Mapping[str, Any]) -> dict[str, Any]:
    """A value with the smallest elements there are: `inner` in each innermost array, `outer` in the first one."""
    elements = [dict(extra)] * inner
    for name in reversed(path[1:]):
        elements = [{name: elements}]
    return {path[0]: elements * outer if len(path) > 1 else [dict(extra)] * inner * outer}


def shapes() -> Iterator[tuple[Table, int, str, Callable[[int], bytes]]]:
    """Tables with a way to make bodies of so many tiny elements."""
    for table, version in (*every_table(), *every_record()):
        if version not in (table.versions.first, table.versions.last):
            continue
        for path in array_paths(table.body, version):
            for extra in EXTRAS if table.is_flexible(version) else EXTRAS[:1]:
                for inner in (1, 40) if len(path) > 1 else (1,):
                    encode, build = encoder(table, version), partial(nested, path, inner=inner, extra=extra)
                    name = f"{table.title} v{version}: {'.'.join(path)} x {inner}, tags {len(extra)}"
                    yield table, version, name, partial(_encoded, encode, build)


def _encoded(encode: Callable[[Mapping[str, Any]], bytes], build: Callable[..., dict[str, Any]], outer: int) -> bytes:
    return encode(build(outer=outer))


def size_of(value: Any) -> int:
    """Bytes of a value with all its parts, those counted once that Python keeps only once."""
    own = sys.getsizeof(value)
    if isinstance(value, dict):
        return own + sum(size_of(part) for part in value.values())
    return own + sum(8 + size_of(part) for part in value) if isinstance(value, list) else 0 if not value else own


def costly() -> list[Any]:
    """The shapes whose values take the most memory for each byte."""
    found = []
    for table, version, name, build in shapes():
        few, many = build(1), build(11)
        grown = size_of(decoder(table, version)(many, 0)[0]) - size_of(decoder(table, version)(few, 0)[0])
        found.append((grown / (len(many) - len(few)), name, table, version, build))
    found.sort(key=lambda shape: -shape[0])
    return [pytest.param(*shape[2:], id=shape[1]) for shape in found[:20]]


COSTLY: Final = costly()


def peak_of(read: Callable[[], object]) -> int:
    """The most memory in use while `read` runs; a `CodecError` is an answer too."""
    with suppress(CodecError):
        read()  # makes what is made once
    tracemalloc.start()
    try:
        with suppress(CodecError):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("table", "version", "build"), COSTLY)
def test_arrays_of_tiny_structs_stay_within_the_factor(
    table: Table, version: int, build: Callable[[int], bytes]
) -> None:
    one = len(build(2)) - len(build(1))
    body = build(HOSTILE_BYTES // one)
    assert peak_of(lambda: decoder(table, version)(body, 0)) <= FACTOR * len(body) + FREE_BYTES


@pytest.mark.parametrize(("table", "version", "build"), COSTLY[:3])
def test_a_few_hundred_of_them_are_still_read(table: Table, version: int, build: Callable[[int], bytes]) -> None:
    """The bound is for floods: whatever a client may want to say gets through."""
    body = build(10)
    assert decoder(table, version)(body, 0)[1] == len(body)


HEADER: Final = bytes.fromhex("0003000c00000001ffff")


def many_tags(count: int) -> bytes:
    return b"".join(write_unsigned_varint(tag) + b"\0" for tag in range(count))


def other(name: str, size: int, read: Callable[[], object]) -> Any:
    return pytest.param(size, read, id=name)


def _others() -> Iterator[Any]:
    tags = HEADER + write_unsigned_varint(30_000) + many_tags(30_000)
    yield other("a header of tags", len(tags), lambda: read_request_header(tags))
    tags_few = HEADER + write_unsigned_varint(1024) + many_tags(1024)
    yield other("a header of as many tags as may be", len(tags_few), lambda: read_request_header(tags_few))
    batch = encode_batch([LogRecord()] * 12_000, base_offset=0, partition_leader_epoch=0, timestamp_ms=0)
    yield other("empty records", len(batch), lambda: read_batch(batch))
    headers = encode_batch(
        [LogRecord(headers=(("", b""),) * 40_000)], base_offset=0, partition_leader_epoch=0, timestamp_ms=0
    )
    yield other("headers of a record", len(headers), lambda: read_batch(headers))
    partition = bytes(4) + b"\x00\x06" + bytes(8) + b"\xff\xff\xff\xff"
    fetch = (1).to_bytes(4, "big") + b"\0\0" + (5000).to_bytes(4, "big") + partition * 5000
    yield other("a walk", len(fetch), lambda: node_endpoints(fetch, ApiKey.FETCH, 0, 0))
    for count in ("7fffffff", "00ffffff", "0000ffff"):
        body = bytes.fromhex(count) + bytes(1000)
        read = partial(decoder(_metadata(), 1), body, 0)
        yield other(f"a count of {count} that nothing backs", len(body), read)


def _metadata() -> Table:
    return next(table for table, _ in every_table() if table.title == "METADATA response")


@pytest.mark.parametrize(("size", "read"), list(_others()))
def test_everything_else_stays_within_the_factor(size: int, read: Callable[[], object]) -> None:
    assert peak_of(read) <= FACTOR * size + FREE_BYTES


def steps_of(read: Callable[[], object]) -> int:
    """Lines of Python that `read` runs: what counts as work here, and does not depend on the machine."""
    steps = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(CodecError):
            read()
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize(("table", "version", "build"), COSTLY[:6])
def test_twice_the_input_is_twice_the_work(table: Table, version: int, build: Callable[[int], bytes]) -> None:
    once, twice = build(100), build(200)
    read = decoder(table, version)
    few, many = steps_of(lambda: read(once, 0)), steps_of(lambda: read(twice, 0))
    assert few < 40 * len(once) + 1000
    assert many <= 2.1 * few


@pytest.mark.parametrize("filler", [b"\0", b"\1", b"\x7f", b"\xff", b"\x80", b"\2", b"\0\0\0\1", b"\0\0\0\xff"])
def test_work_is_linear_in_bytes_that_claim_anything(filler: bytes) -> None:
    body = filler * (2000 // len(filler))
    for table, version in every_table():
        if version == table.versions.last:
            steps = steps_of(partial(decoder(table, version), body, 0))
            assert steps < 40 * len(body) + 1000, table
